"""The stage: rows brought together by caption, each text scored once, and what becomes of bad ones."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from pydantic import ValidationError

from tests.generators.caption_scores.conftest import negatives
from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.parts import OutOfMemory
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe
from twinset.generators.caption_scores.generator import ROWS, ScoreGenerator, rows_by_caption
from twinset.generators.caption_scores.scorers.clip import Clip
from twinset.generators.caption_scores.scorers.scorer import Scored
from twinset.generators.caption_scores.source import CaptionScores
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.rows import write_table_rows
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

PAIRS = (
    ("A man riding a horse.", "A man riding a bike."),
    ("A dog.", "A dog and a cat."),
    ("A man riding a horse.", "A woman riding a horse."),
    ("A dog.", "A dog on a hat."),
)
COLUMNS = ["identity", "caption", "negative_caption"]


def source(folders: dict[str, Path], *kinds: str, **given: Any) -> CaptionScores:
    scorers = [{"kind": kind, "model": str(folders[kind]), "micro_batch": 4} for kind in kinds]
    return CaptionScores.model_validate(
        {"kind": "caption-scores", "negatives": "negatives", "scorers": scorers, **given}
    )


def opened(chosen: CaptionScores, table: FinishedStage) -> ScoreGenerator:
    return chosen.open(Context("scores", earlier=lambda _: table))


def made(generator: ScoreGenerator) -> list[TableRows | Rejected]:
    return list(generator.make(list(generator.plan())))


class Fixed:
    """A scorer whose numbers are given, and which counts what it is asked."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values, self.asked = values, Counter[str]()
        self.sizes: list[int] = []

    def __call__(self, texts: Any, micro_batch: int) -> Scored:
        self.asked.update(texts)
        self.sizes.append(micro_batch)
        if micro_batch > 8:
            torch.empty(1 << 50)
        return Scored(np.array([self.values.get(text, 0.5) for text in texts]), np.zeros(len(texts), np.bool_))


def with_fixed(generator: ScoreGenerator, **values: float) -> Fixed:
    fixed = Fixed({text.replace("_", " "): value for text, value in values.items()})
    generator.__dict__["_scorers"] = [(generator.source.scorers[0], fixed)]
    return fixed


