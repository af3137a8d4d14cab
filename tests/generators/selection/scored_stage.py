"""Finished stages of scored negative captions, with scores that a test gives or that are drawn."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.generators.finished_stage import write_index
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.generators.negative_captions.kinds import KINDS, scored_schema
from twinset.generators.selection.source import SelectedNegatives
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage

OBJECTS = ("dog", "cat", "bus", "kite", "pizza", "horse", "chair", "lamp")


def row(number: int, kind: str = "replace_obj", **values: Any) -> dict[str, Any]:
    """One scored negative; all scores are alike unless they are given."""
    type_, _, subtype = kind.partition("_")
    of = {"caption": f"A man sees picture {number}.", "negative_caption": f"A man sees painting {number}."}
    ids = {"caption_id": f"c/{number}", "image_id": f"{number // 3}", "image": ""}
    return {**ids, **of, "type": type_, "subtype": subtype, **dict.fromkeys(TEXT_SCORES, 0.5), **values}


def drawn(count: int) -> list[dict[str, Any]]:
    """Rows with drawn scores: negatives read a little worse than their captions; some repeat or are not sentences."""
    rng, rows = random.Random(0), []
    for number in range(count):
        plausible, grammatical = rng.random(), rng.random()
        end = rng.choice(["."] * 4 + ["", "?", "!"])
        text = f"A {rng.choice(OBJECTS)} {'near ' * rng.randrange(3)}the bus {number % (count // 2 + 1)}{end}"
        caption = f"A man sees {'big ' * rng.randrange(3)}picture {number}."
        scores = {
            "vera_caption": plausible,
            "vera_negative": min(max(plausible - rng.gauss(0.1, 0.2), 0.0), 1.0),
            "cola_caption": grammatical,
            "cola_negative": min(max(grammatical - rng.gauss(0.05, 0.1), 0.0), 1.0),
            "similarity": rng.uniform(0.8, 1.02),
        }
        rows.append(row(number, rng.choice([*KINDS]), caption=caption, negative_caption=text, **scores))
    return rows


def stage_of(rows: Sequence[Mapping[str, Any]], folder: Path, row_group: int = 1000) -> FinishedStage:
    """A finished stage called ``scores`` of these rows."""
    names = [values["caption_id"] for values in rows]
    own = {"key": [sample_key("scores", name) for name in names], "identity": [*map(identity_of, names)]}
    doubles = dict.fromkeys((*TEXT_SCORES, *(name for name, value in rows[0].items() if isinstance(value, float))))
    schema = scored_schema(doubles)
    columns = {field.name: pa.array([values[field.name] for values in rows], field.type) for field in schema}
    return write_index(pa.table({**own, **columns}), folder, "scores", len(rows), row_group)


def selection(**settings: Any) -> SelectedNegatives:
    return SelectedNegatives.model_validate({"kind": "selected-negatives", "scores": "scores", **settings})


def context(earlier: FinishedStage, seed: int = 0) -> Context:
    return Context("selected", seed=seed, earlier=lambda _: earlier)


def selected(earlier: FinishedStage, seed: int = 0, **settings: Any) -> list[str]:
    """Ids of the captions that are selected, in order."""
    source = selection(**settings).open(context(earlier, seed))
    return source.transform(earlier.frame(Path())).collect()["caption_id"].to_list()  # type: ignore[no-any-return]
