"""From the answers to a task to its decision; how well annotators agree, how often they are right, with intervals."""

import csv
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.generators.decisions.questions import question_of


def counting(task: TaskCandidate, answers: Iterable[Answer]) -> list[Answer]:
    """The answers that count: given for what the task shows now, and to an option that it has."""
    binding, question = task.binding, question_of(task.question)
    mine = [one for one in answers if one.task == task.key and one.binding == binding]
    return [one for one in mine if question.takes(task, one.answer)]


def decided(task: TaskCandidate, answers: Iterable[Answer], needed: int = 1, gold: str = "") -> Decision | None:
    """The decision on a task.

    An adjudicated answer alone decides; where it gives no reason, the reason is that of the others who chose the same.
    Otherwise the majority decides, as `ReviewQuestion.decide` has it; a tie on a gold task, its known answer.

    Args:
        answers: of the stage; those that do not count for this task are ignored.
        needed: how many annotators must have answered.
        gold: value of the answer that is known to be right; empty where none is.

    Returns:
        None where answers are lacking, or a tie waits for somebody who settles it.
    """
    question, counted = question_of(task.question), counting(task, answers)
    votes = [one for one in counted if not one.adjudicated]
    if settling := [one for one in counted if one.adjudicated]:
        # Of several the last word counts.
        last = max(settling, key=lambda one: (one.at, one.annotator))
        found = question.decided(last.answer, [last])
        voters = {one.annotator for one in votes} | {last.annotator}
        share = sum(one.answer == last.answer for one in votes) / len(votes) if votes else 1.0
        people = tuple(sorted(voters))
        return replace(
            found,
            detail=found.detail or question.why(last.answer, votes),
            votes=len(votes),
            agreement=share,
            annotators=people,
            adjudicated=True,
        )
    if len(votes) < max(needed, 1):
        return None
    return question.decide(votes) or (question.decided(gold, votes) if gold else None)


def is_tie(task: TaskCandidate, answers: Iterable[Answer], needed: int = 1, gold: str = "") -> bool:
    """Whether all needed answers are in and somebody must settle the disagreement; the arguments as of `decided`."""
    counted = counting(task, answers)
    return len(counted) >= max(needed, 1) and decided(task, counted, needed, gold) is None


def answers_needed(key: str, overlap: float, several: int) -> int:
    """How many people answer a task: ``several`` for a share ``overlap`` (0-1) of tasks by the hash of their keys."""
    return several if share_of("overlap", key) < overlap else 1


def decisions_needed(enough: float, tasks: int) -> int:
    """How many decisions a build waits for: the share ``enough`` (0-1) of its tasks, rounded up."""
    # In floating point 0.1 * 30 is 3.0000000000000004, and three are enough.
    return math.ceil(round(enough * tasks, 6))