def test_rows_of_a_caption_come_together_with_the_identity_that_they_had(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    planned = list(opened(source(scorer_folders, "cola"), negatives(tmp_path, PAIRS)).plan())
    assert [one.identity for one in planned] == [f'["add_obj/{n}"]' for n in (0, 2, 1, 3)]
    assert planned[0].group == planned[1].group != planned[2].group == planned[3].group
    assert [one.image_id for one in planned] == ["0.jpg", "2.jpg", "1.jpg", "3.jpg"]


@pytest.mark.parametrize("held", [1, 7, 50, 10_000])
def test_scattered_captions_are_grouped_whatever_memory_holds(tmp_path: Path, held: int) -> None:
    random = generator_for(0, "scores", "grouping")
    pairs = [(f"caption {random.integers(60)}", f"negative {number}") for number in range(500)]
    table = negatives(tmp_path, pairs, row_group=64)
    found = list(rows_by_caption(table, COLUMNS, held))
    first = {caption: number for number, (caption, _) in reversed(list(enumerate(pairs)))}
    expected = sorted(range(500), key=lambda number: (first[pairs[number][0]], number))
    assert [row["negative_caption"] for _, row in found] == [f"negative {number}" for number in expected]
    assert len({name for name, _ in found}) == len(first)


def test_captions_that_are_together_are_read_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = negatives(tmp_path, [(f"caption {number // 7}", "x") for number in range(70)], row_group=16)
    reads, batches = list[list[str]](), FinishedStage.batches
    monkeypatch.setattr(FinishedStage, "batches", lambda self, names: reads.append(names) or batches(self, names))
    rows = [row for _, row in rows_by_caption(table, COLUMNS, held=1)]
    assert reads == [["caption"], COLUMNS] and [row["identity"] for row in rows][:2] == [
        '["add_obj/0"]',
        '["add_obj/1"]',
    ]


def test_a_table_without_rows_gives_none(tmp_path: Path) -> None:
    assert list(rows_by_caption(negatives(tmp_path, []), COLUMNS)) == []


def test_each_text_of_a_shard_is_scored_once(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    generator = opened(source(scorer_folders, "cola"), negatives(tmp_path, (*PAIRS, ("A dog and a cat.", "A dog."))))
    fixed = with_fixed(generator)
    assert len(made(generator)) == 5
    assert set(fixed.asked.values()) == {1} and len(fixed.asked) == 6


def test_scores_stand_in_their_columns(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    same = ("A dog.", "A dog.")
    table = negatives(tmp_path, (*PAIRS, same))
    rows = [
        one.rows[0] for one in made(opened(source(scorer_folders, "cola", "clip"), table)) if isinstance(one, TableRows)
    ]
    assert len(rows) == 5 and set(TEXT_SCORES) <= rows[0].keys()
    for row in rows:
        assert 0 < float(row["cola_caption"] or 0) < 1 and row["cola_negative"] != row["vera_negative"] is None
        assert row["lm_caption"] is None and -1 <= float(row["similarity"] or 0) <= 1 + 1e-6 and row["truncated"] == ""
    by_negative = {row["negative_caption"]: row for row in rows}
    assert by_negative["A dog."]["similarity"] == pytest.approx(1)
    assert by_negative["A dog."]["cola_negative"] == by_negative["A dog."]["cola_caption"]


def test_a_number_that_is_none_rejects_its_row_alone(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    generator = opened(source(scorer_folders, "language-model"), negatives(tmp_path, PAIRS))
    fixed = with_fixed(generator)
    fixed.values = {"A woman riding a horse.": float("nan"), "A dog.": float("-inf")}
    first, second, third, fourth = made(generator)
    assert isinstance(first, TableRows)
    for one, detail in ((second, "lm_negative"), (third, "lm_caption"), (fourth, "lm_caption")):
        assert isinstance(one, Rejected) and (one.reason, one.detail) == ("score-not-finite", detail)


def test_odd_texts_are_scored_or_named(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    odd = (("", "A dog."), ("A dog.", " \n"), ("猫が座っている。", "قطة 🙂"), ("A dog.", "A man riding " * 800_000))
    generator = opened(source(scorer_folders, "cola", "clip", "language-model"), negatives(tmp_path, odd))
    found = {
        json.loads(one.identity)[0][-1]: result for one, result in zip(generator.plan(), made(generator), strict=True)
    }
    assert [getattr(found[number], "reason", "") for number in "0123"] == ["no-text", "no-text", "", ""]
    cut = [one.rows[0]["truncated"] for one in (found["2"], found["3"]) if isinstance(one, TableRows)]
    assert cut == ["", "cola similarity lm"]
    only_empty = opened(source(scorer_folders, "cola"), negatives(tmp_path / "empty", [("", "")]))
    assert [getattr(one, "reason", "") for one in made(only_empty)] == ["no-text"]


def test_memory_that_runs_out_halves_the_passes(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    chosen = source(scorer_folders, "cola").model_dump(mode="json")
    chosen["scorers"][0]["micro_batch"] = 16
    generator = opened(CaptionScores.model_validate(chosen), negatives(tmp_path, PAIRS))
    fixed, threads = with_fixed(generator), torch.get_num_threads()
    with pytest.raises(OutOfMemory):
        made(generator)
    half = generator.with_micro_batch(generator.micro_batch // 2)
    assert len(made(half)) == 4 and fixed.sizes == [16, 8] and torch.get_num_threads() == threads
    made(half.with_micro_batch(1))
    assert fixed.sizes[-1] == 1 and generator.micro_batch == ROWS


def test_wrong_settings_are_named(
    scorer_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match="two scorers of kind cola would fill one column"):
        source(scorer_folders, "cola", "cola")
    missing = source({**scorer_folders, "clip": tmp_path / "none"}, "cola", "clip")
    with pytest.raises(WrongUse, match=r"s\.scorers\.1\.model: there is no model folder"):
        missing.check_inputs("s", ["models"])
    source(scorer_folders, "cola", "clip", "language-model").check_inputs("s", ["models", "media"])
    monkeypatch.setattr("twinset.models.device.find_spec", lambda name: None if name == "transformers" else name)
    with pytest.raises(WrongUse, match=r"s\.scorers\.1: transformers is not installed; .*'twinset\[language-models\]'"):
        language_model = source(scorer_folders, "clip", "language-model")
        monkeypatch.setattr(Clip, "libraries", lambda self: ("torch",))
        language_model.check_inputs("s", ["models", "media"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("twinset.models.language_models.settings.find_spec", lambda name: None)
    absent = source({"language-model": Path("smollm2")}, "language-model")
    with pytest.raises(WrongUse, match=r"scorers\.0\.model: the model smollm2 is not installed: pip install"):
        absent.check_inputs("s", ["models"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_gpu = source(scorer_folders, "cola", device="gpu")
    for call in (lambda: on_gpu.check_device("s"), opened(on_gpu, negatives(tmp_path, PAIRS)).device):
        with pytest.raises(WrongUse, match="device is gpu, but torch finds no CUDA device"):
            call()


def test_a_shard_has_the_same_bytes_again(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    chosen, table = source(scorer_folders, "cola", "clip", "language-model"), negatives(tmp_path, PAIRS)
    for name in ("first", "second"):
        generator = opened(chosen, table)
        results = list(zip(generator.plan(), made(generator), strict=True))
        write_table_rows(results, generator.columns, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    found = pq.read_table(tmp_path / "first")
    assert found["lm_caption"].type == pa.float64() and found["vera_caption"].null_count == 4


def test_where_models_lie_is_no_part_of_what_is_made(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/cola").symlink_to(scorer_folders["cola"])
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: n\nsubsets: {s: {source: {kind: caption-scores, negatives: ./out/negatives, "
        "scorers: [{kind: cola, model: ./models/cola}, {kind: language-model, model: smollm2, micro_batch: 8}]}}}\n"
    )
    subset = load_recipe(str(recipe))["s"]
    assert isinstance(subset.source, CaptionScores)
    assert subset.source.scorers[0].model == str(tmp_path / "models/cola")
    scorers = content_of(subset, 0)["source"]["scorers"]
    assert "model" not in scorers[0] and (scorers[1]["model"], scorers[1]["micro_batch"]) == ("smollm2", 8)


@pytest.mark.slow  # its workers are processes, which import torch
def test_a_build_gives_the_same_bytes_again(scorer_folders: dict[str, Path], tmp_path: Path) -> None:
    records = {str(n): {"filename": "1.jpg", "caption": a, "negative_caption": b} for n, (a, b) in enumerate(PAIRS)}
    (tmp_path / "replace_obj.json").write_text(json.dumps(records))
    replay = {"kind": "replayed-negatives", "captions": str(tmp_path / "replace_obj.json")}
    scores = source(scorer_folders, "language-model", negatives="copied").model_dump(mode="json")
    raw = {
        "name": "n",
        "stages": {"copied": {"source": replay}},
        "subsets": {"scores": {"source": scores, "shard_size": 2}},
    }
    tables = []
    for out in ("first", "second"):
        counts = build_here(parse_recipe(raw), str(tmp_path / out), 1)["subsets"]["scores"]
        assert (counts["planned"], counts["kept"]) == (4, 4)
        tables.append(FinishedStage(Store(str(tmp_path / out)), "scores").read(["identity", *TEXT_SCORES, "truncated"]))
    assert tables[0].equals(tables[1])
    assert tables[0]["lm_caption"].type == pa.float64() and tables[0]["vera_caption"].null_count == 4
