"""Decides claims: paired differences with intervals, corrected p, and a verdict by rules written down before."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from studies.science.bootstrap import differences, interval, p_value, resampled_differences, wide_level
from studies.science.design import Claim, Design
from studies.science.outcomes import Right, paired, percent
from twinset.evaluation.metrics.compare import holm

Verdict = Literal["supported", "refuted", "undecided", "not tested"]
LEAST_P = 0.05
#: Scores of an arm and a seed on a test set.
Read = Callable[[str, int, str], Right]


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a claim on one test set.

    a, b: means over seeds, percent. difference, low, high: percentage points, with its 95 % interval. wide: the
    interval that allows for few seeds (`studies.science.bootstrap.wide_level`). p: of no difference. p_holm: corrected
    for all comparisons on this test set. seeds: difference of each seed alone. verdict: by `decide`; not tested instead
    of undecided where the design was known not to detect the paper's difference.
    """

    claim: str
    test: str
    better: str
    than: str
    figure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    wide: tuple[float, float]
    p: float
    p_holm: float
    seeds: tuple[float, ...]
    verdict: Verdict

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a decided verdict does not survive: Holm's correction, or the interval that allows for few seeds."""
        if self.verdict not in ("supported", "refuted"):
            return ()
        found = []
        if self.p_holm > LEAST_P:
            found.append("not after Holm's correction")
        if self.wide[0] <= 0 <= self.wide[1]:
            found.append("not if the interval allows for few seeds")
        return tuple(found)


def decide(difference: float, low: float, high: float, least: float) -> Verdict:
    """Supported: the interval lies above 0 and the difference is at least ``least``; refuted: it lies below 0."""
    if low > 0 and difference >= least:
        return "supported"
    return "refuted" if high < 0 else "undecided"


def of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """Verdict of a claim of several comparisons, all of which it states: one that is refuted refutes it."""
    if "refuted" in verdicts:
        return "refuted"
    if all(one == "supported" for one in verdicts):
        return "supported"
    return "not tested" if "not tested" in verdicts else "undecided"


def judge(
    design: Design,
    read: Read,
    tests: Sequence[str],
    arms: Collection[str],
    too_small: Collection[tuple[str, str, str]] = (),
    seed: int = 0,
) -> dict[str, list[Compared]]:
    """Judge every claim on every test set of its kind.

    Args:
        read: gives the scores of an arm and a seed on a test set, with the figures of all claims.
        tests: names of test sets that were scored. arms: that were; claims about others are left out.
        too_small: claim and arms of comparisons whose published difference the design cannot detect.
        seed: of the bootstrap.

    Returns:
        Comparisons by test set, in the order of the claims.
    """
    found: dict[str, list[Compared]] = {}
    for test in tests:
        asked = [
            (name, claim, pair)
            for name, claim in design.claims.items()
            if design.asks(claim) == design.tests[test].asks and {*claim.better, *claim.than} <= {*arms}
            for pair in claim.comparisons
        ]
        if asked:
            found[test] = _compared(design, test, asked, _Held(read, test, design.seeds), too_small, seed)
    return found


class _Held:
    """Scores of the arms on one test set, each file read once."""

    def __init__(self, read: Read, test: str, seeds: Sequence[int]) -> None:
        self._read, self._test, self._seeds = read, test, seeds
        self._held: dict[str, list[Right]] = {}

    def __getitem__(self, arm: str) -> list[Right]:
        if arm not in self._held:
            self._held[arm] = [self._read(arm, seed, self._test) for seed in self._seeds]
        return self._held[arm]


def _compared(
    design: Design,
    test: str,
    asked: Sequence[tuple[str, Claim, tuple[str, str]]],
    held: _Held,
    too_small: Collection[tuple[str, str, str]],
    seed: int,
) -> list[Compared]:
    tables = [paired(held[better], held[than], claim.figure) for _, claim, (better, than) in asked]
    added, rows = np.stack([one for one, _ in tables]), tables[0][1]
    points = differences(added, rows)
    values = resampled_differences(added, rows, design.resamples, seed)
    p = [p_value(one) for one in values.T]
    level = wide_level(len(design.seeds))
    lines = []
    for place, ((name, claim, (better, than)), corrected) in enumerate(zip(asked, holm(p), strict=True)):
        low, high = interval(values[:, place])
        difference = float(points[place])
        verdict = decide(difference, low, high, design.least)
        if verdict == "undecided" and (name, better, than) in too_small:
            verdict = "not tested"
        lines.append(
            Compared(
                claim=name,
                test=test,
                better=better,
                than=than,
                figure=claim.figure,
                a=float(np.mean([percent(one, claim.figure) for one in held[better]])),
                b=float(np.mean([percent(one, claim.figure) for one in held[than]])),
                difference=difference,
                low=low,
                high=high,
                wide=interval(values[:, place], level),
                p=p[place],
                p_holm=corrected,
                seeds=tuple((100 * added[place].sum(1) / rows.sum()).tolist()),
                verdict=verdict,
            )
        )
    return lines


def overall(design: Design, judged: Mapping[str, Sequence[Compared]], test: str) -> dict[str, Verdict]:
    """Verdicts of whole claims on one test set."""
    found = judged.get(test, ())
    names = dict.fromkeys(one.claim for one in found)
    return {name: of_all([one.verdict for one in found if one.claim == name]) for name in names}
