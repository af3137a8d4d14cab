"""Carries out a grid: arms in the order of their DAG, then their scores; what is done already is not done again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse, naming, suggested
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.detectors import detector_outcomes, read_detectors, told_right
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.blind_probes.run import encoded, features_of
from twinset.evaluation.examples import LeftOut
from twinset.evaluation.metrics.matching import CORRECT, RELEASED, TOLD
from twinset.evaluation.report.model_answers import scores_path
from twinset.evaluation.run import run as score
from twinset.models.encoders.contract import NotApplicable, Running
from twinset.shards.storage.whole_file import local_folder_of, whole_file, write_text
from twinset.training.grids.design import Design, filled, load_design
from twinset.training.grids.table import write_tables
from twinset.training.tasks import check_task, train_task


def write_detected(benchmark: Reader, folder: Path, model: str, path: Path, running: Running) -> None:
    """Write a table of outcomes as `evaluation.metrics` reads them: of two images four, and `TOLD`, else one.

    Args:
        folder: of the detectors. model: whose features they read.

    Raises:
        NotApplicable: the test has no pairs, or two images a pair and the detectors are of captions alone.
    """
    try:
        pairs = read_pairs(benchmark)
    except WrongUse as error:
        raise NotApplicable(str(error)) from error
    detectors = read_detectors(folder)
    texts, images = encoded(pairs, features_of(model, None, running, detectors))
    usable = np.ones(len(pairs), np.bool_) if images is None else ~np.isnan(images).any(axis=(1, 2))
    of_texts = detectors.text(texts[usable])
    if images is None:  # it is natural
        found = {CORRECT[0]: of_texts[:, 0] < of_texts[:, 1]}
    elif detectors.image is None:
        raise NotApplicable(f"{benchmark.title}: has images of both kinds, and the detectors are of captions alone")
    else:
        of_images = detectors.image(images[usable])
        outcomes = detector_outcomes(of_texts, of_images)
        found = {name: outcomes[name] for name in RELEASED[0]}
        found |= dict(zip(TOLD, [*told_right(of_texts).T, *told_right(of_images).T], strict=True))
    table = pa.table({"key": np.flatnonzero(usable), "group": pairs.groups[usable], **found})
    with whole_file(path) as unfinished:
        pq.write_table(table, unfinished)


Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ArmRun:
    """An arm of one seed. folder: of its run."""

    arm: str
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """As progress and score files have it."""
        return f"{self.arm} seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """A design with its data.

    places: of data, by name. tests: folders of benchmarks, by the test's name; tests without are left out. running:
    how models are scored.
    """

    design: Design
    out: Path
    places: Mapping[str, Sequence[str]]
    tests: Mapping[str, str]
    running: Running

    def check(self) -> None:
        """Raise `WrongUse` for what is wrong, before the first arm."""
        needed = {name for arm in self.design.arms.values() for name in (*arm.data, *arm.validation)}
        if lacking := sorted(needed - self.places.keys()):
            raise WrongUse(
                f"--data: {lacking[0]} is not given ({self.design.data[lacking[0]]}); write --data {lacking[0]}=PLACE, "
                "or name the --only arms that do without"
            )
        if not self.tests:
            raise WrongUse(f"--test: name one at least, as in --test {next(iter(self.design.tests))}=DIR")
        for run in self.runs():
            arm = self.design.arms[run.arm]
            if not arm.data:
                continue
            with naming(f"arms.{run.arm}"):
                check_task(arm.task, self.settings(run), run.folder, models=not arm.after)
        for name, benchmark in self.opened.items():
            with naming(f"--test {name}"):  # raises where there is none
                next(one for one in benchmark.examples() if not isinstance(one, LeftOut))

    def runs(self) -> list[ArmRun]:
        """All runs, seed by seed, each behind those that it begins from."""
        return [ArmRun(arm, seed, self.folder(arm, seed)) for seed in self.design.seeds for arm in self.design.order]

    def folder(self, arm: str, seed: int) -> Path:
        return self.out / "arms" / arm / f"seed-{seed}"

    def settings(self, run: ArmRun) -> dict[str, Any]:
        """As `Design.settings`."""
        found: dict[str, Any] = self.design.settings(run.arm, run.seed, self._folders(run.seed), self.places)
        return found

    def levels(self) -> list[list[ArmRun]]:
        """Runs that are trained, in groups of which none begins from another of its group."""
        depth: dict[str, int] = {}
        for arm in self.design.order:
            depth[arm] = 1 + max((depth[one] for one in self.design.arms[arm].after), default=-1)
        trained = [run for run in self.runs() if self.design.arms[run.arm].data]
        found = [[run for run in trained if depth[run.arm] == level] for level in range(max(depth.values()) + 1)]
        return [level for level in found if level]

    def train(self, run: ArmRun) -> dict[str, Any]:
        """Train a run, resume it, or find it finished; what `twinset.train` gives is kept beside it."""
        with naming(run.name):
            found = train_task(self.design.arms[run.arm].task, self.settings(run), run.folder)
        kept = {name: found[name] for name in ("model", "sha256", "steps", "halves") if name in found}
        write_text(self.kept(run), json.dumps(kept, indent=1, sort_keys=True, default=str) + "\n")
        return found

    @staticmethod
    def kept(run: ArmRun) -> Path:
        """Where `train` keeps what it gives."""
        return run.folder.with_suffix(".json")

    def result(self, run: ArmRun) -> dict[str, Any]:
        """What a finished run left. Raises `WrongUse` where it is not finished."""
        try:
            found: dict[str, Any] = json.loads(self.kept(run).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise WrongUse(f"{run.folder}: is not trained yet ({error}); run the same grid again") from error
        return found

    def score(self, run: ArmRun) -> None:
        """Score a run on all tests that its model can answer, unless it was scored on the same data before."""
        arm = self.design.arms[run.arm]
        result = self.result(run) if arm.data else {}
        model = filled(arm.model, self._folders(run.seed)) if arm.model is not None else result["model"]
        before = [ArmRun(one, run.seed, self.folder(one, run.seed)) for one in sorted(arm.after)]
        weights = [self.result(one).get("sha256") for one in before if self.design.arms[one.arm].data]
        record = self.out / "scored" / f"{run.arm}-{run.seed}.json"
        try:
            done = dict(json.loads(record.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            done = {}  # there is none, or it is damaged: everything is scored again
        for test, benchmark in self.opened.items():
            decided = digest([model, result, weights, benchmark.digest(), self.running.runtime()])
            if done.get(test) == decided and self.scores(run, test).is_file():
                continue
            with naming(run.name):
                try:
                    if arm.task == "detectors":
                        write_detected(benchmark, run.folder, model, self.scores(run, test), self.running)
                    else:
                        score([benchmark], [model], self.out, None, self.running, called={model: run.name})
                except NotApplicable:
                    continue
            done[test] = decided
            write_text(record, json.dumps(done, indent=1, sort_keys=True) + "\n")

    def scores(self, run: ArmRun, test: str) -> Path:
        """The score file of a run on a test; of detectors, which score nothing, their outcomes."""
        if self.design.arms[run.arm].task == "detectors":
            return self.out / "scored" / f"{run.arm}-{run.seed}-{test}.parquet"
        return scores_path(self.out, test, run.name)

    @cached_property
    def opened(self) -> dict[str, Reader]:
        """The tests that are given, in the order of the design."""
        found = {}
        for name, test in self.design.tests.items():
            if name in self.tests:
                with naming(f"--test {name}"):
                    one = open_benchmark(test.benchmark, self.tests[name], test.subsets)
                one.name, one.title, one.categories = name, test.title, test.categories
                found[name] = one
        return found

    def _folders(self, seed: int) -> dict[str, Path]:
        return {arm: self.folder(arm, seed) for arm in self.design.arms}


def open_grid(
    design: Path,
    data: Sequence[str],
    tests: Sequence[str],
    out: Path,
    settings: Sequence[str] = (),
    running: Running | None = None,
    only: Sequence[str] = (),
) -> Grid:
    """A grid from a file, with places as ``NAME=PLACE`` and settings as ``KEY.PATH=VALUE``; raises as `Grid.check`.

    tests: NAME is that of a test, or of a benchmark, for all its tests that are not named themselves.
    only: arms; all when empty.
    """
    places: dict[str, list[str]] = {}
    for text in data:
        name, place = _named("--data", text)
        places.setdefault(name, []).append(place)
    folders = dict(_named("--test", text) for text in tests)
    if len(folders) < len(tests):
        raise WrongUse("--test: names one test twice; a test has one folder")
    # Absolute, since runs keep the paths of others and may be resumed from another folder.
    loaded = load_design(design, settings)
    kinds = {name: one.benchmark for name, one in loaded.tests.items()}
    for what, given, known in (("data", places, {*loaded.data}), ("test", folders, {*kinds, *kinds.values()})):
        if unknown := [name for name in given if name not in known]:
            raise WrongUse(f"--{what} {unknown[0]}: the design has none of this name; {suggested(unknown[0], known)}")
    folders |= {name: folders[kind] for name, kind in kinds.items() if kind in folders and name not in folders}
    folders = {name: folder for name, folder in folders.items() if name in kinds}
    loaded = loaded.only(only) if only else loaded
    grid = Grid(loaded, local_folder_of(out).absolute(), places, folders, running or Running())
    grid.check()
    return grid


def _named(option: str, text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not equals or not name or not place:
        raise WrongUse(f"{option} {text}: write NAME=PLACE, NAME being one of the design")
    return name, place


def run_grid(grid: Grid, tell: Tell = print) -> dict[str, Any]:
    """Train and score all arms, in this process; returns places of the tables, and their figures."""
    runs = [run for level in grid.levels() for run in level]
    for number, run in enumerate(runs, 1):
        found = grid.train(run)
        before = "steps" in found and found["resumed_at"] == found["steps"]
        tell(f"[{number} of {len(runs)}] {run.name}: {'was finished' if before else 'trained'}")
    return score_grid(grid, tell)


def score_grid(grid: Grid, tell: Tell = print) -> dict[str, Any]:
    """Score all arms, which are trained, and write the tables."""
    for run in grid.runs():
        grid.score(run)
        tell(f"{run.name}: scored")
    scores = {test: [(run.arm, grid.scores(run, test)) for run in grid.runs()] for test in grid.opened}
    return write_tables(grid.design, scores, grid.out)
