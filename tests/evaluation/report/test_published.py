"""Numbers of papers: names that exist, values that can be, and what the papers derive from them."""

from statistics import mean

import pydantic
import pytest

from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.captioned_images import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from twinset.evaluation.benchmarks.composed_retrieval import GLOBAL, GeneCis
from twinset.evaluation.benchmarks.eqben import SUBSETS
from twinset.evaluation.benchmarks.foils import KINDS
from twinset.evaluation.metrics.matching import FINER
from twinset.evaluation.metrics.score_kinds import ALL, Groundings
from twinset.evaluation.report.published import _Table, published

ROWS = published()
FIGURES = {"text", "image", "group", *FINER, "accuracy", "acc", "min", *(f"recall@{k}" for k in ALL)}
FIGURES |= {*Groundings().names([])}  # type: ignore[arg-type]
#: EqBen, Tables 3 and 11, as printed. Three do not follow from their cells, which give the values behind them.
AVERAGES = {
    "LXMERT": 10.20, "ViLBERT": 10.74, "CLIP (RN-50)": 33.28, "CLIP (ViT-B/32)": 33.73, "FLAVA": 34.04, "ViLT": 32.88,
    "ALBEF": 38.03, "BLIP": 38.34, "METER": 39.84, "METER + FT (F30K)": 39.02,
    "FIBER + FT (F30K)": 43.40, "FIBER + EqSim": 45.32,
}  # fmt: skip
MISPRINTED = {"BLIP2": (45.19, 45.99), "METER + EqSim": (42.28, 42.01), "FIBER": (44.86, 43.47)}


def test_figures_are_those_that_are_measured_and_within_percent() -> None:
    for row in ROWS:
        assert row.source.rsplit(", ", 1)[1], row
        for figures in row.figures.values():
            assert figures.keys() <= FIGURES, row
            assert all(0 <= value <= 100 for value in figures.values()), row


def test_group_is_no_more_than_text_and_image() -> None:
    checked = 0
    for row in ROWS:
        for figures in row.figures.values():
            if {"text", "image", "group"} <= figures.keys():
                checked += 1
                assert figures["group"] <= min(figures["text"], figures["image"]), row
            recalls = [figures[name] for name in figures if name.startswith("recall@")]
            assert recalls == sorted(recalls), row
    assert checked > 100


#: Subsets and categories of the benchmarks that papers tell apart.
PARTS = {
    "eqben": {*SUBSETS.values()}, "genecis": {*GeneCis.every}, "cirr": {GLOBAL}, "bivlc": {*KINDS},
    "flickr30k": {IMAGE_TO_TEXT, TEXT_TO_IMAGE}, "coco": {IMAGE_TO_TEXT, TEXT_TO_IMAGE},
}  # fmt: skip


def test_benchmarks_and_their_parts_are_those_that_are_read() -> None:
    assert {row.benchmark for row in ROWS} <= {*BENCHMARKS.kinds()}
    for row in ROWS:
        named = {part for subset in row.figures for part in row.pooled.get(subset, [subset])}
        assert named - {""} <= PARTS.get(row.benchmark, set()), row


def test_averages_of_eqben_follow_from_their_cells() -> None:
    found = {}
    for row in ROWS:
        if row.benchmark == "eqben" and "eq-sd" in row.figures:
            found[row.name] = mean(value for figures in row.figures.values() for value in figures.values())
    assert found.keys() == AVERAGES.keys() | MISPRINTED.keys()
    for name, printed in AVERAGES.items():
        assert found[name] == pytest.approx(printed, abs=0.0101), name
    for name, (printed, cells) in MISPRINTED.items():
        assert found[name] == pytest.approx(cells, abs=0.0101) and abs(found[name] - printed) > 0.2, name


def test_eq_kubric_is_the_mean_of_its_subsets() -> None:
    parts = {row.name: row for row in ROWS if row.benchmark == "eqben" and "eq-kubric-location" in row.figures}
    whole = {row.name: row for row in ROWS if row.benchmark == "eqben" and "eq-kubric" in row.figures}
    assert len(parts) == 14
    for name, row in parts.items():
        of_parts = mean(figures["group"] for figures in row.figures.values())
        assert of_parts == pytest.approx(whole[name].figures["eq-kubric"]["group"], abs=0.06), (
            name
        )  # LXMERT: 7.31 for 7.26


def test_a_row_with_a_cell_too_few_is_named() -> None:
    table = {"benchmark": "b", "paper": "p", "table": "Table 1", "columns": {"": ["text", "image"]}}
    with pytest.raises(pydantic.ValidationError, match="not 2 cells in the rows A"):
        _Table.model_validate({**table, "rows": [{"name": "A", "cells": [1.0]}]})
