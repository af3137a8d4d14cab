"""Figures of people: I2T, T2I and group score of all together, by kind of pair and by annotator."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from twinset.evaluation.metrics.figures import Figure, Measured, Results
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.people.answered import Answered, outcome_table
from twinset.evaluation.report.published import Published, published
from twinset.generators.decisions.agreement import Share, share
from twinset.manifests.errors import WrongUse

#: What four independent guesses get. (A scorer at random gets 16.67 % of groups: its answers come from four scores.)
GUESSING = {"text": 25.0, "image": 25.0, "group": 6.25}


@dataclass(frozen=True, slots=True)
class OneAnnotator:
    """answers: how many are right. whole: of the pairs whose four questions this annotator answered; None without."""

    answers: Share
    whole: Measured | None


@dataclass(frozen=True, slots=True)
class People:
    """What people get.

    pooled: one decision a question; by kind of pair where there are several. undecided: pairs without all four.
    """

    answered: Answered
    pooled: Results
    undecided: int
    annotators: Mapping[str, OneAnnotator]

    def as_json(self) -> dict[str, Any]:
        """As `Results.as_json`, with ``simulated``, ``undecided``, ``annotators``, ``agreement``, ``references``."""
        annotators = {
            name: {"answers": asdict(one.answers), "whole": one.whole and one.whole.as_json()}
            for name, one in self.annotators.items()
        }
        return {
            **self.pooled.as_json(),
            "stage": self.answered.stage,
            "simulated": self.answered.simulated,
            "undecided": self.undecided,
            "annotators": annotators,
            "agreement": dict(self.answered.agreement),
            "references": [
                {"name": one.name, "source": one.source, "figures": one.figures[""]} for one in references()
            ],
        }


def people(answered: Answered, seed: int = 0, resamples: int = 2000) -> People:
    """Measure what people answered, as models are measured (`evaluation.metrics.matching`).

    The pairs are resampled for the intervals.

    Raises:
        WrongUse: no pair has all four answers.
    """
    if not answered.pooled:
        raise WrongUse(f"{answered.where}: no pair has all four answers; have more decided (enough of its source)")
    pooled = measure(outcome_table(answered.pooled, answered.stage), ["category"], seed, resamples)
    annotators = {}
    for name, outcomes in answered.annotators.items():
        given = [right for one in outcomes for right in one.right if right is not None]
        whole = outcome_table(outcomes, answered.stage)
        figures = measure(whole, (), seed, resamples).all if whole.num_rows else None
        annotators[name] = OneAnnotator(share(sum(given), len(given)), figures)
    return People(answered, pooled, answered.sampled - pooled.all.n, annotators)


def references() -> list[Published]:
    """What papers report of people on BiVLC."""
    return [row for row in published() if row.benchmark == "bivlc" and row.kind == "human"]


def guessing() -> dict[str, Figure]:
    """What guesses get."""
    return {name: Figure(value) for name, value in GUESSING.items()}
