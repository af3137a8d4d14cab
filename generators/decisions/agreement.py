"""From the answers to a task to its decision; how well annotators agree, how often they are right, with intervals."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import eq
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import Decision, TaskCandidate, question_of


def counting(task: TaskCandidate, answers: Iterable[Answer]) -> list[Answer]:
    """The answers that count: given for what the task shows now, and to an option that it has."""
    asked, question = (task.key, task.binding), question_of(task.question)
    return [a for a in answers if (a.task, a.binding) == asked and question.takes(task, a.answer)]


def decided(task: TaskCandidate, answers: Iterable[Answer], needed: int = 1, gold: str = "") -> Decision | None:
    """The decision on a task.

    An adjudicated answer alone decides, of several the last; where it gives no reason, the reason is that of the others
    who chose the same. Otherwise the majority decides, as `ReviewQuestion.decide` has it; a tie on a gold task, its
    known answer.

    Args:
        answers: of the stage; those that do not count for this task are ignored.
        needed: how many annotators must have answered.
        gold: value of the answer that is known to be right; empty where none is.

    Returns:
        None where answers are lacking, or a tie waits for somebody who settles it.
    """
    question, counted = question_of(task.question), counting(task, answers)
    votes = [answer for answer in counted if not answer.adjudicated]
    last = max((a for a in counted if a.adjudicated), key=lambda answer: (answer.at, answer.annotator), default=None)
    if last is None:
        if len(votes) < max(needed, 1):
            return None
        return question.decide(votes) or (question.decided(gold, votes) if gold else None)
    decision = question.decided(last.answer, votes or [last])
    return replace(
        decision,
        detail=question.why(last.answer, [last]) or decision.detail,
        votes=len(votes),
        annotators=tuple(sorted({*decision.annotators, last.annotator})),
        adjudicated=True,
    )


def of_whole_instances(answered: Iterable[tuple[str, Sequence[Answer]]]) -> list[list[Answer]]:
    """The answers to each task by those who answered all tasks about its instance; and those that settled a tie.

    Who leaves in the middle of an instance is not counted for it: somebody else answers it whole.

    Args:
        answered: instance (key of the task's subject) and answers of each task.
    """
    tasks = [*answered]
    whole: dict[str, set[str]] = {}
    for subject, answers in tasks:
        given = {answer.annotator for answer in answers}
        whole[subject] = whole.get(subject, given) & given
    return [[a for a in answers if a.adjudicated or a.annotator in whole[subject]] for subject, answers in tasks]


def is_tie(task: TaskCandidate, answers: Iterable[Answer], needed: int = 1, gold: str = "") -> bool:
    """Whether all needed answers are in and somebody must settle the disagreement; the arguments as of `decided`."""
    counted = counting(task, answers)
    return len(counted) >= max(needed, 1) and decided(task, counted, needed, gold) is None


def decisions_needed(enough: float, tasks: int) -> int:
    """How many decisions a build waits for: the share ``enough`` (0-1) of its tasks, rounded up."""
    # In floating point 0.1 * 30 is 3.0000000000000004, and three are enough.
    return math.ceil(round(enough * tasks, 6))


def share_of(purpose: str, key: str) -> float:
    """A number of [0, 1) that depends on the purpose and the key alone: keys below x are a share x of all."""
    hashed = hashlib.blake2b(f"{purpose}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float((int.from_bytes(hashed, "big") >> 11) * 2.0**-53)


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many, and the interval of the share."""

    count: int
    of: int
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.count / self.of:.1f} % ({100 * self.low:.1f} % to {100 * self.high:.1f} %)"


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Cohen's kappa of two annotators over the tasks that both answered.

    kappa, low, high: None where it is not defined: both said the same of all tasks.
    """

    annotators: tuple[str, str]
    tasks: int
    kappa: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well annotators agree and how often they are right.

    pairs: Cohen's kappa of each two annotators; mean: of these; gold: accuracy by annotator.
    """

    pairs: Sequence[PairAgreement]
    mean: float | None
    gold: Mapping[str, Share]


