"""The report of a run: everything on the page, nothing that runs or loads, the same bytes again.

Runs of one model in a report: their mean with its standard deviation, and an interval over runs and groups.
"""

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean, stdev

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluation.report.made_scores import SCHEMAS, SCRIPT, Made, errors, matchings, ranks, released, save
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.model_answers import score_files
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import measured_run
from twinset.evaluation.report.seeds import with_seeds

PROBES = {
    "all": {"pairs": 30, "groups": 10, "same_bag": 10.0, "probes": {}},
    "by": {
        "first": {
            "pairs": 15, "groups": 10, "same_bag": 0.0, "probes": {
                "characters": {
                    "sees": "captions", "guess": "shorter", "n": 15, "groups": 10, "right": 90.0, "expected": 93.25,
                    "ties": 6.5, "low": 81.0, "high": 99.0, "flagged": True, "solves": True,
                },
            },
        },
    },
    "notes": ["<i>second</i>: too small"],
}  # fmt: skip
SEED = 3


class Page(HTMLParser):
    """What a page shows, and that it neither runs nor loads anything."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.headings: list[str] = []
        self.text = ""
        self.feed(content)
        assert "script" not in self.tags and not re.search(r"<[^>]*\son\w+=", content)
        assert "Content-Security-Policy" in content and "default-src 'none'" in content

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        elif tag in ("h2", "h3"):
            self.headings.append("")
        assert all(
            (value or "").startswith(("data:", "#")) for name, value in attrs if name in ("src", "href", "srcset")
        )

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data
        inside = next((tag for tag in reversed(self.tags) if tag.strip("/") in ("td", "th", "h2", "h3")), "")
        if inside in ("td", "th"):
            self.rows[-1][-1] += data.strip()
        elif inside in ("h2", "h3"):
            self.headings[-1] += data


@pytest.fixture(scope="module")
def whole() -> Iterator[None]:
    with released(winoground={"first": 15, "second": 15}, gebc={"first": 6, "second": 6}):
        yield


@pytest.fixture(scope="module")
def made() -> dict[str, Made]:
    return {
        "winoground": Made("winoground", "matching", 30),
        "galleries": Made("galleries", "query", 20),
        "gebc": Made("gebc", "grounding", 12),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, made: dict[str, Made]) -> Path:
    """A run of two models on pairs, one on galleries, one on videos, with probes, and its report."""
    out = tmp_path_factory.mktemp("run")
    save(out, "winoground", f"A {SCRIPT}", matchings(30, SEED, 0.0), SCHEMAS["matching"], images_encoded=60)
    save(out, "winoground", "open_clip:B_32", matchings(30, SEED + 1, 0.1), SCHEMAS["matching"], left_out={})
    save(out, "galleries", "open_clip:B_32", ranks(20), SCHEMAS["query"])
    save(out, "gebc", "open_clip:B_32", errors(12), SCHEMAS["grounding"])
    (out / "probes").mkdir()
    (out / "probes" / "winoground.json").write_text(json.dumps(PROBES))
    write_report(out, made, resamples=200)
    return out


@pytest.fixture(scope="module")
def page(run: Path) -> Page:
    return Page((run / "report.html").read_text())


def row(page: Page, *begins: str) -> list[str]:
    """The first row that begins so."""
    return next(one for one in page.rows if one[: len(begins)] == list(begins))


@pytest.mark.usefixtures("whole")
def test_figures_stand_with_interval_ties_and_counts(run: Path, page: Page) -> None:
    found = json.loads((run / "results.json").read_text())["benchmarks"]["winoground"]["models"]["open_clip:B_32"]
    everything = found["all"]
    cells = row(page, "open_clip:B_32", "30", "10")
    low, high = everything["interval"]["text"]
    assert cells[4].startswith(f"{everything['text']:.2f}{low:.2f} to {high:.2f}")
    assert everything["ties"] > 0 and float(cells[3]) == pytest.approx(everything["ties"], rel=0.01)
    tied = [name for name, value in everything["expected"].items() if f"{value:.2f}" != f"{everything[name]:.2f}"]
    assert tied and f"expected {everything['expected'][tied[0]]:.2f}" in "".join(cells)
    assert found["by_subset"].keys() == {"first", "second"} and row(page, "first", f"A {SCRIPT}")[2] == "15"


@pytest.mark.usefixtures("whole")
def test_chance_people_and_papers_stand_beside(page: Page) -> None:
    assert row(page, "Human (MTurk)1")[4:7] == ["89.50", "88.50", "85.50"], "with the number of its source"
    assert row(page, "Chance1")[6] == "16.67" and "Thrush et al., Winoground, 2022, Table 3" in page.text
    assert row(page, "FIBER + EqSim4")[4] == "51.49" and "Foundation Models, 2023, Table 2" in page.text
    assert row(page, "chance", "–", "–", "–")[4] == "6.67", "of galleries it is counted"
    assert "30.16" in row(page, "FIBER + FT (F30K)")[4], "the mean over thresholds comes first, as it is measured"


@pytest.mark.usefixtures("whole")
def test_models_are_compared_on_the_same_examples(run: Path, page: Page) -> None:
    found = json.loads((run / "results.json").read_text())["benchmarks"]
    assert [one["figure"] for one in found["winoground"]["differences"]] == ["text", "image", "group"]
    assert all(one["p_holm"] >= one["p"] for one in found["winoground"]["differences"])
    first = found["winoground"]["differences"][0]
    cells = row(page, f"A {SCRIPT}", "open_clip:B_32", "text")
    assert cells[6].startswith(f"{first['difference']:.2f}") and found["galleries"]["differences"] == []


@pytest.mark.usefixtures("whole")
def test_mistakes_are_shown_with_their_pictures_and_answers(run: Path, page: Page) -> None:
    assert f"Worst mistakes of A {SCRIPT}" in page.headings
    results = json.loads((run / "results.json").read_text())["benchmarks"]
    mistakes = results["winoground"]["models"][f"A {SCRIPT}"]["mistakes"]
    assert len(mistakes) == 8 and [one["by"] for one in mistakes] == sorted(
        (one["by"] for one in mistakes), reverse=True
    )
    assert all(one["key"] in page.text and f"{one['s01']:.4f}" in page.text for one in mistakes)
    assert SCRIPT in page.text and "14 of 14 wrong entries score higher than the target" in page.text
    assert re.search(r"Found 1\.10 s, 0\.05 s\s+from the boundary", page.text)
    assert page.tags.count("img") > 8 * 2


@pytest.mark.usefixtures("whole")
def test_probes_left_out_and_cost_are_told(page: Page) -> None:
    assert "A blind probe solves first: characters, shorter." in page.text
    assert row(page, "first", "characters")[2:6] == ["shorter", "15", "10", "93.2581.00 to 99.00"]
    assert "<i>second</i>: too small" in page.text
    assert row(page, "winoground", f"A {SCRIPT}", "missing image")[3] == "3"
    assert row(page, "winoground", f"A {SCRIPT}", "12.5") == ["winoground", f"A {SCRIPT}", "12.5", "cpu", "60"]


@pytest.mark.usefixtures("whole")
def test_a_report_again_is_the_same_without_the_benchmark(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again"
    shutil.copytree(run, again)
    before = {path.name: path.read_bytes() for path in again.rglob("*.*") if path.is_file()}
    for path in again.glob("re*.*"):
        path.unlink()
    shutil.rmtree(again / "tables")
    written = write_report(again, resamples=200)
    assert {again / "report.html", again / "results.json", again / "tables" / "cost.tex"} <= set(written)
    assert {path.name: path.read_bytes() for path in again.rglob("*.*") if path.is_file()} == before


@pytest.mark.usefixtures("whole")
def test_cost_is_all_that_differs_between_runs_of_the_same_scores(tmp_path: Path) -> None:
    found = []
    for seconds in (1.0, 2.0):
        out = tmp_path / str(seconds)
        save(out, "videos", "m", errors(12), SCHEMAS["grounding"], seconds=seconds)
        write_report(out, resamples=50)
        found.append(json.loads((out / "results.json").read_text()))
    assert found[0].pop("cost") != found[1].pop("cost") and found[0] == found[1]


@pytest.mark.usefixtures("whole")
def test_models_on_different_data_are_not_compared(tmp_path: Path) -> None:
    for number, digest in enumerate(("d" * 64, "e" * 64)):
        save(tmp_path, "pairs", f"m{number}", matchings(9, number, 0.0), SCHEMAS["matching"], data_digest=digest)
    write_report(tmp_path, {"pairs": Made("pairs", "matching", 0)}, resamples=50)
    text = Page((tmp_path / "report.html").read_text()).text
    assert "different states of this benchmark" in text and "models compared" not in text
    assert "without pictures and captions" in text
    assert json.loads((tmp_path / "results.json").read_text())["benchmarks"]["pairs"]["same_data"] is False


def _spoil(path: Path, how: str) -> None:
    table = pq.read_table(path)
    if how == "metadata":
        pq.write_table(table.replace_schema_metadata(None), path)
    elif how == "json":
        pq.write_table(table.replace_schema_metadata({b"twinset": b"{"}), path)
    elif how == "columns":
        pq.write_table(table.drop_columns(["s00"]), path)
    elif how == "numbers":
        pq.write_table(table.set_column(1, "subset", pa.array([1] * len(table))), path)
    elif how == "decimals":
        pq.write_table(table.set_column(4, "s00", table["s00"].cast(pa.decimal128(38, 3))), path)
    elif how == "run":
        path.with_suffix(".run.json").write_text("")
    else:
        path.write_bytes(b"PAR1 cut off")


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("metadata", "has no metadata 'twinset'"),
        ("json", "metadata 'twinset'"),
        ("columns", "are not those of matchings, queries or groundings"),
        ("bytes", "not a Parquet file"),
        ("numbers", "column subset is not one column of string"),
        ("decimals", "column s00 is not one column of float"),
    ],
)
def test_a_file_that_is_no_score_file_is_named(tmp_path: Path, how: str, message: str) -> None:
    path = save(tmp_path, "pairs", "m", matchings(4, 0, 0.0), SCHEMAS["matching"])
    _spoil(path, how)
    with pytest.raises(WrongUse, match=re.escape(str(path)) + ".*" + re.escape(message)):
        score_files(tmp_path)


@pytest.mark.usefixtures("whole")
def test_scores_that_contradict_each_other_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "report", str(tmp_path)]) == 2
    assert "no score files" in capsys.readouterr().err
    save(tmp_path, "pairs", "m", matchings(4, 0, 0.0), SCHEMAS["matching"])
    save(tmp_path, "pairs", "m", matchings(4, 1, 0.0), SCHEMAS["matching"])
    with pytest.raises(WrongUse, match="scores of m on pairs, as in"):
        score_files(tmp_path)
    other = tmp_path / "other"
    save(other, "pairs", "m", matchings(4, 0, 0.0), SCHEMAS["matching"])
    stray = save(other, "elsewhere", "n", matchings(4, 0, 0.0), SCHEMAS["matching"])
    stray = stray.rename(other / "scores" / "pairs" / "stray.parquet")
    with pytest.raises(WrongUse, match=r"stray\.parquet: scores on elsewhere, beside those on pairs; .*of its own"):
        score_files(other)
    stray.unlink()
    save(other, "pairs", "n", ranks(4), SCHEMAS["query"])
    with pytest.raises(WrongUse, match=r"another kind than .*; remove one"):
        write_report(other)
    (other / "probes").mkdir()
    (other / "probes" / "pairs.json").write_text('{"all": 1}')
    next(other.glob("scores/pairs/model-1.parquet")).unlink()
    with pytest.raises(WrongUse, match="not a report of blind probes"):
        write_report(other)


@pytest.mark.usefixtures("whole")
def test_a_benchmark_without_its_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "report", str(tmp_path), "--benchmark", "genecis"]) == 2
    assert "'genecis': write NAME=DIR" in capsys.readouterr().err


@pytest.mark.usefixtures("whole")
@pytest.mark.slow
def test_what_lies_beside_the_scores_may_be_damaged(tmp_path: Path) -> None:
    benchmark = Made("pairs", "matching", 0)
    path = save(tmp_path, "pairs", "m", matchings(9, 0, 0.0), SCHEMAS["matching"])
    write_report(tmp_path, {"pairs": benchmark}, resamples=50)
    page = (tmp_path / "report.html").read_bytes()
    kept = tmp_path / "pictures" / "pairs.parquet"
    for spoilt in (b"PAR1 cut off", b""):
        kept.write_bytes(spoilt)
        write_report(tmp_path, resamples=50)
        assert b"without pictures and captions" in (tmp_path / "report.html").read_bytes()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"data_digest": "d" * 64}), kept)
    write_report(tmp_path, {"pairs": benchmark}, resamples=50)
    assert (tmp_path / "report.html").read_bytes() == page
    _spoil(path, "run")
    with pytest.raises(WrongUse, match=r"model-0\.run\.json: .*remove it"):
        write_report(tmp_path, resamples=50)


@pytest.mark.usefixtures("whole")
def test_more_columns_than_a_score_file_has_are_no_matter(tmp_path: Path) -> None:
    path = save(tmp_path, "pairs", "m", matchings(9, 0, 0.0), SCHEMAS["matching"])
    write_report(tmp_path, resamples=50)
    before = (tmp_path / "results.json").read_bytes()
    table = pq.read_table(path)
    pq.write_table(table.append_column("image", pa.array([b"\xff"] * len(table))), path)
    write_report(tmp_path, resamples=50)
    assert (tmp_path / "results.json").read_bytes() == before


@pytest.mark.usefixtures("whole")
def test_no_number_of_the_document_is_nan(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "m", matchings(9, 0, 0.0), SCHEMAS["matching"], seconds=float("nan"))
    write_report(tmp_path, resamples=0)

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    found = json.loads((tmp_path / "results.json").read_text(), parse_constant=refused)
    assert found["cost"]["pairs"]["m"]["seconds"] is None


RUNS = ["open_clip:B:seed-0.pt", "open_clip:B:seed-1.pt", "open_clip:B:seed-2.pt"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Three seeds of a model, and another model."""
    for seed, model in enumerate(RUNS):
        save(tmp_path, "winoground", model, matchings(60, seed, 0.05 * seed), SCHEMAS["matching"])
    save(tmp_path, "winoground", "other", matchings(60, 9, 0.1), SCHEMAS["matching"])
    return tmp_path


