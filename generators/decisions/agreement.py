"""Who counts where instances are answered whole, how well annotators agree, and shares of tasks by a hash."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import eq
from typing import Any

from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import ReviewQuestion, TaskCandidate


def of_whole_instances(tasks: Sequence[TaskCandidate], answers: Sequence[Sequence[Answer]]) -> list[list[Answer]]:
    """The answers to each task by those who answered all tasks about its subject.

    Who leaves in the middle of an instance is not counted for it: somebody else answers it whole.
    """
    names = [{answer.annotator for answer in given} for given in answers]
    whole = dict[str, set[str]]()
    for task, own in zip(tasks, names, strict=True):
        whole[task.subject] = whole.get(task.subject, own) & own
    return [
        [a for a in given if a.annotator in whole[task.subject]] for task, given in zip(tasks, answers, strict=True)
    ]


def share_of(purpose: str, key: str) -> float:
    """A number of [0, 1) that depends on the purpose and the key alone: keys below x are a share x of all."""
    hashed = hashlib.blake2b(f"{purpose}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float((int.from_bytes(hashed, "big") >> 11) * 2.0**-53)


def kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa (1960) of the categories that two annotators gave, task by task; None where all are the same."""
    n, given, given_second = len(first), Counter(first), Counter(second)
    by_chance = sum(given[value] * given_second[value] for value in given) / n**2
    observed = sum(map(eq, first, second)) / n
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def agreement_among(question: ReviewQuestion, answered: Iterable[tuple[int, Sequence[Answer]]]) -> dict[str, Any]:
    """How well annotators agree on the tasks of a stage.

    Args:
        answered: how many people a task asks, and the answers to it. One more breaks a tie, and does not count here:
            who gives it sees only what others disagree on.

    Returns:
        ``pairs``: ``annotators``, number of ``tasks`` and ``kappa`` of each two who have tasks in common; ``mean``: of
        the kappas, as in BiVLC's Table 7, None where there is none; ``pooled``: kappa of all these pairs of answers
        together, each counted both ways, which few tasks of each two do not distort.
    """
    given: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for needed, answers in answered:
        for answer in sorted(answers, key=lambda answer: (answer.at, answer.annotator))[:needed]:
            given[answer.annotator][answer.task] = question.compared(answer.answer)
    pairs, first_answers, second_answers = list[dict[str, Any]](), list[str](), list[str]()
    for first, second in combinations(sorted(given), 2):
        if common := sorted(given[first].keys() & given[second].keys()):
            compared = [[given[name][task] for task in common] for name in (first, second)]
            pairs.append({"annotators": (first, second), "tasks": len(common), "kappa": kappa(*compared)})
            first_answers += compared[0] + compared[1]
            second_answers += compared[1] + compared[0]
    kappas = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    return {
        "pairs": pairs,
        "mean": math.fsum(kappas) / len(kappas) if kappas else None,
        "pooled": kappa(first_answers, second_answers) if pairs else None,
    }
