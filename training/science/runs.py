"""The runs of a study: which there are, in what order, where each lies, and whether it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluation.benchmarks.built_dataset import BuiltDataset
from evaluation.dataset_parts import Part
from evaluation.run import scores_path
from manifests.canonical import digest
from shards.records import planned_stage, subsets_in
from shards.storage.store import Store
from shards.storage.whole_file import write_text
from training.science.design import Design

BASE, PROBES = "base", "probes"
#: Of what a run gives: raised when the same settings give other weights or scores.
VERSION = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One base, one arm of one seed, or the blind probes of the test sets (`PROBES`)."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        """As progress and folders have it."""
        return f"seed-{self.seed}/{self.arm}"


@dataclass(frozen=True, slots=True)
class Done:
    """What a finished run left. weights: sha256, "" where nothing was trained. facts: such as its last loss."""

    digest: str
    weights: str
    seconds: float
    facts: Mapping[str, Any]


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
        return Part(test, one.title, str(planned_stage(dataset.store, one.subset).facts["makes"]), dataset)

    def folder(self, run: Run) -> Path:
        """Where a run lies."""
        return self.out / "runs" / run.name

    def model(self, run: Run) -> str:
        """The model that a run scores, as ``twinset eval run --model`` takes it."""
        places = {"self": self.weights(run), "base": self.weights(replace(run, arm=BASE))}
        written = "open_clip:{self}" if run.arm == BASE else self.design.arms[run.arm].model
        return written.format(**places, combiner=self.folder(run) / "combiner" / "best_combiner.safetensors")

    def weights(self, run: Run) -> str:
        """A trained CLIP as ``open_clip:`` takes it."""
        folder = self.folder(run) / "clip"
        return f"{folder / 'open_clip_config.json'}:{folder / 'last.safetensors'}"

    def scores(self, run: Run, test: str) -> Path:
        """The score file of a run on a test set."""
        if run.arm != BASE and self.design.arms[run.arm].model == "open_clip:{base}":
            run = replace(run, arm=BASE)
        return scores_path(self.folder(run), test, self.model(run))

    @cached_property
    def data_digests(self) -> dict[str, str]:
        """Of every subset of the world."""
        store = Store(str(self.data))
        return {name: BuiltDataset(self.data, [name]).digest() for name in sorted(subsets_in(store))}

    def bases(self) -> list[Run]:
        """The base of the calibration seed, then those of the seeds."""
        return [Run(BASE, seed) for seed in (self.design.calibration_seed, *self.design.seeds)]

    def after_base(self) -> list[Run]:
        """All arms that need a run of their own, a seed after the other, and the probes."""
        scored = {test.asks for test in map(self.design.tests.__getitem__, self.tests())}
        arms = [
            name for name, arm in self.design.arms.items() if arm.asks in scored and arm.model != "open_clip:{base}"
        ]
        runs = [Run(arm, seed) for seed in self.design.seeds for arm in arms]
        return [*runs, Run(PROBES, self.design.seeds[0])]

    def digest(self, run: Run) -> str:
        """Of all that decides what a run gives; the base of an arm is in it by its weights."""
        design = self.design
        decided: list[Any] = [VERSION, run.arm, run.seed, self.data_digests, self.tests(tuning=run.arm == BASE)]
        if run.arm == BASE:
            return digest([*decided, design.model_dump(mode="json")["base"]])
        base = self.done(replace(run, arm=BASE))
        decided.append(base.weights if base else None)
        if run.arm == PROBES:
            return digest(decided)
        arm = design.model_dump(mode="json")["arms"][run.arm]
        shared = {"clip": design.training, "combiner": design.combiner, "rule": {}}[arm["kind"]]
        return digest([*decided, {key: arm[key] for key in ("kind", "asks", "settings", "model")}, dict(shared)])

    def done(self, run: Run) -> Done | None:
        """What a run left, if it is finished and of this design and data."""
        try:
            found = Done(**json.loads((self.folder(run) / "done.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.digest == self.digest(run) else None

    def finish(self, run: Run, weights: str, seconds: float, facts: Mapping[str, Any]) -> None:
        """Record that a run is finished: the last thing that it writes."""
        done = Done(self.digest(run), weights, round(seconds, 1), facts)
        write_text(self.folder(run) / "done.json", json.dumps(asdict(done), indent=2, sort_keys=True) + "\n")