@pytest.mark.slow
def test_the_mean_stands_with_its_deviation_and_an_interval(out: Path) -> None:
    assert main(["eval", "report", str(out), "--seeds", "ours=open_clip:B:seed-*"]) == 0
    found = json.loads((out / "results.json").read_text())["benchmarks"]["winoground"]
    ours, each = found["seeds"]["ours"], [found["models"][model] for model in RUNS]
    assert ours["models"] == RUNS and "sd" not in each[0]["all"]
    parts = [(ours["all"], [one["all"] for one in each])]
    parts += [(ours["by_subset"]["first"], [one["by_subset"]["first"] for one in each])]
    for mean, runs in parts:
        for figure in ("text", "group", "mean_equivariance_text"):
            values = [one[figure] for one in runs]
            assert mean[figure] == pytest.approx(fmean(values))
            assert mean["sd"][figure] == pytest.approx(stdev(values))
            assert figure.startswith("mean_") == (figure not in mean["interval"])
        low, high = mean["interval"]["text"]
        assert low < mean["text"] < high
        # The seeds differ, so their mean is less certain than each of them.
        assert high - low > max(one["interval"]["text"][1] - one["interval"]["text"][0] for one in runs)
    mean, sd = ours["all"]["group"], ours["all"]["sd"]["group"]
    assert f"{mean:.2f} ± {sd:.2f}" in (out / "report.html").read_text()
    compact = (out / "tables" / "winoground-all-compact.md").read_text()
    assert f"{mean:.2f} ± {sd:.2f}" in compact and "ours, mean of 3" in compact and "| other" in compact
    assert "seed-0" not in compact and "seed-0" in (out / "tables" / "winoground-all.csv").read_text()
    latex = (out / "tables" / "winoground-all-compact.tex").read_text()
    assert rf"{mean:.2f} {{\scriptsize $\pm$ {sd:.2f}}}" in latex
    lines = (out / "tables" / "winoground-all.csv").read_text().splitlines()
    assert f"{sd:.6g}" in lines[5] and "group sd" in lines[0]
    before = (out / "report.html").read_bytes()
    write_report(out, seeds={"ours": RUNS})  # by name, the same bytes
    assert (out / "report.html").read_bytes() == before


