"""Numbers of papers: names that exist, values that can be. Tables as CSV, Markdown and LaTeX."""

import csv
import io
import re
from statistics import mean

import pytest

from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.captioned_images import IMAGE_TO_TEXT, TEXT_TO_IMAGE
from twinset.evaluation.benchmarks.composed_retrieval import GLOBAL, GeneCis
from twinset.evaluation.benchmarks.eqben import SUBSETS
from twinset.evaluation.benchmarks.sets_of_pairs import SugarCrepe
from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.metrics.galleries import AT, THRESHOLDS
from twinset.evaluation.metrics.matching import FINER, ORDERS
from twinset.evaluation.report.published import MEAN, Published, published
from twinset.evaluation.report.result_tables import _columns
from twinset.evaluation.report.tables import BEST, SECOND, Row, Table, as_csv, as_latex, as_markdown, compact, marked

ROWS = published()
FIGURES = {"text", "image", "group", *FINER, *ORDERS, "accuracy", "acc", "min", "grounding"}
FIGURES |= {*(f"recall@{k}" for ks in AT.values() for k in ks), *(f"grounding@{seconds}" for seconds in THRESHOLDS)}
FIGURES |= {"text_detection", "image_detection"}  # of detectors, BiVLC's Table 4
#: Subsets and categories of the benchmarks that papers tell apart.
PARTS = {
    "eqben": {*SUBSETS.values()}, "genecis": {*GeneCis.counts}, "cirr": {GLOBAL}, "bivlc": {*SugarCrepe.files},
    "flickr30k": {IMAGE_TO_TEXT, TEXT_TO_IMAGE}, "coco": {IMAGE_TO_TEXT, TEXT_TO_IMAGE}, "colorswap": {"test"},
}  # fmt: skip


def test_figures_of_papers_are_those_that_are_measured_and_can_be() -> None:
    assert {row.benchmark for row in ROWS} <= {*BENCHMARKS.kinds(), "colorswap"}  # of twinset-extras
    checked = 0
    for row in ROWS:
        named = {part for subset in row.figures for part in row.pooled.get(subset, [subset])}
        assert named - {""} <= PARTS.get(row.benchmark, set()) and row.source.rsplit(", ", 1)[1], row
        for figures in row.figures.values():
            assert figures.keys() <= FIGURES and all(0 <= value <= 100 for value in figures.values()), row
            recalls = [figures[name] for name in figures if name.startswith("recall@")]
            assert recalls == sorted(recalls), row
            if {"text", "image", "group"} <= figures.keys():
                checked += 1
                assert figures["group"] <= min(figures["text"], figures["image"]), row
    assert checked > 100


def of_table(name: str) -> dict[str, dict[str, dict[str, float]]]:
    return {row.name: row.figures for row in ROWS if row.source.endswith(name) and row.benchmark == "eqben"}


def test_means_are_those_of_the_cells() -> None:
    """Of the paper's best, by hand from EqBen's Table 3; of GeneCIS as it prints them, Tables 2 and 6."""
    row = next(row for row in ROWS if "Tables 3 and 11" in row.source and row.name == "FIBER + EqSim")
    natural = (58.26 + 57.10 + 45.10 + 21.55 + 26.07 + 10.58 + 29.93 + 23.42 + 12.64) / 9
    synthetic = (51.90 + 48.40 + 37.38 + 90.81 + 85.98 + 80.70) / 6
    assert row.mean("natural") == pytest.approx(natural) and row.mean("synthetic") == pytest.approx(synthetic)
    printed = {"Image + text (RN50x4)": 12.6, "Combiner (CC3M, ViT-B/16)": 17.6, "Freezing entire backbone": 15.1}
    means = {row.name: row.mean(MEAN) for row in ROWS if row.benchmark == "genecis" and row.name in printed}
    assert means == pytest.approx(printed, abs=0.051)
    whole, parts = of_table("Tables 3 and 11"), of_table("Table 4")
    parts = {name: figures for name, figures in parts.items() if "eq-kubric-location" in figures}
    assert len(parts) == 14
    for name, figures in parts.items():  # LXMERT: 7.31 for 7.26
        assert mean(part["group"] for part in figures.values()) == pytest.approx(
            whole[name]["eq-kubric"]["group"], abs=0.06
        ), name
    # Of several subsets together, over the rows that are asked it.
    of_parts = {"x": (2, Figure(100.0, rows=2)), "y": (10, Figure(0.0, rows=1))}
    measured = {part: Measured(n, n, None, {"group": figure}) for part, (n, figure) in of_parts.items()}
    paper = Published("b", "n", "published", {}, "source", {"xy": ["x", "y"]}, (("xy", "group"),), {})
    assert _columns(measured, paper) == [pytest.approx(200 / 3)]


TABLE = Table(
    "made",
    "50 % & more",
    ["subset", "model", "n", "text", "image"],
    2,
    [
        Row(["one", "a_b", 1234, Figure(50.0, 62.5, 40.0, 60.0), Figure(1 / 3)]),
        Row(["one", "chance", None, Figure(25.0), None], "chance", "A paper, Table 1"),
        Row(["two", "a_b", 1, Figure(0.0, 0.0, 0.0, 0.0), Figure(100.0)]),
    ],
)


