"""The report of a run: what stands on the page, parts of a benchmark, seeds of a model, and what chance gets."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean, mean, stdev

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.report import made_scores
from tests.evaluation.report.made_scores import SCHEMAS, SCRIPT, Made, errors, matchings, ranks, released, save
from twinset.cli.main import main
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.examples import MATCHING_CHOICES
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.matching import FINER
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report import page
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.results import TWO_IMAGES, measured_run, recall

PROBED = {
    "sees": "captions", "guess": "shorter", "n": 15, "groups": 10, "right": 90.0, "expected": 93.25,
    "ties": 6.5, "low": 81.0, "high": 99.0, "flagged": True, "solves": True,
}  # fmt: skip
PROBES = {
    "all": {"pairs": 30, "groups": 10, "same_bag": 10.0, "probes": {}},
    "by": {"first": {"pairs": 15, "groups": 10, "same_bag": 0.0, "probes": {"characters": PROBED}}},
    "notes": ["<i>second</i>: too small"],
}


class Page(HTMLParser):
    """The cells of a page's rows, as one line each; and that it neither runs nor loads anything."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(content)
        assert not re.search(r"<script|<[^>]*\son\w+=", content)
        assert "Content-Security-Policy" in content and "default-src 'none'" in content

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += {"tr": "\n", "td": "|", "th": "|"}.get(tag, "")
        loaded = [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        assert all(value.startswith(("data:", "#")) for value in loaded)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of a report."""
    monkeypatch.setattr(page, "plot", lambda panels: "")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of two models on pairs, one on galleries, one on videos, with probes, and its report."""
    out = tmp_path_factory.mktemp("run")
    save(out, "winoground", f"A {SCRIPT}", matchings(30, 3, 0.0), SCHEMAS["matching"])
    counted = {"left_out": {}, "unanswered": {"refusal": 2}}
    save(out, "winoground", "open_clip:B_32", matchings(30, 4, 0.1), SCHEMAS["matching"], **counted)
    save(out, "galleries", "open_clip:B_32", ranks(20), SCHEMAS["query"])
    save(out, "gebc", "open_clip:B_32", errors(12), SCHEMAS["grounding"])
    (out / "probes").mkdir()
    (out / "probes" / "winoground.json").write_text(json.dumps(PROBES))
    with released(winoground={"first": 15, "second": 15}, gebc={"first": 6, "second": 6}):
        write_report(out, {"winoground": Made("winoground", 30)}, resamples=200)
        yield out


def results(out: Path) -> dict[str, dict[str, object]]:
    return json.loads((out / "results.json").read_text())["benchmarks"]  # type: ignore[no-any-return]


def test_figures_stand_with_intervals_ties_chance_papers_and_probes(run: Path) -> None:
    text = Page((run / "report.html").read_text()).text
    of_model = results(run)["winoground"]["models"]["open_clip:B_32"]  # type: ignore[index]
    everything = of_model["all"]
    low, high = everything["interval"]["text"]
    assert f"|{everything['text']:.2f}{low:.2f} to {high:.2f}" in text
    tied = [name for name, value in everything["expected"].items() if f"{value:.2f}" != f"{everything[name]:.2f}"]
    assert tied and f"expected {everything['expected'][tied[0]]:.2f}" in text
    assert of_model["by_subset"].keys() == {"first", "second"} and f"|first|A {SCRIPT}|15" in text
    assert "|Human (MTurk)2|–|–|–|89.50|88.50|85.50|" in text, "with the number of its source"
    assert "Thrush et al., Winoground, 2022, Table 3" in text
    assert "|chance|–|–|–|6.67|" in text, "of galleries it is counted"
    assert "|FIBER + FT (F30K)|–|–|–|30.16|" in text, "the mean over thresholds comes first, as it is measured"
    assert "A blind probe solves first: characters, shorter." in text and "<i>second</i>: too small" in text
    assert "|first|characters|shorter|15|10|93.2581.00 to 99.00|" in text
    assert f"|winoground|A {SCRIPT}|missing image|3" in text
    assert "winoground,open_clip:B_32,refusal,2" in (run / "tables" / "unanswered.csv").read_text()
    lines = results(run)["winoground"]["differences"]
    assert [line["figure"] for line in lines] == ["text", "image", "group"]  # type: ignore[index, attr-defined]
    assert f"|{lines[0]['difference']:.2f}" in text and results(run)["galleries"]["differences"] == []  # type: ignore[index]


@pytest.mark.usefixtures("without_plots")
def test_rows_that_one_model_lacks_are_named_beside_the_chart(tmp_path: Path) -> None:
    save(tmp_path, "winoground", "a", matchings(9, 1, 0.2), SCHEMAS["matching"])
    save(tmp_path, "winoground", "b", matchings(8, 2, 0.2), SCHEMAS["matching"])
    html = write_report(tmp_path, resamples=20)[0].read_text()
    assert "a and b: 1 rows of " in html
    assert html.count('class="chart"') == 3 and html.count('class="dot"') == 6, "text, image, group of two models"


def test_a_report_again_is_the_same_without_the_benchmark(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(run, again)
    before = {path.name: path.read_bytes() for path in again.rglob("*.*") if path.is_file()}
    shutil.rmtree(again / "tables")
    written = write_report(again, resamples=200)
    assert {again / "report.html", again / "results.json", again / "tables" / "winoground-all.tex"} <= set(written)
    assert {path.name: path.read_bytes() for path in again.rglob("*.*") if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX on this machine: texlive-latex-recommended")
def test_a_real_tex_reads_every_table(tmp_path: Path) -> None:
    for model in ("a_b", "c & d # 50 %", "<unk>", "f^g~h"):
        save(tmp_path, "winoground", model, matchings(9, 1, 0.2), SCHEMAS["matching"])
    tables = [path for path in write_report(tmp_path, seeds={"± 2": ["a_b", "<unk>"]}) if path.suffix == ".tex"]
    assert "winoground-all.tex" in {path.name for path in tables}
    inputs = "".join(f"\\input{{{path}}}\\clearpage\n" for path in tables)
    packages = "\\usepackage{booktabs}\\usepackage[T1]{fontenc}\\usepackage{lmodern}"
    document = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{inputs}\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(document, "utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:].decode("utf-8", "replace")


MIT, PAPERS = BENCHMARKS.find("mit-states").title, r"Combiner \(CC3M|FIBER \+ EqSim"


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(
    ("benchmark", "subset", "lost", "title", "shown"),
    [
        ("winoground", "test", {"missing image": 392}, "W", False),
        ("winoground", "test", {}, "W", True),
        ("genecis", "focus-object", {}, "W", True),
        ("mit-states", "test", {}, MIT, True),
        ("mit-states", "test", {}, f"{MIT}, 8 of each subset (seed 0)", False),
    ],
)
def test_papers_stand_beside_what_is_whole(
    tmp_path: Path, benchmark: str, subset: str, lost: dict[str, int], title: str, shown: bool
) -> None:
    pairs, whole = benchmark == "winoground", {"genecis": {subset: 8, "change-object": 8}}
    rows = [{**row, "subset": subset} for row in (matchings(8, 0, 0.5) if pairs else ranks(8, 10))]
    save(tmp_path, benchmark, "m", rows, SCHEMAS["matching" if pairs else "query"], left_out=lost, title=title)
    with released(**whole, winoground={"test": 8 if shown else 400}):
        html = write_report(tmp_path, resamples=0)[0].read_text()
    texts = [html, *(path.read_text() for path in (tmp_path / "tables").glob("winoground-all*"))]
    assert len(texts) == 1 + 3 * pairs and all(bool(re.search(PAPERS, text)) == shown for text in texts)
    assert not pairs or all(f"W (n = 8{'' if shown else ' of 400'}): all examples" in text for text in texts)
    warned = "".join(f"; left out: {count} {reason}. The figures are of" for reason, count in lost.items())
    assert warned in html and ("what papers report of the whole is not shown" in html) == bool(lost)
    beside = [path.read_text() for path in (tmp_path / "tables").glob("genecis-papers-*.csv")]
    assert all(re.search(r"m,.*\d\.", text) for text in beside[:1])


def test_both_directions_of_retrieval_have_figures_of_their_own_and_none_together(tmp_path: Path) -> None:
    ways = ("image-to-text", "text-to-image")
    rows = [{**row, "subset": ways[n % 2], "higher": n % 2} for n, row in enumerate(ranks(8, 30))]
    about = {"apart": True, "left_out": {}, "title": "Flickr30k"}
    paths = [save(tmp_path, "flickr30k", name, rows, SCHEMAS["query"], **about) for name in ("a", "b")]
    measured = measure(paths[0], ["subset"], resamples=0)
    assert not measured.all.figures and "no figures of all rows" in measured.notes[0]
    assert {way: part.figures["recall@1"].value for way, part in measured.by.items()} == {ways[0]: 100, ways[1]: 0}
    plain = pq.read_table(paths[0]).replace_schema_metadata()
    for tables in ((paths[1], paths[0]), (plain, paths[0])):
        assert {*compare(*tables, resamples=0).table["rows"]} == {*ways}
    with released(flickr30k=dict.fromkeys(ways, 4)):
        write_report(tmp_path, resamples=0)
    of_model = results(tmp_path)["flickr30k"]["models"]["a"]  # type: ignore[index]
    assert "recall@1" not in of_model["all"] and of_model["by_subset"]["image-to-text"]["recall@1"] == 100
    tables = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"flickr30k-by-subset.csv", "flickr30k-papers-1.csv"} <= tables and "flickr30k-all.csv" not in tables
    assert "image-to-text: recall@1" in (tmp_path / "tables" / "flickr30k-differences.csv").read_text()


RUNS = ["open_clip:B:seed-0.pt", "open_clip:B:seed-1.pt", "open_clip:B:seed-2.pt"]


@pytest.mark.usefixtures("without_plots")
def test_the_mean_of_seeds_stands_with_its_deviation_and_an_interval(tmp_path: Path) -> None:
    out = tmp_path
    for seed, model in enumerate([*RUNS, "open_clip:L"]):
        save(out, "winoground", model, matchings(60, seed, 0.05 * seed), SCHEMAS["matching"])
    assert main(["eval", "report", str(out), "--seeds", "ours=open_clip:B:seed-*"]) == 0
    reported = results(out)["winoground"]
    ours, models = reported["seeds"]["ours"], [reported["models"][model] for model in RUNS]  # type: ignore[index]
    assert ours["models"] == RUNS and "sd" not in models[0]["all"]
    parts = [(ours["all"], [model["all"] for model in models])]
    parts += [(ours["by_subset"]["first"], [model["by_subset"]["first"] for model in models])]
    for of_mean, runs in parts:
        for figure in ("text", "group", "mean_equivariance_text"):
            values = [run[figure] for run in runs]
            assert of_mean[figure] == pytest.approx(fmean(values))
            assert of_mean["sd"][figure] == pytest.approx(stdev(values))
        low, high = of_mean["interval"]["text"]
        # The seeds differ, so their mean is less certain than each of them.
        assert high - low > max(run["interval"]["text"][1] - run["interval"]["text"][0] for run in runs)
    paths = sorted(out.glob("scores/winoground/*"))[:1]
    alone, same = (measure(files, resamples=100).all.figures["group"] for files in (paths, paths * 3))
    assert (same.value, same.low, same.high, same.sd) == (alone.value, alone.low, alone.high, 0), "runs that agree"
    value, sd = ours["all"]["group"], ours["all"]["sd"]["group"]
    assert f"{value:.2f} ± {sd:.2f}" in (out / "report.html").read_text()
    for ending, sign in (("tex", r"$\pm$"), ("md", "±")):
        table = (out / "tables" / f"winoground-all.{ending}").read_text()
        assert f"{value:.2f} {sign} {sd:.2f}" in table and "ours, mean of 3" in table and "seed-0" not in table


def test_of_two_images_chance_is_the_share_of_all_orders_of_four_scores() -> None:
    s00, s01, s10, s11 = np.array([*permutations((1, 2, 4, 8))]).T
    right = dict(zip(FINER, (s00 > s01, s11 > s10, s00 > s10, s11 > s01), strict=True))
    right |= {"text": right["ipos2t"] & right["ineg2t"], "image": right["tpos2i"] & right["tneg2i"]}
    right |= {"group": right["text"] & right["image"], "group_match": s00 + s11 > s01 + s10}
    assert pytest.approx({name: 100 * of_orders.mean() for name, of_orders in right.items()}) == TWO_IMAGES


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, 8))))
def test_recall_is_the_share_of_all_first_entries_with_a_target(sizes: tuple[int, int, int]) -> None:
    entries, targets, k = sizes
    firsts = list(combinations(range(entries), min(k, entries)))
    hit = mean(any(entry < targets for entry in first) for first in firsts)
    assert recall(k, entries, targets) == pytest.approx(100 * hit)


