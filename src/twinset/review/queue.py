"""Which task an annotator is asked next: everyone has work until each task has the answers that it needs."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from twinset.generators.decisions.answers import Answer
from twinset.review.store import AnswerStore
from twinset.review.surveys import SURVEY_SECONDS, Held, Instance, Surveys
from twinset.review.tasks import ReviewTask

LEASE_SECONDS = 600.0  # a task that somebody was shown is asked of others after this
CLOCK_SLACK = 60.0  # seconds by which clocks may differ


@dataclass(frozen=True, slots=True)
class Counts:
    """done: answers of an annotator; left: tasks that still need one, by question; waiting: those that only others can
    answer."""

    done: int
    left_of: Mapping[str, int]
    waiting: int

    @property
    def left(self) -> int:
        """Tasks that still need an answer, of all questions."""
        return sum(self.left_of.values())


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Tasks that another annotator was shown lately. seconds: until the first of them is asked of others."""

    annotator: str
    tasks: int
    seconds: float


class ReviewQueue:
    """The order of tasks by annotator, and who was shown what lately.

    Stages follow one another; within a stage the order is the annotator's own. Tasks about one subject are as far apart
    as can be, so that no answer helps with another: all subjects are asked about once before any is asked about again,
    in the same order.

    Where a protocol says so, one block of tasks ends before the next begins, and everyone gets whole instances
    (`Surveys`).

    Args:
        store: keeps the leases, so that they outlive this process.
        clock: seconds since 1970.
    """

    def __init__(self, store: AnswerStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._orders: dict[str, tuple[Sequence[ReviewTask], list[ReviewTask]]] = {}
        self._surveys: tuple[Sequence[ReviewTask], Surveys] = (), Surveys(())

    def next(self, tasks: Sequence[ReviewTask], held: Held, annotator: str, count: int) -> list[ReviewTask]:
        """The next tasks of an annotator, at most ``count``; they are leased to this annotator.

        Args:
            tasks: all that there are; the same object as long as they are the same.
            held: all answers.
        """
        with self._lock:
            now = self._clock()
            mine = self._instances(tasks, held, annotator, now)
            whole: list[ReviewTask] = []
            found: list[ReviewTask] = []
            for task in self._order(tasks, annotator):
                if len(found) == count and not mine:
                    break
                if task.survey.instances:
                    taken = task.instance in mine and _is_open(task, held.get(task.asked, {}), annotator, whole=True)
                    whole += [task] if taken else []
                else:
                    # Leases before answers: one that ends in between is followed by an answer that is seen.
                    leased = len(self._others(task, annotator, now))
                    taken = len(found) < count and _is_open(task, held.get(task.asked, {}), annotator, leased)
                if taken and len(found) < count:
                    found.append(task)
            single = [task for task in found if not task.survey.instances]
            # Of whole instances all that is left is kept, not only what is shown.
            for kept, seconds in ((single, LEASE_SECONDS), (whole, SURVEY_SECONDS)):
                if kept:
                    self._store.lease([task.asked for task in kept], annotator, now + seconds, now)
        return found

    def lease(self, task: ReviewTask, annotator: str) -> None:
        """Keep a task for an annotator who is shown it again."""
        with self._lock:
            now = self._clock()
            self._store.lease([task.asked], annotator, now + _lease_of(task), now)

    def counts(self, tasks: Sequence[ReviewTask], held: Held, annotator: str) -> Counts:
        """How far an annotator is, whoever else was shown what; of whole instances, with those that are this one's."""
        with self._lock:
            mine = self._instances(tasks, held, annotator, self._clock())
        done = waiting = 0
        left = Counter[str]()
        for task in tasks:
            answers = held.get(task.asked)
            if task.survey.instances and annotator not in (answers or ()):
                whole = task.instance in mine
                left[task.candidate.question] += whole and _is_open(task, answers or {}, annotator, whole=True)
            elif not answers:  # most of many
                left[task.candidate.question] += 1
            elif annotator in answers:
                done += 1
                waiting += task.missing(answers.values()) > 0
            else:
                left[task.candidate.question] += _is_open(task, answers, annotator)
        return Counts(done, +left, waiting)

    def elsewhere(self, tasks: Sequence[ReviewTask], held: Held, annotator: str) -> list[Elsewhere]:
        """Who was shown the tasks that this annotator would be asked otherwise, by name."""
        now = self._clock()
        found: dict[str, list[float]] = {}
        with self._lock:
            lacked = self._instances(tasks, held, annotator, now, True) - self._instances(tasks, held, annotator, now)
            for task in tasks:
                others = self._others(task, annotator, now)
                answers = held.get(task.asked, {})
                if task.survey.instances and task.instance not in lacked:
                    continue
                if _is_open(task, answers, annotator) and not _is_open(task, answers, annotator, len(others)):
                    for name, until in others.items():
                        found.setdefault(name, []).append(until - now)
        return [Elsewhere(name, len(left), min(left)) for name, left in sorted(found.items())]

    def _instances(
        self, tasks: Sequence[ReviewTask], held: Held, annotator: str, now: float, alone: bool = False
    ) -> set[Instance]:
        """The whole instances of an annotator. alone: as if nobody else had been shown anything."""
        if self._surveys[0] is not tasks:
            self._surveys = tasks, Surveys(tasks)

        def shown(task: ReviewTask) -> set[str]:
            names = {*self._shown(task, now)}
            return names & {annotator} if alone else names

        return self._surveys[1].of(annotator, held, shown)

    def _order(self, tasks: Sequence[ReviewTask], annotator: str) -> list[ReviewTask]:
        known = self._orders.get(annotator)
        if known is None or known[0] is not tasks:
            stages = {name: at for at, name in enumerate(dict.fromkeys(task.stage for task in tasks))}
            turns = _turns(tasks, annotator)

            def place(task: ReviewTask) -> tuple[int, int, int, bytes]:
                return stages[task.stage], task.block, turns[task.id], _rank(annotator, task.candidate.subject)

            known = self._orders[annotator] = tasks, sorted(tasks, key=place)
        return known[1]

    def _others(self, task: ReviewTask, annotator: str, now: float) -> dict[str, float]:
        """The others who were shown a task lately, and until when (s) it is kept for each."""
        return {name: until for name, until in self._shown(task, now).items() if name != annotator}

    def _shown(self, task: ReviewTask, now: float) -> dict[str, float]:
        """Who was shown a task lately, and until when (s) it is kept for each.

        What lasts longer than a lease can was written before the clock was set back; another server on the same file
        may have looked at it a moment later.
        """
        leases, latest = self._store.leases().get(task.asked, {}), now + _lease_of(task) + CLOCK_SLACK
        return {name: until for name, until in [*leases.items()] if now < until <= latest}


def _lease_of(task: ReviewTask) -> float:
    return SURVEY_SECONDS if task.survey.instances else LEASE_SECONDS


def _turns(tasks: Sequence[ReviewTask], annotator: str) -> dict[str, int]:
    """By id: which of the tasks of its block about its subject a task is, from 0, in an annotator's own order."""
    seen: Counter[tuple[str, str, int]] = Counter()
    turns = {}
    for task in sorted(tasks, key=lambda one: _rank(annotator, one.candidate.key)):
        subject = *task.instance, task.block
        turns[task.id] = seen[subject]
        seen[subject] += 1
    return turns


def _rank(annotator: str, name: str) -> bytes:
    return hashlib.blake2b(f"{annotator}\0{name}".encode(), digest_size=8).digest()


def _is_open(
    task: ReviewTask, answers: Mapping[str, Answer], annotator: str, leased: int = 0, whole: bool = False
) -> bool:
    """Whether a task needs this annotator's answer.

    leased: how many others were shown it and did not answer yet. whole: whether its instance is this annotator's, so
    that what others have said does not matter.
    """
    return annotator not in answers and (whole or leased < task.missing(answers.values()))
