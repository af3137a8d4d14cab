"""Answers of a folder: SugarCrepe's released ones, and made ones with every way to be wrong."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.guard.test_oracles import at_hand
from twinset.cli.main import main
from twinset.evaluation.answers.figures import measure_answers, read_answers
from twinset.evaluation.examples import MATCHING_SCORES

#: Answers to swap_obj in both orders.
BOTH_ORDERS = {"right": 183, "wrong": 15, "inconsistent": 42, "unparsed": 6, "average": 205}
POSITIVE, NEGATIVE = "a red wall without windows", "a blue wall without windows"


def test_the_figures_of_both_orders_come_out_of_the_free_text() -> None:
    """The published counts of each order are in tests/guard/test_oracles.py."""
    answers = read_answers(at_hand("sugarcrepe/gpt4v"))
    # The released rule reads no answer that names both; ours reads one that takes "neither" back.
    (differing,) = answers.filter(pl.col("right").ne_missing(pl.col("as_published"))).to_dicts()
    assert (differing["file"], differing["key"]) == ("negative-first/swap_obj.json", "214")
    assert differing["choice"] == 2 and differing["right"] and differing["as_published"] is None
    unparsed = answers.filter(pl.col("choice").is_null())
    assert len(unparsed) == 29 and {*unparsed["reason"]} == {"neither", "refusal"}
    found = measure_answers(answers, resamples=0)
    figures = found["swap_obj"]["both_orders"][1]
    assert figures.pop("first").value == pytest.approx(100 * 254 / 483)
    assert {name: one.value * 246 / 100 for name, one in figures.items()} == pytest.approx(BOTH_ORDERS, abs=1e-9)
    right = found["swap_obj"]["negative-first"][1]["right"]
    assert (right.value, right.expected) == pytest.approx((100 * 199 / 246, 100 * 201 / 246), abs=1e-9)


def written(folder: Path, **files: Any) -> Path:
    """Write texts by order and split; returns the folder."""
    for name, texts in files.items():
        order, split = name.split("__")
        path = folder / f"{order}-first" / f"{split}.json"
        path.parent.mkdir(exist_ok=True)
        captions = {"caption": POSITIVE, "negative_caption": NEGATIVE}
        answers = {str(n): {"answer": text, "filename": f"{n // 2}.jpg", **captions} for n, text in enumerate(texts)}
        path.write_text(json.dumps(answers))
    return folder


def test_orders_are_compared_example_by_example(tmp_path: Path) -> None:
    straight = ["(1)", {"free_form_answer": "(1)"}, "(2)", "Neither.", "(1)", "2", "(1)"]
    swapped = ["(2)", "(1)", "(1)", "(2)", "(2)", "(2)"]
    found = measure_answers(read_answers(written(tmp_path, positive__s=straight, negative__s=swapped)), resamples=0)
    assert {order: n for order, (n, _) in found["s"].items()} == dict.fromkeys(found["s"], 6) | {"positive-first": 7}
    (_, first), (_, both) = found["s"]["positive-first"], found["s"]["both_orders"]
    assert first["right"].value == pytest.approx(100 * 4 / 7) and first["first"].value == pytest.approx(100 * 4 / 6)
    assert first["right"].expected == pytest.approx(100 * 4.5 / 7)
    assert {name: one.value * 6 / 100 for name, one in both.items()} == pytest.approx(
        {"right": 2, "wrong": 1, "inconsistent": 2, "unparsed": 1, "average": 3.5, "first": 6 * 5 / 11}
    )


def test_the_command_prints_a_table_and_writes_choices_as_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    straight, swapped = ["(1)", "(1)", "(2)", "\x1b[31mred", "(1)"], ["(2)", "(1)", "(1)", "2"]
    folder, table = written(tmp_path, positive__s=straight, negative__s=swapped), tmp_path / "scores.parquet"
    assert main(["eval", "answers", str(folder), "--resamples", "100", "--out", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "s positive-first  5  right" in shown and "\x1b" not in shown
    assert "positive-first/s.json: 3: no choice: '\\x1b[31mred'" in shown
    assert "read in another way by the released evaluation: 1" in shown
    rows = pq.read_table(table)
    assert rows.schema.equals(MATCHING_SCORES) and rows["key"].to_pylist() == ["s/0", "s/1", "s/2", "s/3"]
    assert rows["s00"].to_pylist() == [1, 0.5, 0, 0.5] and rows["s01"].to_pylist() == [0, 0.5, 1, 0.5]
    assert rows["group"].to_pylist() == ["0", "0", "1", "1"]
    assert json.loads(rows.schema.metadata[b"twinset"])["left_out"] == {"one order": 1}