def share(count: int, of: int) -> Share:
    """A share with its 95 % interval by Wilson's score, which fits small numbers and shares of 0 and 1 too."""
    from scipy.stats import binomtest

    if of == 0:
        return Share(0, 0, 0.0, 1.0)
    interval = binomtest(count, of).proportion_ci(0.95, "wilson")
    return Share(count, of, float(interval.low), float(interval.high))


def agreement_of(names: tuple[str, str], first: Sequence[str], second: Sequence[str]) -> PairAgreement:
    """Cohen's kappa with its interval: that of Wilson's score (1927) of the observed agreement p_o, on kappa's scale,

    kappa = (p_o - p_e) / (1 - p_e).

    As in Cohen (1960), the agreement by chance p_e is taken as known. His interval is Wald's of p_o, which has no width
    where two annotators agree on all tasks, or on none, however few these are.

    Args:
        first, second: categories that both gave, task by task.
    """
    n, given, others = len(first), Counter(first), Counter(second)
    by_chance = sum(given[value] * others[value] for value in given) / n**2
    if by_chance == 1:
        return PairAgreement(names, n, None)
    observed = share(sum(map(eq, first, second)), n)
    ends = (observed.count / n, observed.low, observed.high)
    kappa, low, high = ((end - by_chance) / (1 - by_chance) for end in ends)
    return PairAgreement(names, n, kappa, max(low, -1.0), min(high, 1.0))


def agreement_among(question: str, answers: Sequence[Answer], gold: Mapping[str, str]) -> Agreement:
    """The agreement of each two annotators who have tasks in common; adjudicated answers are left out.

    The mean is the plain one over pairs of annotators, as in BiVLC's Table 7; None where no pair has a kappa.

    Args:
        question: of the tasks; unused where there are no answers.
        answers: to the tasks of a stage.
        gold: right answers by task, where they are known.
    """
    given: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for answer in answers:
        if not answer.adjudicated:
            given[answer.annotator][answer.task] = answer.answer
    pairs = []
    for names in combinations(sorted(given), 2):
        if common := sorted(given[names[0]].keys() & given[names[1]].keys()):
            compared = question_of(question).compared
            pairs.append(agreement_of(names, *([compared(given[name][task]) for task in common] for name in names)))
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    right = {name: [value == gold[task] for task, value in own.items() if task in gold] for name, own in given.items()}
    accuracy = {name: share(sum(right[name]), len(right[name])) for name in sorted(right) if right[name]}
    return Agreement(pairs, math.fsum(kappas) / len(kappas) if kappas else None, accuracy)


def read_gold(path: Path, tasks: Iterable[TaskCandidate]) -> dict[str, str]:
    """Right answers by key of the task, of gold tasks: a CSV file with columns ``key`` and ``answer``.

    Args:
        tasks: of the stage; keys of the file that are not among them are ignored.

    Raises:
        WrongUse: the file cannot be read, lacks a column, has two rows of one key, names none of the tasks, or an
            answer that a task does not have.
    """
    import polars as pl

    try:
        rows = pl.read_csv(path.read_bytes(), columns=["key", "answer"], infer_schema=False).fill_null("")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise WrongUse(f"{path}: not a CSV file with columns key and answer ({error}); correct it") from error
    if len(twice := rows.filter(pl.col("key").is_duplicated())):
        raise WrongUse(f"{path}: {twice['key'][0]!r} has more than one answer; leave one")
    gold = dict(zip(rows["key"], rows["answer"], strict=True))
    asked = [task for task in tasks if task.key in gold]
    if gold and not asked:
        raise WrongUse(
            f"{path}: {next(iter(gold))!r} and the other keys are not tasks of this stage; write those that "
            "twinset review OUT --out FILE.csv lists as task_id"
        )
    for task in asked:
        question, answer = question_of(task.question), gold[task.key]
        if not question.takes(task, answer):
            values = ", ".join(question.layout(task).values)
            raise WrongUse(f"{path}: the answer {answer!r} to {task.key} is none of {values}; correct it")
    return gold
