"""One run, in a process of its own: trains, scores the test sets, and records what it did."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.blind_probes.features import encoder_of
from evaluation.blind_probes.run import give_away, write_probes
from evaluation.run import run as score
from evaluation.scorers.contract import Running
from shards.storage.whole_file import write_text
from training.science.runs import BASE, PROBES, Run, Study

#: Examples of a pass of scoring; one thread, since every run has one core.
RUNNING = Running(batch=64, threads=1)


def do(study: Study, run: Run) -> None:
    """Carry out a run and record it; what a killed one left is used or replaced.

    Raises:
        TwinsetError: training or scoring failed; says where.
    """
    began = time.monotonic()
    _claim(study, run)
    if run.arm == PROBES:
        weights, facts = "", _probe(study, run)
    else:
        arm = None if run.arm == BASE else study.design.arms[run.arm]
        kind = "clip" if arm is None else arm.kind
        weights, facts = {"clip": _train_clip, "combiner": _train_combiner, "rule": _no_training}[kind](study, run)
        _score(study, run, "pairs" if arm is None else arm.asks)
    study.finish(run, weights, time.monotonic() - began, facts)


def _claim(study: Study, run: Run) -> None:
    """Take a run's folder: what a killed process left of the same run stays, and of another one is removed."""
    folder, digest = study.folder(run), study.digest(run)
    started = folder / "started"
    if not started.is_file() or started.read_text("utf-8") != digest:
        shutil.rmtree(folder, ignore_errors=True)
        write_text(started, digest)


def _train_clip(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    from training.clip.settings import settings_from
    from training.clip.train import train_clip

    design, folder = study.design, study.folder(run) / "clip"
    given = design.clip_settings(None if run.arm == BASE else run.arm)
    if run.arm != BASE:
        model, weights = study.weights(replace(run, arm=BASE)).split(":")
        given |= {"model": model, "weights": weights}
    else:
        given["model"] = str(Path(__file__).with_name(given["model"]))
    given["data"] = tuple(f"{study.data}:{subset}" for subset in given["data"])
    # Arms of a seed share the order of examples where they share the batch; bases of two seeds share nothing.
    settings = settings_from({**given, "seed": run.seed, "threads": 1, "device": "cpu"})
    trained = train_clip(settings, folder, report=False)
    last = trained.history[-1]
    return trained.digest, {"last": {key: one for key, one in last.items() if isinstance(one, int | float)}}


def _train_combiner(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    """A Combiner on the features of the base of its seed, which stays as it is."""
    from training.combiner.settings import CombinerSettings
    from training.combiner.train import train_combiner

    design, folder = study.design, study.folder(run)
    given = {**design.combiner, **design.arms[run.arm].settings, "seed": run.seed, "threads": 1, "device": "cpu"}
    given["model"], given["weights"] = study.weights(replace(run, arm=BASE)).split(":")
    for key in ("data", "validation"):
        given[key] = tuple(f"{study.data}:{subset}" for subset in given[key])
    settings = CombinerSettings.model_validate(given)
    trained = train_combiner(settings, folder / "combiner", report=False, cache=folder / "features")
    return trained.digest, {"best_step": trained.best_step, "validation": trained.best_value}


def _no_training(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    return "", {}


def _score(study: Study, run: Run, asks: str) -> None:
    folder = study.folder(run)
    benchmarks = [study.benchmark(test) for test in study.tests(asks, tuning=run.arm == BASE)]
    if benchmarks:
        score(benchmarks, [study.model(run)], folder, folder / "features", RUNNING)
    shutil.rmtree(folder / "features", ignore_errors=True)


def _probe(study: Study, run: Run) -> Mapping[str, Any]:
    """Probe the test sets blindly, with the features of the base of this seed; what is found is written beside it."""
    folder = study.folder(run)
    encode = encoder_of(f"open_clip:{study.weights(replace(run, arm=BASE))}", folder / "features", RUNNING)
    for test in study.tests("pairs"):
        write_probes(give_away(study.benchmark(test), images=True, encode=encode, seed=run.seed), folder)
    shutil.rmtree(folder / "features", ignore_errors=True)
    return {}
