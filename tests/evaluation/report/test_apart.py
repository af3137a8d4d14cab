"""Benchmarks whose subsets ask different questions, as both directions of retrieval: no figure is over all of them."""

import json
from pathlib import Path

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, ranks, save
from twinset.cli.main import main
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report

DIRECTIONS = ("image-to-text", "text-to-image")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two models; image to text finds all at once, text to image one of three."""
    for model in ("a", "b"):
        rows = [
            {**row, "subset": DIRECTIONS[n % 2], "higher": 0 if n % 2 == 0 or n % 3 == 0 else 60, "entries": 100}
            for n, row in enumerate(ranks(60))
        ]
        save(tmp_path, "flickr30k", model, rows, SCHEMAS["query"], left_out={}, apart=True)
    return tmp_path


def test_no_figure_is_over_both_directions(out: Path) -> None:
    path = out / "scores" / "flickr30k" / "model-0.parquet"
    found = measure(path, resamples=0)
    assert found.all.figures == {} and found.all.n == 60
    assert {name: one.figures["recall@1"].value for name, one in found.by.items()} == {
        "image-to-text": 100.0,
        "text-to-image": pytest.approx(100 / 3),
    }
    lines = compare(path, path.with_name("model-1.parquet"), resamples=0).table
    assert {line.rows for line in lines} == {*DIRECTIONS}


def test_a_report_has_both_and_no_mean(out: Path) -> None:
    names = {path.name for path in write_report(out, resamples=0)}
    assert "flickr30k-by-subset.csv" in names and not [name for name in names if name.startswith("flickr30k-all")]
    compact = (out / "tables" / "flickr30k-by-subset-compact.md").read_text()
    assert "| model | image-to-text `R@1` |" in compact and "mean" not in compact
    held = json.loads((out / "results.json").read_text())["benchmarks"]["flickr30k"]
    assert not [name for name in held["models"]["a"]["all"] if name.startswith("recall")]
    assert held["models"]["a"]["by_subset"]["image-to-text"]["recall@1"] == 100.0
    assert {one["rows"] for one in held["differences"]} == {*DIRECTIONS}
    assert "text-to-image: recall@1" in (out / "tables" / "flickr30k-differences.csv").read_text()


def test_the_terminal_shows_both(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(out / "scores" / "flickr30k" / "model-0.parquet"), "--resamples", "0"]) == 0
    shown = capsys.readouterr().out
    assert "image-to-text" in shown and "text-to-image" in shown and "66.67" not in shown


@pytest.mark.parametrize("name", ["flickr30k", "coco", "cirr", "spec", "vsr", "aro", "aro-order", "whatsup"])
def test_benchmarks_whose_papers_report_subsets_by_themselves(name: str) -> None:
    assert BENCHMARKS.find(name).apart


@pytest.mark.parametrize("name", ["sugarcrepe", "valse", "eqben", "genecis", "winoground"])
def test_benchmarks_whose_papers_report_a_mean(name: str) -> None:
    assert not BENCHMARKS.find(name).apart