def test_csv_has_every_number_of_a_figure_repeats_names_and_holds_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(TABLE))))
    assert list(rows[0]) == [
        *("subset", "model", "n", "text", "text expected", "text low", "text high", "image", "kind", "source", "table")
    ]
    assert [float(rows[0][name]) for name in ("text", "text expected", "text low", "text high")] == [50, 62.5, 40, 60]
    assert rows[1]["subset"] == "one" and rows[1]["text expected"] == "" and rows[1]["source"] == "A paper, Table 1"
    assert rows[0]["table"] == "50 % & more" and rows[0]["n"] == "1234" and rows[0]["image"] == "0.333333"
    names = [Row([name, 1]) for name in ("=cmd|x", "+1", "-1", "@a", "\tb", "plain", "two\rlines")]
    text = as_csv(Table("t", "T", ["=cmd|x", "n"], 1, names))  # a score file names what its scoring cost
    lines = [line[0] for line in csv.reader(io.StringIO(text, newline=""))]
    assert lines == ["'=cmd|x", "'=cmd|x", "'+1", "'-1", "'@a", "'\tb", "plain", "two lines"]


def test_markdown_and_latex_show_intervals_and_the_best() -> None:
    text = as_latex(TABLE)
    assert r"one & a\_b & 1,234 &" in text and " & chance & -- & 25.00 & -- \\\\ % A paper, Table 1" in text
    assert r"\caption{50 \% \& more}" in text and text.count(r"\midrule") == 2
    assert as_latex(Table("t", "T", ["m", "d"], 1, [Row(["a", Figure(-1, low=-2, high=3)])])).count("$-$") == 2
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body.splitlines() if "&" in line} == {4}
    rows = [Row(["a", Figure(50.0, low=40.0, high=60.0)]), Row(["b", Figure(20.0, sd=1.5)]), Row(["c", Figure(0.0)])]
    table = Table("t", "T", ["model", "group"], 1, rows)
    lines = ["| a | **50.00 [40.00, 60.00]** |", "| b | <u>20.00 ± 1.50</u> |", "| c | 0.00 |"]
    assert as_markdown(table).splitlines()[4:] == lines
    assert r"| a\|\* | −1.00 |" in as_markdown(Table("t", "T", ["m", "d"], 1, [Row(["a|*", Figure(-1)])]))
    assert r"\underline{20.00 $\pm$ 1.50}" in as_latex(compact(table))


def test_figures_of_papers_stay_with_their_heads_and_the_best_are_marked() -> None:
    heads = ["model", "n", "groups", "ties %", "text", "ipos2t", "group", "mean_equivariance_text"]
    rows = [
        Row(["ours", 4, 4, 0.0, Figure(50.0, 51.0, 40.0, 60.0), Figure(70.0), Figure(25.0), Figure(0.1)]),
        Row(["theirs", None, None, None, Figure(60.0), None, Figure(25.001), None], "published", "Table 1"),
        Row(["third", None, None, None, Figure(40.0), None, None, None], "published", "Table 1"),
        Row(["chance", None, None, None, Figure(99.0), None, Figure(16.67), None], "chance"),
    ]
    small = compact(Table("all", "title", heads, 1, rows))
    assert small.heads == ["model", "I2T", "Group"] and small.rows[0].cells[0] == "chance"
    assert compact(Table("all", "title", heads, 1, rows), {"ipos2t"}).heads == ["model", "I2T", "ipos2t", "Group"]
    assert marked(small) == {(2, 1): BEST, (1, 1): SECOND}  # where all tie, none is the best
    tied = [Row([name, Figure(value)]) for name, value in (("a", 25.0), ("b", 25.001), ("c", 20.0))]
    assert marked(Table("all", "title", ["model", "Group"], 1, tied)) == {(0, 1): BEST, (1, 1): BEST, (2, 1): SECOND}
    moved = [Row([name, Figure(value)]) for name, value in (("a", 0.1), ("b", 0.4))]
    assert marked(Table("all", "title", ["model", "mean_equivariance_text"], 1, moved)) == {}, "best at 0"
    ranked = [Row(["a", Figure(0.5012)]), Row(["b", Figure(0.5049)])]
    lines = as_markdown(compact(Table("all", "title", ["model", "mean_kendall"], 1, ranked))).splitlines()
    assert lines[4:] == ["| a | <u>0.5012</u> |", "| b | **0.5049** |"], "with as many decimals as it is shown with"
    heads = ["examples", "n", "text detector", "image detector", "i2t", "t2i", "group"]
    rows = [Row([name, 9, *[Figure(value)] * 5], "part") for name, value in (("all", 40.0), ("swap", 70.0))]
    small = compact(Table("detectors", "title", heads, 1, rows))  # subsets of one model, of which none is best
    assert small.heads == ["examples", "Text det.", "Img det.", "I2T", "T2I", "Group"] and marked(small) == {}
