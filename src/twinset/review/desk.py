"""What annotators and the admin do: tasks, queue and answers together, without HTTP."""

import logging
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from twinset.contracts.errors import in_words
from twinset.generators.decisions.agreement import agreement_among
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import BlockText
from twinset.review.access import Refused
from twinset.review.queue import Counts, ReviewQueue
from twinset.review.showing import as_json, chosen
from twinset.review.store import AnsweredOtherwise, AnswerStore, utc_now
from twinset.review.tasks import ReviewStage, ReviewTask, ReviewTasks

PACE_OF = 50  # last answers to a kind of question that the pace is measured on
LONGEST_SECONDS = 86_400.0

logger = logging.getLogger("twinset")


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
        on_decided: called with the name of a stage once all its decisions are in, after the answer is stored.
            When it fails it is called again at the next answer, view of the admin's page, or start.
    """

    def __init__(self, tasks: ReviewTasks, store: AnswerStore, on_decided: Callable[[str], None] | None = None) -> None:
        self.tasks, self.store, self.queue = tasks, store, ReviewQueue(store)
        self._on_decided = on_decided
        self._announced: dict[str, str] = {}  # the plan, by stage
        self._lock, self._announcing = threading.Lock(), False
        self._to_look_at: set[str] = set()

    def next(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """The next tasks of an annotator, as JSON for the page."""
        loaded, held = self.tasks.now(), self.store.held()
        progress = self.progress(annotator)
        found = self.queue.next(loaded.tasks, held, annotator, count)
        return [{**as_json(task, annotator, self._url), "progress": progress} for task in found]

    def answer(self, annotator: str, task_id: str, option: str, reason: str, seconds: float) -> str:
        """Store an answer; returns the name of its stage. Raises `Refused`: 404 unknown task, 409 answered otherwise
        before, 422 unknown option or reason.
        """
        task = self._task(task_id)
        taken = chosen(task, annotator, option)
        if taken is None:
            raise Refused(422, f"The task has no option {option[:20]!r}; reload the page.")
        question = task.question
        if reason and (reason not in question.reasons or taken.value not in question.drops):
            raise Refused(422, f"{reason[:20]!r} is not a reason of this answer; reload the page.")
        try:
            self.store.save(
                Answer(
                    stage=task.stage,
                    task=task.candidate.key,
                    binding=task.binding,
                    annotator=annotator,
                    answer=taken.value,
                    reason=reason,
                    shown=taken.shown,
                    position=taken.position,
                    seconds=min(max(seconds, 0.0), LONGEST_SECONDS),
                    at=utc_now(),
                )
            )
        except AnsweredOtherwise as error:
            raise Refused(409, "You have answered this task otherwise; undo that answer first.") from error
        return task.stage

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take back the last answer: the task's id and the task as the page shows it, or both null."""
        asked = self.tasks.now().by_asked
        taken = self.store.undo(annotator, asked)
        if taken is None:
            return {"id": None, "task": None}
        task = asked[taken.stage, taken.task, taken.binding]
        self.queue.lease(task, annotator)
        return {"id": task.id, "task": {**as_json(task, annotator, self._url), "progress": self.progress(annotator)}}

    def progress(self, annotator: str) -> dict[str, Any]:
        """How far an annotator is.

        done, total: tasks. per_hour: by question, of those that were answered. minutes: that what is left takes at the
        pace of each question, of one that was never answered at the mean of the others; null before the first answer.
        """
        counts, pace = self.counts(annotator), self.pace(annotator)
        usual = sum(pace.values()) / len(pace) if pace else 0.0
        minutes = sum(60 * left / pace.get(question, usual) for question, left in counts.left_of.items() if usual)
        return {
            "done": counts.done,
            "total": counts.done + counts.left,
            "per_hour": pace,
            "minutes": round(minutes, 1) if pace else None,
        }

    def rest(self, annotator: str) -> dict[str, Any]:
        """What is left for an annotator to whom no task can be given now, and who was shown it (``held``)."""
        held = self.queue.elsewhere(self.tasks.now().tasks, self.store.held(), annotator)
        return {
            "progress": self.progress(annotator),
            "held": [
                {"annotator": one.annotator, "tasks": one.tasks, "minutes": math.ceil(one.seconds / 60)} for one in held
            ],
        }

    def counts(self, annotator: str) -> Counts:
        """How far an annotator is."""
        return self.queue.counts(self.tasks.now().tasks, self.store.held(), annotator)

    def pace(self, annotator: str) -> dict[str, int]:
        """Answers an hour by question, from the median time of the last ones: a break does not count."""
        given: dict[str, list[Answer]] = {}
        for stage in self.tasks.now().stages.values():
            if stage.tasks:
                last = self.store.last_of(annotator, stage.name, PACE_OF)
                given.setdefault(stage.tasks[0].question.name, []).extend(one for one in last if one.seconds > 0)
        latest = {kind: sorted(said, key=lambda one: one.at)[-PACE_OF:] for kind, said in given.items() if said}
        return {kind: max(round(3600 / median(one.seconds for one in said)), 1) for kind, said in latest.items()}

    def stage_counts(self, stage: ReviewStage) -> StageCounts:
        """How far a stage is, by the answers that count."""
        answers = [self.answers_to(task) for task in stage.tasks]
        counted = stage.generator.counted([task.candidate for task in stage.tasks], answers)
        open_tasks = [(task, given) for task, given in zip(stage.tasks, counted, strict=True) if task.missing(given)]
        tied = sum(len(given) >= task.needed for task, given in open_tasks)
        return StageCounts(len(stage.tasks), len(stage.tasks) - len(open_tasks), tied)

    def guides(self) -> list[BlockText]:
        """What is said of the tasks that are asked, in their order."""
        found: list[BlockText] = []
        for task in sorted(self.tasks.now().tasks, key=lambda one: (one.stage, one.block)):
            if task.words not in found:
                found.append(task.words)
        return found

    def agreement(self, stage: ReviewStage) -> dict[str, Any]:
        """Agreement of a stage's answers (`agreement_among`), those to what its tasks show now."""
        return agreement_among(stage.generator.asks(), (one for task in stage.tasks for one in self.answers_to(task)))

    def answers_to(self, task: ReviewTask) -> list[Answer]:
        """The answers to a task."""
        return [*self.store.held().get(task.asked, {}).values()]

    def announce(self, names: Iterable[str] = ()) -> None:
        """Call ``on_decided`` for stages that are decided, once a plan.

        It may take a while: who calls this meanwhile does not wait, and is served by the call that does.

        Args:
            names: of stages; all when empty.
        """
        with self._lock:
            self._to_look_at.update(names or self.tasks.now().stages)
            if self._announcing:
                return
            self._announcing = True
        while True:
            with self._lock:
                if not self._to_look_at:
                    self._announcing = False
                    return
                name = self._to_look_at.pop()
            self._look_at(name)

    def _look_at(self, name: str) -> None:
        stage = self.tasks.now().stages.get(name)
        if stage is None or stage.used or self._announced.get(name) == stage.plan or not self.is_decided(stage):
            return
        try:
            if self._on_decided is not None:
                self._on_decided(name)
            self._announced[name] = stage.plan
        except Exception as error:  # whatever it calls, the answers are stored and the page goes on
            logger.warning("%s: all decisions are in, but what waits for them was not told: %s", name, in_words(error))

    def is_decided(self, stage: ReviewStage) -> bool:
        """Whether a build would go on with the decisions that are in."""
        held = self.store.held()
        if not all(held.get(task.asked) for task in stage.tasks):  # soon said of many tasks
            return False
        counts = self.stage_counts(stage)
        return counts.decided == counts.tasks

    def _task(self, task_id: str) -> ReviewTask:
        task = self.tasks.now().by_id.get(task_id)
        if task is None:
            raise Refused(404, "There is no such task now: its images were made again. Reload the page.")
        return task

    def _url(self, task: ReviewTask, number: int) -> str:
        return f"/image/{self.tasks.image_id(task, number)}"
