"""What an error rate of simulated annotators predicts: how often they drop, and how well they agree.

An annotator gives the true one of k options with probability 1 - e, and each other one with e / (k - 1).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinset.generators.decisions.question import TaskCandidate
from twinset.generators.decisions.questions import question_of


def expected_drop_rate(tasks: Sequence[TaskCandidate], several: Sequence[bool], error_rate: float) -> float:
    """The mean probability that a task's subject is dropped. several: whether two people answer a task.

    With x for one answer that drops: of two answers both do, or they disagree and a third one settles it:
    x^2 + 2 x (1 - x) x.
    """
    x = np.array([sum(_chances(one, error_rate)[value] for value in question_of(one.question).drops) for one in tasks])
    return float(np.where(several, x**2 * (3 - 2 * x), x).mean())


def expected_kappa(tasks: Sequence[TaskCandidate], error_rate: float) -> float:
    """Kappa of two such annotators who answer these tasks.

    (p_o - p_e) / (1 - p_e), where p_o is the mean over tasks of the sum over categories of P(category)^2, and p_e the
    sum over categories of the square of the mean.
    """
    chances = np.array([_by_category(one, error_rate) for one in tasks])
    observed, by_chance = (chances**2).sum(axis=1).mean(), (chances.mean(axis=0) ** 2).sum()
    return float((observed - by_chance) / (1 - by_chance))


def _by_category(task: TaskCandidate, error_rate: float) -> NDArray[np.float64]:
    question, chances = question_of(task.question), _chances(task, error_rate)
    categories = sorted({question.compared(value) for value in chances})
    return np.array([sum(chances[v] for v in chances if question.compared(v) == category) for category in categories])


def _chances(task: TaskCandidate, error_rate: float) -> dict[str, float]:
    values = question_of(task.question).layout(task).values
    return {one: 1 - error_rate if one == task.truth else error_rate / (len(values) - 1) for one in values}
