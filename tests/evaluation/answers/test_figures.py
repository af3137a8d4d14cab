"""Answers of a folder: SugarCrepe's released ones, and made ones with every way to be wrong."""

import json
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.evaluation.benchmarks.made_layouts import put
from tests.guard.test_oracles import at_hand
from twinset.cli.main import main
from twinset.evaluation.answers.figures import measure_answers, read_answers
from twinset.evaluation.examples import MATCHING_SCORES

#: Answers to swap_obj in both orders.
BOTH_ORDERS = {"right": 183, "wrong": 15, "inconsistent": 42, "unparsed": 6, "average": 205}


def test_the_figures_of_both_orders_come_out_of_the_free_text() -> None:
    """The published counts of each order are in tests/guard/test_oracles.py."""
    answers = read_answers(at_hand("sugarcrepe/gpt4v"))
    # The released rule reads no answer that names both; ours reads one that takes "neither" back.
    (differing,) = answers.filter(pl.col("right").ne_missing(pl.col("as_published"))).to_dicts()
    assert (differing["file"], differing["key"]) == ("negative-first/swap_obj.json", "214")
    assert differing["choice"] == 2 and differing["right"] and differing["as_published"] is None
    unparsed = answers.filter(pl.col("choice").is_null())
    assert len(unparsed) == 29 and {*unparsed["reason"]} == {"neither", "refusal"}
    measured = measure_answers(answers, resamples=0)["swap_obj"]
    figures = measured["both_orders"][1]
    assert figures.pop("first").value == pytest.approx(100 * 254 / 483)
    assert {name: figure.value * 246 / 100 for name, figure in figures.items()} == pytest.approx(BOTH_ORDERS, abs=1e-9)
    right = measured["negative-first"][1]["right"]
    assert (right.value, right.expected) == pytest.approx((100 * 199 / 246, 100 * 201 / 246), abs=1e-9)


def test_the_command_prints_a_table_and_writes_choices_as_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = {"caption": "a red wall without windows", "negative_caption": "a blue wall without windows"}
    texts = {"positive": ["(1)", "(1)", "(2)", "\x1b[31mred", "(1)"], "negative": ["(2)", "(1)", "(1)", "2"]}
    for order, given in texts.items():
        answers = {n: {"answer": text, "filename": f"{n // 2}.jpg", **captions} for n, text in enumerate(given)}
        put(tmp_path / f"{order}-first" / "s.json", answers)
    table = tmp_path / "scores.parquet"
    assert main(["eval", "answers", str(tmp_path), "--resamples", "100", "--out", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "s positive-first  5  right" in shown and "\x1b" not in shown
    assert "positive-first/s.json: 3: no choice: '\\x1b[31mred'" in shown
    assert "read in another way by the released evaluation: 1" in shown
    rows = pq.read_table(table)
    assert rows.schema.equals(MATCHING_SCORES) and rows["key"].to_pylist() == ["s/0", "s/1", "s/2", "s/3"]
    assert rows["s00"].to_pylist() == [1, 0.5, 0, 0.5] and rows["s01"].to_pylist() == [0, 0.5, 1, 0.5]
    assert rows["group"].to_pylist() == ["0", "0", "1", "1"]
    assert json.loads(rows.schema.metadata[b"twinset"])["left_out"] == {"one order": 1}