def test_an_average_over_subsets_has_the_deviation_of_the_averages(tmp_path: Path) -> None:
    tasks = ("focus-attribute", "change-attribute", "focus-object", "change-object")
    for seed, model in enumerate(RUNS):
        rows = [
            {**row, "subset": tasks[n % 4], "higher": (row["higher"] + (seed + 1) * n % 3) % 15}
            for n, row in enumerate(ranks(80))
        ]
        save(tmp_path, "genecis", model, rows, SCHEMAS["query"])
    with released(genecis=dict.fromkeys(tasks, 20)):
        run = with_seeds(measured_run(tmp_path, resamples=50), {"ours": RUNS}, resamples=50)
    table = next(one for one in benchmark_tables(run[0]) if one.name == "genecis-papers-1")
    *each, mean = [row.cells[-1] for row in table.rows[:4]]
    values = [
        fmean(found.by[task].figures["recall@1"].value for task in tasks)
        for found in (measure(model.scored.path, ["subset"], resamples=0) for model in run[0].models)
    ]
    assert [one.value for one in each] == pytest.approx(values)
    assert (mean.value, mean.sd) == pytest.approx((fmean(values), stdev(values))) and mean.sd > 0


def test_seeds_that_are_not_there_or_do_not_fit_are_refused(out: Path) -> None:
    run = measured_run(out, resamples=0)
    for seeds, words in (
        ({"other": RUNS}, "--seeds other: is the name of a model"),
        ({"ours": [*RUNS, "absent"]}, "absent is no model of this run; it has open_clip:B:seed-0.pt"),
        ({"ours": RUNS[:1]}, "seed-0.pt alone has no spread"),
    ):
        with pytest.raises(WrongUse, match=words):
            with_seeds(run, seeds)
    save(out, "sugarcrepe", RUNS[0], matchings(6, 0, 0.1), SCHEMAS["matching"])
    with pytest.raises(WrongUse, match=r"--seeds ours: sugarcrepe: has no scores of open_clip:B:seed-1.pt, open"):
        write_report(out, seeds={"ours": RUNS})
    assert not (out / "report.html").exists()
    for model in RUNS[1:]:
        save(out, "sugarcrepe", model, matchings(6, 0, 0.1), SCHEMAS["matching"], data_digest="e" * 64)
    with pytest.raises(WrongUse, match="sugarcrepe: its seeds answered different states"):
        write_report(out, seeds={"ours": RUNS})
