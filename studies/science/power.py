"""What a design can detect, computed from the calibration seeds before any arm of another seed is trained.

The difference D of two arms, of which each of n seeds is tested on the same G groups, has the variance

    Var D = τ² / n + σ_b² / G + σ_e² / (n G)

with τ² of seeds, σ_b² of what a group does to all seeds, σ_e² of what it does to one. Of a comparison a calibration
seed gives s² = σ_b² + σ_e², the variance over the groups of its own test set. What share of s² is σ_b², and how large
τ² is beside it, two seeds say too roughly of one comparison; so both ratios are taken over all comparisons of arms that
are asked the same. The smallest difference that is detected solves

    power = P(|t| > t_{.975, n − 1}),   t of the noncentral distribution with n − 1 degrees of freedom and D / √Var D
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from studies.science.bootstrap import LEVEL
from studies.science.design import Claim, Design
from studies.science.markdown import table
from studies.science.outcomes import paired, read_right
from studies.science.runs import Run, Study
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import LeftOut


@dataclass(frozen=True, slots=True)
class Power:
    """What can be detected of one comparison of a claim.

    spread: √s² (percentage points). published: the paper's difference; None where it has none. detectable: the smallest
    difference, percentage points.
    """

    claim: str
    better: str
    than: str
    figure: str
    spread: float
    published: float | None
    detectable: float

    @property
    def too_large(self) -> bool:
        """Whether the paper's difference is smaller than what can be detected."""
        return self.published is not None and self.detectable > self.published


class _Seen(NamedTuple):
    """Of a comparison: s² and σ_b² (squared percentage points), the variance between seeds, and groups of the test."""

    within: float
    shared: float
    between: float
    groups: int


def detectable(study: Study, groups: Mapping[str, int] | None = None) -> list[Power]:
    """What can be detected of every comparison of a claim, in the order of the design.

    Args:
        groups: of test sets; counted in their data when absent.
    """
    design, found = study.design, list[Power]()
    seen = {
        (name, pair): _seen(study, claim, pair) for name, claim in design.claims.items() for pair in claim.comparisons
    }
    for name, claim in design.claims.items():
        asks = design.asks(claim)
        alike = [one for (other, _), one in seen.items() if design.asks(design.claims[other]) == asks]
        test = design.primary[asks]
        number = groups[test] if groups is not None else _groups(study, test)
        for better, than in claim.comparisons:
            one = seen[name, (better, than)]
            smallest = smallest_difference(one.within, *ratios(alike), len(design.seeds), number, design.power)
            published = claim.published.get(than)
            found.append(Power(name, better, than, claim.figure, math.sqrt(one.within), published, smallest))
    return found


def _seen(study: Study, claim: Claim, pair: tuple[str, str]) -> _Seen:
    design = study.design
    test = design.tuning(design.asks(claim))
    assert test is not None, f"{claim.says}: no test set is for tuning"
    better, than = (
        [read_right(study.scores(Run(arm, seed), test), [claim.figure]) for seed in design.calibration_seeds]
        for arm in pair
    )
    added, rows = paired(better, than, claim.figure)
    return spreads(100 * added / rows.mean())


def spreads(differences: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> _Seen:
    """Variances of the differences of groups, shape (seeds, groups), percentage points."""
    covariance = np.cov(differences)
    seeds = len(differences)
    shared = (covariance.sum() - np.trace(covariance)) / (seeds * (seeds - 1))
    between = float(differences.mean(1).var(ddof=1))
    return _Seen(float(np.trace(covariance) / seeds), float(shared), between, differences.shape[1])


def ratios(seen: list[_Seen]) -> tuple[float, float]:
    """τ² / s² and σ_b² / s² over comparisons; what two seeds differ by chance of their groups is no τ²."""
    within = sum(one.within for one in seen)
    if within == 0:
        return 0.0, 0.0
    shared = min(max(sum(one.shared for one in seen) / within, 0.0), 1.0)
    by_chance = sum((one.within - max(one.shared, 0.0)) / one.groups for one in seen)
    return max(sum(one.between for one in seen) - by_chance, 0.0) / within, shared


def smallest_difference(
    within: float, seeds_ratio: float, shared: float, seeds: int, groups: int, power: float
) -> float:
    """The difference (percentage points) that is detected with a power (percent); the arguments as in the module."""
    from scipy.special import nctdtrinc, stdtrit

    variance = within * (seeds_ratio / seeds + shared / groups + (1 - shared) / (seeds * groups))
    critical = float(stdtrit(seeds - 1, 0.5 + LEVEL / 200))
    return float(nctdtrinc(seeds - 1, 1 - power / 100, critical)) * math.sqrt(variance)


def _groups(study: Study, test: str) -> int:
    subset = study.design.tests[test].subset
    examples = BuiltDataset(study.data, [subset]).examples()
    return len({one.group for one in examples if not isinstance(one, LeftOut)})


def described(powers: Sequence[Power], design: Design, groups: Mapping[str, int]) -> str:
    """The section of the report that comes first: what was known before. groups: of test sets."""
    head = "## What can be detected"
    if not powers:
        return f"{head}\n\nThe arms of the calibration seeds are not finished."
    rows = []
    for one in powers:
        published = "" if one.published is None else f"{one.published:g}"
        detected = "" if one.published is None else "**no**" if one.too_large else "yes"
        cells = [one.claim, f"{one.better} − {one.than}", one.figure, f"{one.spread:.1f}", f"{one.detectable:.2f}"]
        rows.append([*cells, published, detected])
    seeds = " and ".join(map(str, design.calibration_seeds))
    tested = [test for test in design.primary.values() if test in groups]
    test = " and ".join(f"{groups[one]:,} groups of {design.tests[one].title}" for one in tested)
    return (
        f"{head}\n\n"
        f"Computed from the arms of seeds {seeds}, which no claim is tested on, before any arm of the "
        f"{len(design.seeds)} seeds was trained: the smallest difference, in percentage points, that a two-sided t "
        f"test over seeds at 5 % detects with a power of {design.power:g} %, on {test} ([how](power.py)). A comparison "
        "whose published difference is smaller cannot be tested by this study: where it is not decided it is called "
        '"not tested", not "undecided". Arms without a published difference are controls of ours. Spread: standard '
        "deviation over scenes.\n\n"
        + table(["claim", "comparison", "figure", "spread", "detectable", "published", "can be tested"], rows)
    )
