"""All that a study found, read from its score files and records: what report and plots are made of."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from studies.science.coverage import SPREADS, Coverage, simulate
from studies.science.detected import Detected, read_detected
from studies.science.gate import Passed, measure_base
from studies.science.outcomes import Right, percent, read_right
from studies.science.power import Power, detectable
from studies.science.runs import DETECTORS, PROBES, Run, Study
from studies.science.verdicts import Compared, judge
from twinset.contracts.errors import WrongUse

SHOWN = {"pairs": ("text", "image", "group"), "queries": ("recall@1", "recall@2", "recall@3")}
#: The figure that is shown by category.
MAIN = {"pairs": "group", "queries": "recall@1"}
_TRIALS, _RESAMPLES = 200, 1000  # of the simulation of coverage
_GROUPS = (
    1000  # of it; the spread of seeds is in units of their noise, so that more of them change nothing but its time
)


@dataclass(frozen=True, slots=True)
class Scores:
    """Figures (percent) of an arm on a test set, one of each seed.

    figures: by name. kinds: that of `MAIN` by category of the test set.
    """

    test: str
    arm: str
    figures: dict[str, list[float]]
    kinds: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Control:
    """Whether an arm ends with the bytes of another, on the first calibration seed."""

    arm: str
    other: str
    same: bool


@dataclass(frozen=True)
class Findings:
    """What a study found.

    gates: of every base, the calibration seeds' first. powers: what can be detected; none before calibration is done.
    judged: comparisons by test set. rows, groups: of test sets.
    probes: by test set, as `evaluation.blind_probes.probes.GivenAway.as_json`. halves: sizes and accuracies (0-1) on
    the detectors' own data, by half. detected: by test set. Both are empty where detectors are not finished.
    unfinished: arms that are not done for every seed. last: of the arms with a regulariser, means over seeds of what
    training logged of the last step, by arm and name. seconds: of all runs together.
    """

    study: Study
    tests: list[str]
    rows: dict[str, int]
    groups: dict[str, int]
    gates: list[Passed]
    scores: list[Scores]
    powers: list[Power]
    judged: dict[str, list[Compared]]
    unfinished: list[str]
    controls: list[Control]
    probes: dict[str, dict[str, Any]]
    halves: dict[str, dict[str, Any]]
    detected: dict[str, Detected]
    coverage: list[Coverage]
    last: dict[str, dict[str, float]]
    seconds: float

    @property
    def primary(self) -> list[str]:
        """Test sets that decide, of those that arms were scored on."""
        return [test for test in self.study.design.primary.values() if test in self.tests]


def find(study: Study) -> Findings:
    """Read and judge what is done of a study, which is all arms that are done for every seed.

    Raises:
        WrongUse: no arm is, or a base is not.
    """
    design, arms = study.design, study.finished_arms()
    tests = [test for test in study.tests() if any(design.tests[test].asks == design.arms[arm].asks for arm in arms)]
    if not tests or any(study.done(run) is None for run in study.bases()):
        raise WrongUse(
            f"{study.out}: no arm is finished for all of {len(design.seeds)} seeds; run `python -m studies.science` on"
        )
    figures = {
        asks: list(dict.fromkeys([*SHOWN[asks], *(c.figure for c in design.claims.values() if design.asks(c) == asks)]))
        for asks in ("pairs", "queries")
    }

    @cache
    def read(arm: str, seed: int, test: str) -> Right:
        return read_right(study.scores(Run(arm, seed), test), figures[design.tests[test].asks])

    first = {test: read(_arms(study, test, arms)[0], design.seeds[0], test) for test in tests}
    scores = [
        _scores(test, arm, design.tests[test].asks, [read(arm, seed, test) for seed in design.seeds])
        for test in tests
        for arm in _arms(study, test, arms)
    ]
    groups = {test: len(np.unique(right.groups)) for test, right in first.items()}
    powers = detectable(study, groups) if all(study.done(run) for run in study.calibration()) else []
    detectors = Run(DETECTORS, design.seeds[0])
    trained = study.done(detectors)
    return Findings(
        study=study,
        tests=tests,
        rows={test: len(right.keys) for test, right in first.items()},
        groups=groups,
        gates=[measure_base(study, run.seed) for run in study.bases()],
        scores=scores,
        powers=powers,
        judged=judge(design, read, tests, arms, [(o.claim, o.better, o.than) for o in powers if o.too_large]),
        unfinished=[name for name in design.claimed if name not in arms],
        controls=_controls(study),
        probes=_probes(study),
        halves={} if trained is None else dict(trained.facts["halves"]),
        detected={}
        if trained is None
        else {test: read_detected(study.detected(detectors, test)) for test in study.wanted(detectors)},
        coverage=[simulate(len(design.seeds), _GROUPS, spread, _TRIALS, _RESAMPLES) for spread in SPREADS],
        last=_last(study, arms),
        seconds=sum(done.seconds for run in study.runs() if (done := study.done(run))),
    )


def _scores(test: str, arm: str, asks: str, seeds: Sequence[Right]) -> Scores:
    kinds = sorted({*seeds[0].categories.tolist()})
    return Scores(
        test,
        arm,
        {figure: [percent(one, figure) for one in seeds] for figure in SHOWN[asks]},
        {kind: [percent(one, MAIN[asks], [kind]) for one in seeds] for kind in kinds},
    )


def _arms(study: Study, test: str, finished: Collection[str]) -> Sequence[str]:
    asks = study.design.tests[test].asks
    return [name for name, arm in study.design.arms.items() if arm.asks == asks and name in finished]


def _controls(study: Study) -> list[Control]:
    found, seed = [], study.design.calibration_seeds[0]
    for name, arm in study.design.arms.items():
        if arm.same_weights is not None:
            a, b = (study.done(Run(one, seed)) for one in (name, arm.same_weights))
            if a is not None and b is not None:
                found.append(Control(name, arm.same_weights, a.weights == b.weights))
    return found


def _last(study: Study, finished: Collection[str]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for arm in finished:
        if study.design.arms[arm].kind == "clip" and study.design.clip_settings(arm).get("regulariser"):
            done = [study.done(Run(arm, seed)) for seed in study.design.seeds]
            steps = [one.facts["last"] for one in done if one is not None and "last" in one.facts]
            names = [name for name in ("objective", "regulariser", "active_fraction") if all(name in o for o in steps)]
            found[arm] = {name: float(np.mean([one[name] for one in steps])) for name in names if steps}
    return found


def _probes(study: Study) -> dict[str, dict[str, Any]]:
    folder = study.folder(Run(PROBES, study.design.seeds[0])) / "probes"
    if study.done(Run(PROBES, study.design.seeds[0])) is None:
        return {}
    files = {test: folder / f"{test}.json" for test in study.tests("pairs")}
    return {test: json.loads(path.read_text("utf-8")) for test, path in files.items()}


def best_arm(found: Findings) -> Run:
    """The arm with the highest mean in the gate's figure on the test set that decides; of its seeds the best.

    Arms that are no more than a control of the code are left out, and so is the base.
    """
    design = found.study.design
    able = {name for name, arm in design.arms.items() if arm.kind == "clip" and arm.same_weights is None}
    tested = [one for one in found.scores if one.test == design.primary["pairs"] and one.arm in able]
    best = max(tested, key=lambda one: float(np.mean(one.figures[design.gate.figure])))
    return Run(best.arm, design.seeds[int(np.argmax(best.figures[design.gate.figure]))])
