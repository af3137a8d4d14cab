"""How well the annotators of a stage agree so far, by the measures of `generators.decisions.agreement`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from generators.decisions.agreement import PairAgreement, Share, by_pair, gold_accuracy, mean_kappa
from review.desk import ReviewDesk
from review.tasks import ReviewStage


@dataclass(frozen=True, slots=True)
class Agreement:
    """pairs: Cohen's kappa of each two annotators; mean: of these; gold: accuracy by annotator."""

    pairs: Sequence[PairAgreement]
    mean: float | None
    gold: Mapping[str, Share]


def agreement_of_stage(desk: ReviewDesk, stage: ReviewStage) -> Agreement:
    """Agreement of a stage's answers, those to what its tasks show now."""
    answers = [one for task in stage.tasks for one in desk.answers_to(task)]
    question = stage.tasks[0].question if stage.tasks else None
    pairs = by_pair(answers, {one.answer: question.compared(one.answer) for one in answers}) if question else []
    gold = {task.candidate.key: task.gold for task in stage.tasks if task.gold}
    return Agreement(pairs, mean_kappa(pairs), gold_accuracy(answers, gold))
