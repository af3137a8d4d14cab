"""One run, in a process of its own: trains, scores the test sets, and records what it did."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from studies.science.design import DESIGN
from studies.science.detected import detect
from studies.science.runs import BASE, DETECTORS, PROBES, Done, Run, Study
from twinset.evaluation.blind_probes.detectors import read_detectors
from twinset.evaluation.blind_probes.run import encoder_of, give_away, write_probes
from twinset.evaluation.run import run as score
from twinset.models.encoders.contract import Running
from twinset.shards.storage.whole_file import write_text

#: Examples of a pass of scoring; one thread, since every run has one core.
RUNNING = Running(batch=64, threads=1)


def do(study: Study, run: Run) -> None:
    """Carry out a run and record it; what a killed one left is used or replaced.

    Raises:
        TwinsetError: training or scoring failed; says where.
    """
    began = time.monotonic()
    done = study.trained(run)
    if done is None:
        _claim(study, run)
        weights, facts = _trained(study, run)
        done = Done(study.digest(run), weights, round(time.monotonic() - began, 1), facts, {})
        study.record(run, done)
    began = time.monotonic()
    if missing := study.missing(run, done):
        _score(study, run, missing)
        seconds = round(done.seconds + time.monotonic() - began, 1)
        study.record(run, replace(done, seconds=seconds, scored=study.wanted(run)))


def _trained(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    """Train a run; returns the sha256 of its weights and what is worth keeping."""
    if run.arm == PROBES:
        return "", _probe(study, run)
    if run.arm == DETECTORS:
        return _train_detectors(study, run)
    kind = "clip" if run.arm == BASE else study.design.arms[run.arm].kind
    return {"clip": _train_clip, "combiner": _train_combiner, "rule": _no_training}[kind](study, run)


def _claim(study: Study, run: Run) -> None:
    """Take a run's folder: what a killed process left of the same run stays, and of another one is removed."""
    folder, digest = study.folder(run), study.digest(run)
    started = folder / "started"
    if not started.is_file() or started.read_text("utf-8") != digest:
        shutil.rmtree(folder, ignore_errors=True)
        write_text(started, digest)


def _train_clip(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    from twinset.training.clip.settings import ClipSettings
    from twinset.training.clip.train import train_clip
    from twinset.training.runs.settings import checked

    design, folder = study.design, study.folder(run) / "clip"
    given = design.clip_settings(None if run.arm == BASE else run.arm)
    if run.arm != BASE:
        model, weights = study.weights(replace(run, arm=BASE)).split(":")
        given |= {"model": model, "weights": weights}
    else:
        given["model"] = str(DESIGN.with_name(given["model"]))
    given["data"] = tuple(f"{study.data}:{subset}" for subset in given["data"])
    # Arms of a seed share the order of examples where they share the batch; bases of two seeds share nothing.
    settings = checked(ClipSettings, {**given, "seed": run.seed, "threads": 1, "device": "cpu"})
    trained = train_clip(settings, folder, report=False)
    last = trained.history[-1]
    return trained.digest, {"last": {key: one for key, one in last.items() if isinstance(one, int | float)}}


def _train_combiner(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    """A Combiner on the features of the base of its seed, which stays as it is."""
    from twinset.training.combiner.settings import CombinerSettings
    from twinset.training.combiner.train import train_combiner

    design, folder = study.design, study.folder(run)
    given = {**design.settings(run.arm), "seed": run.seed, "threads": 1, "device": "cpu"}
    given["model"], given["weights"] = study.weights(replace(run, arm=BASE)).split(":")
    for key in ("data", "validation"):
        given[key] = tuple(f"{study.data}:{subset}" for subset in given[key])
    settings = CombinerSettings.model_validate(given)
    trained = train_combiner(settings, folder / "combiner", report=False, cache=folder / "features")
    return trained.digest, {"best_step": trained.best_step, "validation": trained.best_value}


def _train_detectors(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    """Detectors of the halves of pairs, on the features of the base of this seed."""
    from twinset.training.detectors.settings import DetectorSettings
    from twinset.training.detectors.train import train_detectors

    given = {**study.design.detectors, "seed": run.seed, "threads": 1, "device": "cpu"}
    given["data"] = tuple(f"{study.data}:{subset}" for subset in given["data"])
    given["model"] = _base_model(study, run)
    folder = study.folder(run)
    settings = DetectorSettings.model_validate(given)
    trained = train_detectors(settings, folder / "detectors", folder / "features", report=False)
    return trained.digest, {"halves": trained.detectors.facts["halves"]}


def _no_training(study: Study, run: Run) -> tuple[str, Mapping[str, Any]]:
    return "", {}


def _score(study: Study, run: Run, tests: Sequence[str]) -> None:
    folder = study.folder(run)
    if run.arm == DETECTORS:
        detectors = read_detectors(folder / "detectors")
        encode = encoder_of(_base_model(study, run), folder / "features", RUNNING, detectors)
        for test in tests:
            detect(study.benchmark(test), detectors, encode).write(study.detected(run, test))
    else:
        benchmarks, model = [study.benchmark(test) for test in tests], study.model(run)
        called = {model: study.model_written(run)}
        score(benchmarks, [model], folder, folder / "features", RUNNING, called=called)
    shutil.rmtree(folder / "features", ignore_errors=True)


def _probe(study: Study, run: Run) -> Mapping[str, Any]:
    """Probe the test sets blindly, with the features of the base of this seed; what is found is written beside it."""
    folder = study.folder(run)
    encode = encoder_of(_base_model(study, run), folder / "features", RUNNING)
    for test in study.tests("pairs"):
        write_probes(give_away(study.benchmark(test), images=True, encode=encode, seed=run.seed), folder)
    shutil.rmtree(folder / "features", ignore_errors=True)
    return {}


def _base_model(study: Study, run: Run) -> str:
    return f"open_clip:{study.weights(replace(run, arm=BASE))}"