def share_of(purpose: str, key: str) -> float:
    """A number of [0, 1) that depends on the purpose and the key alone: keys below x are a share x of all."""
    hashed = hashlib.blake2b(f"{purpose}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float((int.from_bytes(hashed, "big") >> 11) * 2.0**-53)


def by_task(answers: Iterable[Answer]) -> Mapping[str, list[Answer]]:
    """Answers by the key of their task."""
    found: dict[str, list[Answer]] = {}
    for one in answers:
        found.setdefault(one.task, []).append(one)
    return found


Z = 1.959963984540054  # of the normal distribution: 95 % lie within ± Z standard deviations


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many, and the interval of the share."""

    count: int
    of: int
    low: float
    high: float


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
    """A share with its interval by Wilson's score, which holds for small numbers and for shares of 0 and 1 too:

    centre = (p + z^2 / 2n) / (1 + z^2 / n);  half = z sqrt(p (1 - p) / n + z^2 / 4n^2) / (1 + z^2 / n)
    """
    if of == 0:
        return Share(0, 0, 0.0, 1.0)
    p, weight = count / of, Z * Z / of
    centre = (p + weight / 2) / (1 + weight)
    half = Z * math.sqrt(p * (1 - p) / of + weight / (4 * of)) / (1 + weight)
    # At the ends rounding would leave a billionth.
    return Share(count, of, 0.0 if count == 0 else max(centre - half, 0.0), 1.0 if count == of else centre + half)


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa of two lists of categories, as scikit-learn computes it; None where chance alone explains all."""
    from sklearn.metrics import cohen_kappa_score

    if not first or (len(set(first)) == 1 and set(first) == set(second)):
        return None
    return float(cohen_kappa_score(first, second))


def agreement_of(names: tuple[str, str], first: Sequence[str], second: Sequence[str]) -> PairAgreement:
    """Kappa with its interval: that of Wilson's score (1927) of the observed agreement p_o, on the scale of kappa,

    kappa = (p_o - p_e) / (1 - p_e).

    As in Cohen (1960), the agreement by chance p_e is taken as known. His interval is Wald's of p_o, which has no width
    where two annotators agree on all tasks, or on none, however few these are.
    """
    n, kappa = len(first), cohens_kappa(first, second)
    if kappa is None:
        return PairAgreement(names, n, None)
    same = sum(one == other for one, other in zip(first, second, strict=True))
    # Sorted: the last bit of a sum depends on its order, and a report must be the same in every process.
    by_chance = sum((first.count(one) / n) * (second.count(one) / n) for one in sorted({*first, *second}))
    within = share(same, n)
    low, high = ((one - by_chance) / (1 - by_chance) for one in (within.low, within.high))
    return PairAgreement(names, n, kappa, max(low, -1.0), min(high, 1.0))


def by_pair(answers: Iterable[Answer], categories: Mapping[str, str]) -> list[PairAgreement]:
    """The agreement of each two annotators who have tasks in common, by name; adjudicated answers are left out.

    Args:
        answers: of one stage.
        categories: by value, what agreement is measured on (`generators.decisions.question.ReviewQuestion.compared`).
    """
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in answers:
        if not one.adjudicated:
            said[one.annotator][one.task] = categories[one.answer]
    found = []
    for first, second in combinations(sorted(said), 2):
        both = sorted(said[first].keys() & said[second].keys())
        if both:
            values = [[said[name][task] for task in both] for name in (first, second)]
            found.append(agreement_of((first, second), *values))
    return found


def mean_kappa(pairs: Iterable[PairAgreement]) -> float | None:
    """The plain mean over pairs of annotators, as BiVLC's Table 7 has it; None where no pair has a kappa."""
    defined = [one.kappa for one in pairs if one.kappa is not None]
    return math.fsum(defined) / len(defined) if defined else None


def gold_accuracy(answers: Iterable[Answer], gold: Mapping[str, str]) -> dict[str, Share]:
    """How often each annotator gave the right answer to tasks of which it is known."""
    right: defaultdict[str, list[bool]] = defaultdict(list)
    for one in answers:
        if one.task in gold and not one.adjudicated:
            right[one.annotator].append(one.answer == gold[one.task])
    return {name: share(sum(found), len(found)) for name, found in sorted(right.items())}


def agreement_among(question: str, answers: Sequence[Answer], gold: Mapping[str, str]) -> Agreement:
    """The agreement among the answers to the tasks of a stage.

    Args:
        question: of the tasks; unused where there are no answers.
        gold: right answers by task, where they are known.
    """
    categories = {one.answer: question_of(question).compared(one.answer) for one in answers}
    pairs = by_pair(answers, categories)
    return Agreement(pairs, mean_kappa(pairs), gold_accuracy(answers, gold))


def read_gold(path: Path, tasks: Iterable[TaskCandidate]) -> dict[str, str]:
    """Right answers by key of the task, of gold tasks: a CSV file with columns ``key`` and ``answer``.

    Args:
        tasks: of the stage; keys of the file that are not among them are ignored.

    Raises:
        WrongUse: the file cannot be read, lacks a column, has two rows of one key, names none of the tasks, or an
            answer that a task does not have.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            if lacking := sorted({"key", "answer"} - {*(rows.fieldnames or ())}):
                raise ValueError(f"no column {lacking[0]}")
            gold: dict[str, str] = {}
            for row in rows:
                if row["key"] in gold:
                    line = f"{path}, line {rows.line_num}"
                    raise WrongUse(f"{line}: {row['key']!r} has an answer in a line above; keep one of the two")
                gold[row["key"]] = row["answer"]
    except (OSError, ValueError, csv.Error) as error:
        raise WrongUse(f"{path}: not a CSV file with columns key and answer ({error}); correct it") from error
    asked = {one.key: one for one in tasks if one.key in gold}
    if gold and not asked:
        raise WrongUse(
            f"{path}: {next(iter(gold))!r} and the other keys are not tasks of this stage; write those that "
            "twinset review OUT --out FILE.csv lists as task_id"
        )
    for key, task in asked.items():
        question = question_of(task.question)
        if not question.takes(task, gold[key]):
            values = question.layout(task).values
            raise WrongUse(f"{path}: the answer {gold[key]!r} to {key} is none of {', '.join(values)}; correct it")
    return gold
