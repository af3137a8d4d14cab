"""The runs of a study: which there are, in what order, where each lies, and whether it is done."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from studies.science.design import DESIGN, Design
from twinset.contracts.canonical import digest
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.dataset_parts import Part
from twinset.evaluation.report.model_answers import scores_path
from twinset.shards.records import planned_stage, subsets_in
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import write_text

BASE, PROBES, DETECTORS = "base", "probes", "detectors"
DONE = "done.json"
#: Of what a run gives: raised when the same settings give other weights or scores.
VERSION = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One base, one arm of one seed, or what else is asked of the test sets (`PROBES`, `DETECTORS`)."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        """As progress and folders have it."""
        return f"seed-{self.seed}/{self.arm}"


@dataclass(frozen=True, slots=True)
class Done:
    """What a trained run left.

    digest: of what decides its weights. weights: sha256, "" where nothing was trained. facts: such as its last loss.
    scored: digests of the data of the test sets that it was scored on.
    """

    digest: str
    weights: str
    seconds: float
    facts: Mapping[str, Any]
    scored: Mapping[str, str]


@dataclass(frozen=True)
class Study:
    """A design with its folder: ``data`` is the built world, ``runs`` what was trained and scored.

    data: of the world; another folder only where it was built elsewhere.
    """

    design: Design
    out: Path
    data: Path

    def tests(self, asks: str | None = None, tuning: bool = False) -> list[str]:
        """Test sets that were built, in the order of the design; tuning: also those that arms are not tested on."""
        there = {*subsets_in(Store(str(self.data)))}
        tests = self.design.tests.items()
        return [
            name
            for name, test in tests
            if asks in (None, test.asks) and test.tuning <= tuning and (test.subset in there or not test.optional)
        ]

    def benchmark(self, test: str) -> Part:
        """A test set as evaluation reads it."""
        one = self.design.tests[test]
        dataset = BuiltDataset(self.data, [one.subset])
        kind = str(planned_stage(dataset.store, one.subset).facts["makes"])
        return Part(dataset.place, dataset.subsets, kind, test, one.title)

    def folder(self, run: Run) -> Path:
        """Where a run lies."""
        return self.out / "runs" / run.name

    def model(self, run: Run) -> str:
        """The model that a run scores, as ``twinset eval run --model`` takes it."""
        places = {"self": self.weights(run), "base": self.weights(replace(run, arm=BASE))}
        return self.model_written(run).format(
            **places, combiner=self.folder(run) / "combiner" / "best_combiner.safetensors"
        )

    def model_written(self, run: Run) -> str:
        """The model as the design has it, with placeholders."""
        return "open_clip:{self}" if run.arm == BASE else self.design.arms[run.arm].model

    def weights(self, run: Run) -> str:
        """A trained CLIP as ``open_clip:`` takes it."""
        folder = self.folder(run) / "clip"
        return f"{folder / 'open_clip_config.json'}:{folder / 'last.safetensors'}"

    def scores(self, run: Run, test: str) -> Path:
        """The score file of a run on a test set; its name has no place in it, so that a study can be moved."""
        if run.arm != BASE and self.design.arms[run.arm].model == "open_clip:{base}":
            run = replace(run, arm=BASE)
        return scores_path(self.folder(run), test, self.model_written(run))

    def detected(self, run: Run, test: str) -> Path:
        """What the detectors of a run tell of a test set (`studies.science.detected`)."""
        return self.folder(run) / "detected" / f"{test}.json"

    @cached_property
    def data_digests(self) -> dict[str, str]:
        """Of every subset of the world."""
        store = Store(str(self.data))
        return {name: BuiltDataset(self.data, [name]).digest() for name in sorted(subsets_in(store))}

    def bases(self) -> list[Run]:
        """The bases of the calibration seeds, then those of the seeds."""
        return [Run(BASE, seed) for seed in (*self.design.calibration_seeds, *self.design.seeds)]

    def calibration(self) -> list[Run]:
        """Arms of the calibration seeds; those that no claim is about, of the first alone."""
        first, *others = self.design.calibration_seeds
        runs = [Run(arm, first) for arm in self._own(self.design.arms)]
        return runs + [Run(arm, seed) for seed in others for arm in self._own(self.design.claimed)]

    def after_base(self) -> list[Run]:
        """The arms of each seed that need a run of their own; then probes and detectors."""
        runs = [Run(arm, seed) for seed in self.design.seeds for arm in self._own(self.design.claimed)]
        # One base is enough for these: they take half a minute, and say something of the world more than of a seed.
        return [*runs, *(Run(what, self.design.seeds[0]) for what in (PROBES, DETECTORS))]

    def runs(self) -> list[Run]:
        """All runs."""
        return [*self.bases(), *self.calibration(), *self.after_base()]

    def _own(self, arms: Iterable[str]) -> list[str]:
        """Those of some arms that are asked anything and need a run of their own."""
        scored = {self.design.tests[test].asks for test in self.tests()}
        own = {name: self.design.arms[name] for name in arms}
        return [name for name, arm in own.items() if arm.asks in scored and arm.model != "open_clip:{base}"]

    def finished_arms(self) -> set[str]:
        """Arms that are trained and scored for every seed."""
        needed = {run.arm for run in self.after_base()}
        able = {name for name in self.design.claimed if self.design.arms[name].model == "open_clip:{base}"}
        able |= needed - {PROBES, DETECTORS}
        return {
            arm
            for arm in able
            if all(self.done(Run(arm if arm in needed else BASE, seed)) is not None for seed in self.design.seeds)
        }

    def wanted(self, run: Run) -> dict[str, str]:
        """Test sets that a run is scored on, with the digests of their data.

        What a calibration seed has is scored on no test set that decides.
        """
        if run.arm == PROBES:
            return {}
        # No arm is tested on what the base was tuned on. Detectors are: they decide nothing.
        no_arm, calibrating = run.arm in (BASE, DETECTORS), run.seed in self.design.calibration_seeds
        asks = "pairs" if no_arm else self.design.arms[run.arm].asks
        tests = self.tests(asks, tuning=no_arm or calibrating)
        if calibrating:
            tests = [test for test in tests if self.design.tests[test].tuning]
        return {test: self.data_digests[self.design.tests[test].subset] for test in tests}

    def digest(self, run: Run) -> str:
        """Of all that decides the weights of a run; the base of an arm is in it by its weights."""
        design = self.design
        base = None if run.arm == BASE else self.trained(replace(run, arm=BASE))
        decided: list[Any] = [VERSION, run.arm, run.seed, base.weights if base else None]
        if run.arm == PROBES:
            return digest(
                [*decided, {test: self.data_digests[design.tests[test].subset] for test in self.tests("pairs")}]
            )
        settings = design.detectors if run.arm == DETECTORS else design.settings(None if run.arm == BASE else run.arm)
        subsets = [*settings.get("data", ()), *settings.get("validation", ())]
        read = {subset: self.data_digests[subset] for subset in subsets}
        if run.arm == BASE:
            decided.append(json.loads(DESIGN.with_name(settings["model"]).read_text("utf-8")))
        decided += [read, json.loads(json.dumps(settings))]
        return digest(decided if run.arm == DETECTORS else [*decided, self.model_written(run)])

    def trained(self, run: Run) -> Done | None:
        """What a run left, if it is trained by this design on these data; whether or not it is scored."""
        try:
            found = Done(**json.loads((self.folder(run) / DONE).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.digest == self.digest(run) else None

    def missing(self, run: Run, done: Done) -> list[str]:
        """Test sets that a trained run still has to be scored on."""
        written = self.detected if run.arm == DETECTORS else self.scores
        wanted = self.wanted(run).items()
        return [one for one, data in wanted if done.scored.get(one) != data or not written(run, one).is_file()]

    def done(self, run: Run) -> Done | None:
        """What a run left, if it is trained, and scored on all that it has to be."""
        found = self.trained(run)
        return found if found is not None and not self.missing(run, found) else None

    def record(self, run: Run, done: Done) -> None:
        """Record what a run has done: the last thing that each part of it writes."""
        write_text(self.folder(run) / DONE, json.dumps(asdict(done), indent=2, sort_keys=True) + "\n")
