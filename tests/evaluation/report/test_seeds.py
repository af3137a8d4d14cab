"""Runs of one model in a report: their mean with its standard deviation, and an interval over runs and groups."""

import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, matchings, ranks, released, save
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import measured_run
from twinset.evaluation.report.seeds import with_seeds

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
