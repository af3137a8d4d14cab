"""Which tasks an annotator can be given, and in which order."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from twinset.generators.decisions.answers import Answer
from twinset.review.store import Asked
from twinset.review.tasks import ReviewTask

Answers = Mapping[Asked, Mapping[str, Answer]]  # by task and annotator
Leases = Mapping[Asked, Mapping[str, float]]  # until when (s since 1970) a task is kept, by task and annotator
Unit = tuple[str, str]  # `ReviewTask.unit`


class ReviewQueue:
    """The tasks that are open to each annotator: everyone has work until each task has the answers that it needs.

    One annotator answers a unit whole: a task, or all tasks about an instance where the protocol says how many
    instances everyone gets. A unit is open while it lacks more answers than those who were shown it lately may give.
    Of instances, those that the annotator has begun come first, and those that others left halfway last.

    Stages follow one another, and in a stage its blocks. Within a block the order is the annotator's own, and tasks
    about one subject are as far apart as can be, so that no answer helps with another: all subjects are asked about
    once before any is asked about again, in the same order.
    """

    def __init__(self, tasks: Sequence[ReviewTask]) -> None:
        self.tasks = tasks
        self._orders: dict[str, list[ReviewTask]] = {}
        self._units: dict[Unit, list[ReviewTask]] = {}
        for task in tasks:
            self._units.setdefault(task.unit, []).append(task)

    def open_to(self, annotator: str, answers: Answers, leases: Leases) -> list[ReviewTask]:
        """Tasks that an annotator can be given, in order.

        Args:
            answers: all that were given.
            leases: of tasks that were shown lately.
        """
        units = self._units_of(annotator, answers, leases)
        tasks = self._order(annotator)
        return [task for task in tasks if task.unit in units and annotator not in answers.get(task.asked, ())]

    def _units_of(self, annotator: str, answers: Answers, leases: Leases) -> set[Unit]:
        """Open units, of instances no more than are this annotator's."""
        done = Counter[str]()  # instances that the annotator answered whole, by stage
        waiting: list[tuple[bool, bool, bytes, Unit]] = []
        units: set[Unit] = set()
        for unit, tasks in self._units.items():
            given = [answers.get(task.asked, {}) for task in tasks]
            whole = set[str].intersection(*map(set, given))
            holders = {name for task in tasks for name in leases.get(task.asked, ())} - whole - {annotator}
            counted = [[names[name] for name in whole] for names in given]
            missing = max(task.missing(own) for task, own in zip(tasks, counted, strict=True))
            if annotator in whole:
                done[unit[0]] += 1
            elif len(holders) < missing and not tasks[0].survey.instances:
                units.add(unit)
            elif len(holders) < missing:
                begun = set[str]().union(*given)
                left_halfway = bool(begun - whole - holders - {annotator})
                waiting.append((annotator not in begun, left_halfway, _rank(*unit), unit))
        for *_, unit in sorted(waiting):
            if done[unit[0]] < self._units[unit][0].survey.instances:
                done[unit[0]] += 1
                units.add(unit)
        return units

    def _order(self, annotator: str) -> list[ReviewTask]:
        """All tasks in an annotator's order."""
        if annotator not in self._orders:
            stages = {name: place for place, name in enumerate(dict.fromkeys(task.stage for task in self.tasks))}
            turns = self._turns(annotator)

            def place(task: ReviewTask) -> tuple[int, int, int, bytes]:
                return stages[task.stage], task.block, turns[task.id], _rank(annotator, task.candidate.subject)

            self._orders[annotator] = sorted(self.tasks, key=place)
        return self._orders[annotator]

    def _turns(self, annotator: str) -> dict[str, int]:
        """By id: as which of the tasks of its block about its subject a task is asked, from 0."""
        asked = Counter[tuple[str, str, int]]()
        turns = {}
        for task in sorted(self.tasks, key=lambda task: _rank(annotator, task.candidate.key)):
            subject = task.stage, task.candidate.subject, task.block
            turns[task.id] = asked[subject]
            asked[subject] += 1
        return turns


def _rank(*names: str) -> bytes:
    """A place in an order that has no meaning."""
    return hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
