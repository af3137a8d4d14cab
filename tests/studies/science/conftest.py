"""A study whose runs are made, not trained."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.science.detected import CHANCE, Detected, Told
from studies.science.runs import DETECTORS, PROBES, Done, Study
from tests.studies.science.made_scores import small_design, write_matchings, write_queries

RIGHT = {"none": 0.3, "ft": 0.4, "weight-0": 0.4, "negative-images": 0.8, "combiner": 0.9, "text-only": 0.2}


class MadeStudy(Study):
    """A study whose world is not there: its test sets are those of the design."""

    def tests(self, asks: str | None = None, tuning: bool = False) -> list[str]:
        """As `Study.tests`."""
        tests = self.design.tests.items()
        return [k for k, one in tests if asks in (None, one.asks) and one.tuning <= tuning and not one.optional]

    @cached_property
    def data_digests(self) -> dict[str, str]:  # type: ignore[override]
        """As `Study.data_digests`."""
        return {subset: f"digest of {subset}" for subset in self.design.subsets}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """All score files and records of a study of two seeds."""
    monkeypatch.setattr("studies.science.findings._TRIALS", 2)
    study = MadeStudy(small_design(), tmp_path, tmp_path / "data")
    probe: dict[str, Any] = {"expected": 55.0, "low": 51.0}
    about = {"all": {"probes": {"words": probe}, "detectors": {"i2t": 30.0}}, "solved": []}
    for run in study.runs():
        if run.arm == PROBES:
            for test in study.tests("pairs"):
                path = study.folder(run) / "probes" / f"{test}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(about))
        facts: dict[str, Any] = {"last": {"objective": 0.5, "regulariser": 0.25, "active_fraction": 0.4}}
        if run.arm == DETECTORS:
            told = Told(51.25, 48.0, 54.5)
            for test in study.wanted(run):
                kinds = {kind: dict.fromkeys(CHANCE, told) for kind in ("swap_att", "replace_rel")}
                Detected(80, dict.fromkeys(CHANCE, told), kinds).write(study.detected(run, test))
            sizes = {f"{part}_pairs": 20 for part in ("train", "validation", "test")}
            facts["halves"] = {
                half: {**sizes, "train_accuracy": 0.53, "test_accuracy": 0.5} for half in ("text", "image")
            }
        rng = np.random.default_rng([run.seed, len(run.arm)])
        for test in study.wanted(run) if run.arm != DETECTORS else ():
            write = write_matchings if study.design.tests[test].asks == "pairs" else write_queries
            write(study.scores(run, test), rng, RIGHT.get(run.arm, 0.5))
        weights = "same" if run.arm in ("ft", "weight-0") else run.name
        study.record(run, Done(study.digest(run), weights, 10.0, facts, study.wanted(run)))
    return study
