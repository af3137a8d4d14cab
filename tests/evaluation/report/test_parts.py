"""Parts of a benchmark: no figure of a paper beside them, n in captions, warnings; subsets that no figure pools."""

import csv
import json
from pathlib import Path

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, matchings, ranks, released, save
from twinset.cli.main import main
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report

PAPER = "FIBER + EqSim"


def written(out: Path, name: str) -> tuple[str, str, str, list[dict[str, str]], str]:
    """Tables as LaTeX, compact LaTeX and compact Markdown, rows of CSV; and the page."""
    page = write_report(out, resamples=0)[0].read_text()
    full, short = (out / "tables" / f"{name}{ending}" for ending in ("", "-compact"))
    texts = full.with_suffix(".tex"), short.with_suffix(".tex"), short.with_suffix(".md")
    rows = list(csv.DictReader(full.with_suffix(".csv").open()))
    return (*(path.read_text() for path in texts), rows, page)


@pytest.mark.parametrize("whole", [True, False])
def test_papers_stand_beside_figures_of_the_whole_benchmark_alone(tmp_path: Path, whole: bool) -> None:
    lost = {} if whole else {"missing image": 392}
    save(tmp_path, "winoground", "m", matchings(8, 0, 0.5, ["test"]), SCHEMAS["matching"], left_out=lost, title="Wino")
    with released(winoground={"test": 8 if whole else 400}):
        tex, short, markdown, rows, page = written(tmp_path, "winoground-all")
    said = "Wino (n = 8): all examples" if whole else "Wino (n = 8 of 400): all examples"
    assert f"\\caption{{{said}}}" in tex and f"\\caption{{{said}}}" in short
    assert markdown.splitlines()[0] == said.replace("(", "\\(").replace(")", "\\)") or said in markdown
    assert {row["table"] for row in rows} == {said} and f"<h3>{said}</h3>" in page
    for text in (tex, short, markdown, page, str(rows), (tmp_path / "results.json").read_text()):
        assert (PAPER in text) == whole
    warning = "m was asked 8 of the 400 examples of the release; left out: 392 missing image."
    assert (warning in " ".join(page.split())) == (not whole)
    if not whole:
        assert page.index("was asked 8") < page.index("<table")


@pytest.mark.parametrize("short_by", [0, 1])
def test_a_table_of_subsets_stands_beside_papers_where_its_subsets_are_whole(tmp_path: Path, short_by: int) -> None:
    rows = matchings(12, 0, 0.5, ["eq-ag", "eq-sd"])
    save(tmp_path, "eqben", "m", rows, SCHEMAS["matching"])
    with released(eqben={"eq-ag": 6 + short_by, "eq-sd": 6, "eq-gebc": 9}):
        write_report(tmp_path, resamples=0)
    assert (tmp_path / "tables" / "eqben-papers-1.csv").is_file() == (short_by == 0)


def test_a_benchmark_without_a_known_size_stands_alone(tmp_path: Path) -> None:
    asked = [{**row, "subset": "test"} for row in ranks(9, 30)]
    about = {"title": "MIT-States (2015), compositional retrieval", "left_out": {}}
    save(tmp_path, "mit-states", "m", asked, SCHEMAS["query"], **about)
    write_report(tmp_path, resamples=0)
    assert "ComposeAE" not in (tmp_path / "report.html").read_text()


def test_both_directions_of_retrieval_have_figures_of_their_own_and_none_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = ("image-to-text", "text-to-image")
    rows = [{**row, "subset": ways[n % 2], "higher": n % 2} for n, row in enumerate(ranks(8, 30))]
    paths = [
        save(tmp_path, "flickr30k", name, rows, SCHEMAS["query"], apart=True, left_out={}, title="Flickr30k")
        for name in ("a", "b")
    ]
    found = measure(paths[0], ["subset"])
    assert not found.all.figures and "no figures of all rows" in found.notes[0]
    assert {name: one.figures["recall@1"].value for name, one in found.by.items()} == {ways[0]: 100, ways[1]: 0}
    assert {line.rows for line in compare(*paths).table} == {*ways}
    assert main(["eval", "scores", str(paths[0])]) == 0 and "name --by subset" in capsys.readouterr().err
    with released(flickr30k=dict.fromkeys(ways, 4)):
        write_report(tmp_path, resamples=0)
    results = json.loads((tmp_path / "results.json").read_text())["benchmarks"]["flickr30k"]
    assert "recall@1" not in results["models"]["a"]["all"]
    assert results["models"]["a"]["by_subset"]["image-to-text"]["recall@1"] == 100
    assert {one["rows"] for one in results["differences"]} == {*ways}
    tables = {path.name for path in (tmp_path / "tables").iterdir()}
    assert "flickr30k-by-subset.csv" in tables and "flickr30k-papers-1.csv" in tables
    assert "flickr30k-all.csv" not in tables
    assert "image-to-text: recall@1" in (tmp_path / "tables" / "flickr30k-differences.csv").read_text()
