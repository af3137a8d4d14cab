"""The gate: the base of the calibration seed must be neither too weak nor too good for arms to differ."""

from dataclasses import dataclass

from studies.science.outcomes import percent, read_right
from studies.science.runs import BASE, Run, Study
from twinset.contracts.errors import BuildFailed


@dataclass(frozen=True, slots=True)
class Passed:
    """Scores (percent) of the base of a seed in the figure of the gate, by kind of change."""

    seed: int
    by_kind: dict[str, float]


def measure_base(study: Study, seed: int) -> Passed:
    """What the base of a seed scores on the kinds of changes of the gate."""
    gate = study.design.gate
    right = read_right(study.scores(Run(BASE, seed), gate.test), [gate.figure])
    return Passed(seed, {name: percent(right, gate.figure, some) for name, some in gate.kinds.items()})


def check_gate(study: Study) -> Passed:
    """Measure the base of the calibration seed.

    Raises:
        BuildFailed: a kind of change lies outside of the bounds; the base has to be tuned, on this seed alone.
    """
    gate, found = study.design.gate, measure_base(study, study.design.calibration_seeds[0])
    outside = {one: score for one, score in found.by_kind.items() if not gate.low <= score <= gate.high}
    if outside:
        scores = ", ".join(f"{one} {score:.1f} %" for one, score in outside.items())
        raise BuildFailed(
            f"gate: {gate.figure} score of the base of seed {found.seed} on {gate.test}: {scores}; it must be "
            f"{gate.low:g} to {gate.high:g} %. Change `base` in studies/science/design.yaml, on this seed alone, and "
            "run the same command again"
        )
    return found
