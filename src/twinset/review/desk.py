"""What annotators and the admin do: tasks, queue and answers together, without HTTP."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from twinset.generators.decisions.agreement import agreement_among
from twinset.generators.decisions.answers import Answer
from twinset.review.access import Refused
from twinset.review.queue import Answers, ReviewQueue
from twinset.review.showing import as_json, chosen
from twinset.review.store import AnsweredOtherwise, AnswerStore, utc_now
from twinset.review.tasks import ReviewStage, ReviewTask, ReviewTasks

LEASE_SECONDS = 600.0  # a task that somebody was shown is asked of others after this
SURVEY_SECONDS = 3600.0  # the same of instances that one person answers whole
PACE_OF = 50  # last answers that the pace is measured on
LONGEST_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class StageCounts:
    """How far a stage is. tasks: all; decided: with a decision; tied: that one more annotator must answer."""

    tasks: int
    decided: int
    tied: int


class ReviewDesk:
    """The work on the decisions of one OUT.

    Args:
        tasks: what is asked.
        store: the answers.
        on_decided: called with the name of a stage by the answer that completes its decisions.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        tasks: ReviewTasks,
        store: AnswerStore,
        on_decided: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.tasks, self.store = tasks, store
        self._on_decided, self._clock = on_decided, clock
        self._lock = threading.Lock()
        self._queue = ReviewQueue(())

    def next(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """The next tasks of an annotator, at most ``count``, as JSON for the page.

        They are kept for this annotator for a while, as are the further tasks of whole instances.
        """
        with self._lock:  # from the look at leases to the new ones
            answers, tasks = self._open_to(annotator)
            kept = [task for place, task in enumerate(tasks) if place < count or task.survey.instances]
            self._lease(annotator, *kept)
        progress = self._progress(annotator, answers, len(tasks))
        return [{**as_json(task, annotator, self._url), "progress": progress} for task in tasks[:count]]

    def answer(self, annotator: str, task_id: str, option: str, reason: str, seconds: float) -> None:
        """Store an answer. Raises `Refused`: 404 unknown task, 409 answered otherwise before, 422 unknown option or
        reason.
        """
        task = self.tasks.now().by_id.get(task_id)
        if task is None:
            raise Refused(404, "There is no such task now: its images were made again. Reload the page.")
        choice = chosen(task, annotator, option)
        if choice is None:
            raise Refused(422, f"The task has no option {option[:20]!r}; reload the page.")
        question = task.question
        if reason and (reason not in question.reasons or choice.value not in question.drops):
            raise Refused(422, f"{reason[:20]!r} is not a reason of this answer; reload the page.")
        answer = Answer(
            stage=task.stage,
            task=task.candidate.key,
            binding=task.binding,
            annotator=annotator,
            answer=choice.value,
            reason=reason,
            shown=choice.shown,
            position=choice.position,
            seconds=min(seconds, LONGEST_SECONDS),
            at=utc_now(),
        )
        try:
            is_new = self.store.save(answer)
        except AnsweredOtherwise as error:
            raise Refused(409, "You have answered this task otherwise; undo that answer first.") from error
        if is_new and self._on_decided and self.is_decided(self.tasks.now().stages[task.stage]):
            self._on_decided(task.stage)

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take back the last answer: the task's id and the task as the page shows it, or both null."""
        by_asked = self.tasks.now().by_asked
        answer = self.store.undo(annotator, by_asked)
        if answer is None:
            return {"id": None, "task": None}
        task = by_asked[answer.stage, answer.task, answer.binding]
        self._lease(annotator, task)
        progress = self.progress(annotator)
        return {"id": task.id, "task": {**as_json(task, annotator, self._url), "progress": progress}}

    def progress(self, annotator: str) -> dict[str, Any]:
        """How far an annotator is.

        done: answered tasks. total: with those that are open to this annotator. per_hour: answers an hour, by the
        median time of the last ones, so that a break does not count; null before the first answer. minutes: that the
        open tasks take at this pace.
        """
        answers, tasks = self._open_to(annotator)
        return self._progress(annotator, answers, len(tasks))

    def rest(self, annotator: str) -> dict[str, Any]:
        """What is left for an annotator to whom no task can be given now.

        held: how many more tasks would be open if others had not been shown them lately, and minutes until the first
        of them is; null where there are none.
        """
        now = self._clock()
        leases, answers = self.store.leases(now), self.store.answers()
        own = {asked: {annotator: names[annotator]} for asked, names in leases.items() if annotator in names}
        left = len(self._now().open_to(annotator, answers, leases))
        alone = self._now().open_to(annotator, answers, own)
        ends = [end for task in alone for name, end in leases.get(task.asked, {}).items() if name != annotator]
        held = {"tasks": len(alone) - left, "minutes": math.ceil((min(ends, default=now) - now) / 60)}
        return {
            "progress": self._progress(annotator, answers, left),
            "held": held if held["tasks"] else None,
        }

    def stage_counts(self, stage: ReviewStage) -> StageCounts:
        """How far a stage is, by the answers that count."""
        counted = stage.generator.counted([task.candidate for task in stage.tasks], self.answers_to(stage))
        undecided = [(task, given) for task, given in zip(stage.tasks, counted, strict=True) if task.missing(given)]
        tied = sum(len(given) >= task.needed for task, given in undecided)
        return StageCounts(len(stage.tasks), len(stage.tasks) - len(undecided), tied)

    def is_decided(self, stage: ReviewStage) -> bool:
        """Whether a build would go on with the decisions that are in."""
        answers = self.store.answers()
        if any(task.asked not in answers for task in stage.tasks):  # soon known of many tasks
            return False
        counts = self.stage_counts(stage)
        return counts.decided == counts.tasks

    def agreement(self, stage: ReviewStage) -> dict[str, Any]:
        """Agreement of a stage's answers (`agreement_among`), those to what its tasks show now."""
        needed = [task.needed for task in stage.tasks]
        return agreement_among(stage.generator.asks(), zip(needed, self.answers_to(stage), strict=True))

    def answers_to(self, stage: ReviewStage) -> list[list[Answer]]:
        """The answers to each task of a stage."""
        answers = self.store.answers()
        return [[*answers.get(task.asked, {}).values()] for task in stage.tasks]

    def _now(self) -> ReviewQueue:
        """The queue of what is asked now."""
        tasks = self.tasks.now().tasks
        if self._queue.tasks is not tasks:
            self._queue = ReviewQueue(tasks)
        return self._queue

    def _open_to(self, annotator: str) -> tuple[Answers, list[ReviewTask]]:
        """All answers, and what is open to an annotator."""
        leases = self.store.leases(self._clock())
        answers = self.store.answers()  # after the leases: one that ended in between has its answer here
        return answers, self._now().open_to(annotator, answers, leases)

    def _lease(self, annotator: str, *tasks: ReviewTask) -> None:
        now = self._clock()
        ends = {task.asked: now + (SURVEY_SECONDS if task.survey.instances else LEASE_SECONDS) for task in tasks}
        self.store.lease(annotator, ends)

    def _progress(self, annotator: str, answers: Answers, left: int) -> dict[str, Any]:
        asked = self.tasks.now().by_asked
        own = [given[annotator] for key, given in answers.items() if annotator in given and key in asked]
        last = sorted((answer for answer in own if answer.seconds > 0), key=lambda answer: answer.at)[-PACE_OF:]
        seconds = median(answer.seconds for answer in last) if last else None
        return {
            "done": len(own),
            "total": len(own) + left,
            "per_hour": max(round(3600 / seconds), 1) if seconds else None,
            "minutes": round(left * seconds / 60, 1) if seconds else None,
        }

    def _url(self, task: ReviewTask, number: int) -> str:
        return f"/image/{self.tasks.image_id(task, number)}"
