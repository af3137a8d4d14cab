"""From the answers to a task to its decision."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import Decision, ReviewQuestion
from twinset.generators.decisions.questions import question_of
from twinset.generators.decisions.task import TaskCandidate


def counting(task: TaskCandidate, answers: Iterable[Answer]) -> list[Answer]:
    """The answers that count: given for what the task shows now, and to an option that it has."""
    binding, values = task.binding, question_of(task.question).layout(task).values
    return [one for one in answers if one.task == task.key and one.binding == binding and one.answer in values]


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
        found = question.decide([last])
        assert found is not None, "one answer is no tie"
        voters = {one.annotator for one in votes} | {last.annotator}
        share = sum(one.answer == last.answer for one in votes) / len(votes) if votes else 1.0
        simulated = found.simulated or any(one.simulated for one in votes)
        people = tuple(sorted(voters))
        return replace(
            found,
            detail=found.detail or question.why(last.answer, votes),
            votes=len(votes),
            agreement=share,
            annotators=people,
            simulated=simulated,
            adjudicated=True,
        )
    if len(votes) < max(needed, 1):
        return None
    return question.decide(votes) or (_as_known(question, votes, gold) if gold else None)


def _as_known(question: ReviewQuestion, votes: Sequence[Answer], gold: str) -> Decision:
    """The decision on a gold task whose votes are a tie: nobody need settle what is known."""
    return Decision(
        choice=gold,
        reason=question.drops.get(gold, ""),
        detail=question.why(gold, votes),
        votes=len(votes),
        agreement=sum(one.answer == gold for one in votes) / len(votes),
        annotators=tuple(sorted(one.annotator for one in votes)),
        simulated=any(one.simulated for one in votes),
    )


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
