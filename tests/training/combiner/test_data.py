"""Conditions are shuffled among what is trained on alone; held-out triplets become queries of one gallery."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.benchmarks.made_layouts import cirr
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import COLOURS, GROUNDS, Settings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Query
from twinset.training.combiner.data import Triplets, open_data
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.train import train_combiner
from twinset.training.examples.contracts import Example
from twinset.training.runs.settings import checked


def examples(triplets: Triplets) -> Iterator[Example]:
    return (triplets[number] for number in range(len(triplets)))


def asked(settings: CombinerSettings) -> list[Query]:
    found = list(open_data(settings).validation.examples())
    assert all(isinstance(one, Query) for one in found)
    return found  # type: ignore[return-value]


def test_shuffled_conditions_are_the_same_texts_at_other_triplets(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    data = f"{made_recoloured.root}:recoloured"
    plain, mixed, again = (
        open_data(settings(data, conditions=conditions)) for conditions in ("matched", "shuffled", "shuffled")
    )
    before, after = ([one.texts["condition"] for one in examples(each.training)] for each in (plain, mixed))
    assert Counter(before) == Counter(after)
    # Six colours: a condition drawn at random is the right one in a sixth of all triplets.
    same = sum(one == other for one, other in zip(before, after, strict=True)) / len(before)
    assert same < 0.3
    pairs = zip(examples(plain.training), examples(mixed.training), strict=True)
    assert all((one.key, one.images) == (other.key, other.images) for one, other in pairs)
    assert plain.validation.digest() == mixed.validation.digest()
    assert plain.training.digest() != mixed.training.digest() == again.training.digest()


def test_held_out_triplets_are_not_trained_on_and_the_same_for_every_model(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    chosen = settings(f"{made_recoloured.root}:recoloured", held_out=0.25)
    opened = open_data(chosen)
    trained, held = ({one.key for one in some} for some in (examples(opened.training), asked(chosen)))
    assert not trained & held and len(trained) == 180 and len(held) == 60
    assert held != {one.key for one in asked(settings(f"{made_recoloured.root}:recoloured", held_out=0.25, seed=1))}


def test_queries_rank_every_image_once_and_not_their_reference(
    made_recoloured: MadeDataset, settings: Settings
) -> None:
    queries = asked(settings(f"{made_recoloured.root}:recoloured", held_out=0.9))
    gallery = queries[0].gallery
    assert all(one.gallery is gallery for one in queries)
    assert len(gallery) == len(GROUNDS) * len(COLOURS)
    for one in queries:
        (target,), (reference,) = one.targets, one.excluded
        shown, entries = one.image, [gallery[place] for place in (target, reference)]
        assert shown is not None and not any(isinstance(entry, str) for entry in entries)
        contents = [entry.read() for entry in entries]  # type: ignore[union-attr]
        assert contents[1] == shown.read() != contents[0]


def test_repeated_triplets_ask_again_and_add_no_target(made_triplets: MadeDataset, settings: Settings) -> None:
    chosen = settings(f"{made_triplets.root}:triplets*2", held_out=0.5)
    queries = asked(chosen)
    assert len({one.key for one in queries}) * 2 == len(queries)
    assert all(len(one.targets) == 1 for one in queries)


def test_other_triplets_validate_and_the_same_ones_are_refused(made_triplets: MadeDataset, settings: Settings) -> None:
    data = f"{made_triplets.root}:triplets"
    opened = open_data(settings(data, validation=(f"{made_triplets.root}:two-images",)))
    assert len(opened.training) == 8 and len(list(opened.validation.examples())) == 8
    assert [one["subset"] for one in opened.facts["validation"]] == ["two-images"]
    with pytest.raises(WrongUse, match="is trained on and validated with"):
        open_data(settings(data, validation=(data,)))


def test_cirr_chooses_the_best_as_in_the_paper(made_triplets: MadeDataset, settings: Settings, tmp_path: Path) -> None:
    cirr(tmp_path / "cirr")
    chosen = settings(f"{made_triplets.root}:triplets", validation=(f"cirr={tmp_path / 'cirr'}",), frozen="both")
    trained = train_combiner(chosen, tmp_path / "run", report=False, cache=tmp_path / "cache")
    validated = [row["validation"] for row in trained.history if "validation" in row]
    # Three queries of eight images, one of which is the reference.
    assert [one["recall@10"] for one in validated] == [100, 100]
    assert all(round(one["recall@1"] * 3 / 100, 6) in (0, 1, 2, 3) for one in validated)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"validation": ("cirr=a", "b")}, "validation: cirr=a is a benchmark of its own"),
        ({"validation": ("cirr=a",), "validation_split": "x"}, "validation_split: cirr=a has one split"),
        ({"betas": (0.9, 1.0)}, "betas: both are from 0 to below 1"),
        ({"conditions": "none"}, "conditions: Input should be"),
        ({"batch": 7, "accumulate": 2}, "accumulate: 2 parts do not divide a batch of 7"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(WrongUse, match=error):
        checked(CombinerSettings, {"data": ("x",), **changes})


def test_pairs_are_not_triplets(made_pairs: MadeDataset, settings: Settings) -> None:
    with pytest.raises(WrongUse, match="training on triplets reads triplet"):
        open_data(settings(str(made_pairs.root)))