def test_chance_is_that_of_choices(tmp_path: Path) -> None:
    four = [made_scores.identity(n) | dict.fromkeys(FINER, float(n < 5)) for n in range(12)]
    save(tmp_path, "four", "vlm/choose:F", four, MATCHING_CHOICES)
    pairs = [made_scores.identity(n) | {"pairing": 0.5, "order12": 1.0, "order21": 0.0} for n in range(12)]
    save(tmp_path, "whole", "vlm/eqben:F", pairs, MATCHING_CHOICES)
    save(tmp_path, "mixed", "vlm/choose:F", four, MATCHING_CHOICES)
    save(tmp_path, "mixed", "a", matchings(12, 0, 0.1), SCHEMAS["matching"])
    for model, entries in (("a", 10), ("b", 100)):
        save(tmp_path, "sizes", model, ranks(12, entries), SCHEMAS["query"])
    by_chance = {measured.name: measured.chance for measured in measured_run(tmp_path, resamples=0)}
    assert by_chance["four"][""]["group"] == 6.25 and by_chance["four"][""]["text"] == 25
    assert by_chance["whole"][""] == {"group": 50, "order12": 50, "order21": 50}
    assert by_chance["mixed"][""]["text"] == 25
    assert "group" not in by_chance["mixed"][""], "scores get 16.67 by chance, choices 6.25"
    assert "recall@1" not in by_chance["sizes"].get("", {}), "10 % of a, 1 % of b"
