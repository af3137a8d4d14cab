"""Carries out a grid: trains the arms one after the other, scores each, and writes the tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse, naming
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.detectors import detector_outcomes, read_detectors, told_right
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.run import encoded, features_of
from twinset.evaluation.examples import Benchmark, LeftOut
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.matching import CORRECT, RELEASED, TOLD
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.report.tables import Row, Table, as_csv, as_markdown
from twinset.evaluation.run import run as score
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.shards.storage.whole_file import local_folder_of, whole_file, write_text
from twinset.training.grids.design import MEAN, Design, Test, folder, with_folders
from twinset.training.tasks import check_task, train_task

NOTE = (
    "Percent, the mean over seeds. In brackets a 95 % interval by resampling groups of the test, and seeds where there "
    "are several. Rows with (paper) are what the paper reports, of its own models and data."
)
Figures = Mapping[str, Figure]


def run_grid(
    design: Design, out: Path, running: Running | None = None, on_progress: Callable[[str], None] = print
) -> list[Path]:
    """Train and score all arms, in this process, into a folder; returns the tables. The same call resumes.

    Raises `WrongUse`: a place, a benchmark or the settings of an arm are wrong, before the first arm.
    """
    # Absolute, since runs keep the paths of others and may be resumed from another folder.
    out, running = local_folder_of(out).absolute(), running or Running()
    arms = {name: arm for name, arm in design.arms.items() if arm.data or arm.model}
    for name, arm in arms.items():
        if lacking := [data for data in (*arm.data, *arm.validation) if not design.data[data]]:
            given = f"--set data.{lacking[0]}=PLACE"
            raise WrongUse(f"data.{lacking[0]}: arm {name} needs it; write {given}, or name --only the arms without it")
        if arm.data:
            with naming(f"arms.{name}"):
                seed = min(design.seeds)
                check_task(arm.task, _settings(design, name, seed, out), folder(out, name, seed), models=not arm.after)
    tests = _opened_tests(design)
    scores: dict[str, dict[str, list[Path]]] = {test: {} for test in tests}
    runs = [(name, seed) for seed in sorted(design.seeds) for name in arms]
    for number, (name, seed) in enumerate(runs, 1):
        arm, run = arms[name], f"{name} seed {seed}"
        place = folder(out, name, seed)
        with naming(run):
            trained = train_task(arm.task, _settings(design, name, seed, out), place) if arm.data else {}
            model = with_folders(arm.model, out, seed) or trained["model"]
            for test, benchmark in tests.items():
                path = scores_path(out, test, run)
                try:
                    if arm.task == "detectors":
                        _write_detected(benchmark, place, model, path, running)
                    else:
                        score([benchmark], [model], out, None, running, called={model: run})
                except NotApplicable:
                    continue
                scores[test].setdefault(name, []).append(path)
        on_progress(f"[{number} of {len(runs)}] {run}: done")
    return _write_tables(design, scores, out)


def _settings(design: Design, arm: str, seed: int, out: Path) -> dict[str, Any]:
    """The settings of a run as plain values."""
    row = design.arms[arm]
    own = {name: with_folders(value, out, seed) for name, value in row.settings.items()}
    own["data"] = [place for name in row.data for place in design.data[name]]
    if row.validation:
        own["validation"] = [place for name in row.validation for place in design.data[name]]
    return {**design.common.get(row.task, {}), **own, "seed": seed}


def _opened_tests(design: Design) -> dict[str, Reader]:
    """The tests that have a folder, each with an example at least."""
    opened = dict[str, Reader]()
    for name, test in design.tests.items():
        if place := test.folder or design.folders.get(test.benchmark):
            with naming(f"tests.{name}"):
                opened[name] = reader = open_benchmark(test.benchmark, place, test.subsets)
                reader.name, reader.title, reader.categories = name, test.title, test.categories
                next(example for example in reader.examples() if not isinstance(example, LeftOut))  # or it raises
    if not opened:
        raise WrongUse("folders: name one of a benchmark at least, as in --set folders.twinset=DIR")
    return opened


def _write_detected(benchmark: Benchmark, place: Path, model: str, path: Path, running: Running) -> None:
    """Write what detectors tell apart of a test, as `evaluation.metrics` reads it (BiVLC, Tables 3 and 4).

    Raises `NotApplicable`: it has no pairs, or two images a pair and the detectors are of captions alone.
    """
    try:
        pairs = read_pairs(benchmark)
    except WrongUse as error:
        raise NotApplicable(str(error)) from error
    detectors = read_detectors(place)
    texts, images = encoded(pairs, features_of(model, None, running, detectors))
    usable = np.ones(len(pairs), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    of_texts = detectors.text(texts[usable])
    if images is None:  # it is natural
        outcomes = {CORRECT[0]: of_texts[:, 0] < of_texts[:, 1]}
    elif detectors.image is None:
        raise NotApplicable(f"{benchmark.title}: has images of both kinds, and the detectors are of captions alone")
    else:
        of_images = detectors.image(images[usable])
        of_pairs = detector_outcomes(of_texts, of_images)
        outcomes = {name: of_pairs[name] for name in RELEASED[0]}
        outcomes |= dict(zip(TOLD, [*told_right(of_texts).T, *told_right(of_images).T], strict=True))
    with whole_file(path) as unfinished:
        columns = {"key": np.flatnonzero(usable), "group": pairs.groups[usable], **outcomes}
        pq.write_table(pa.table(columns), unfinished)


def _write_tables(design: Design, scores: Mapping[str, Mapping[str, Sequence[Path]]], out: Path) -> list[Path]:
    """Write ``grid.md`` and ``grid.csv``; returns their paths. scores: by test and arm, the file of each seed."""
    measured = {
        test: {arm: measure(paths, label=test).all.figures for arm, paths in files.items()}
        for test, files in scores.items()
    }
    tables = []
    for name, test in design.tests.items():
        if arms := _means(test, measured, design.arms) if test.mean_of else measured.get(name):
            tables.append(Table(name, test.title, ["arm", *test.heads], 1, [*_rows(design, name, arms)]))
    made = {table.name for table in tables}
    left_out = "; ".join(test.title for name, test in design.tests.items() if name not in made)
    lacking = f"\nNot tested here: {left_out}.\n" if left_out else ""
    text = "\n".join(f"## {as_markdown(table, {})}" for table in tables)
    write_text(out / "grid.md", f"# {design.paper}\n\n{NOTE}\n\n{text}{lacking}")
    cells = [
        Row([table.title, row.cells[0], head, cell], row.kind, row.source)
        for table in tables
        for row in table.rows
        for head, cell in zip(table.heads[1:], row.cells[1:], strict=True)
        if cell is not None
    ]
    write_text(out / "grid.csv", as_csv(Table("grid", design.paper, ("test", "arm", "figure", "percent"), 3, cells)))
    return [out / "grid.md", out / "grid.csv"]


def _means(test: Test, measured: Mapping[str, Mapping[str, Figures]], arms: Iterable[str]) -> dict[str, Figures]:
    """The mean of each arm that has all figures."""
    means = dict[str, Figures]()
    for arm in arms:
        with suppress(KeyError):  # a figure that it lacks
            values = [measured[part][arm][name].value for part in test.mean_of for name in test.figures]
            means[arm] = {MEAN: Figure(fmean(values))}
    return means


def _rows(design: Design, test: str, measured: Mapping[str, Figures]) -> Iterator[Row]:
    heads = design.tests[test].heads
    for name, arm in design.arms.items():
        if name in measured:
            yield Row([arm.title, *(measured[name].get(head) for head in heads)])
        if paper := arm.paper.get(test):
            cells = [Figure(paper[head]) if head in paper else None for head in heads]
            yield Row([f"{arm.title} (paper)", *cells], "published", design.paper)
