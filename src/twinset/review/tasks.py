"""The tasks below OUT that people are asked: the plans of its decision stages."""

import hashlib
import hmac
import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.recipe.allowed import refuse_other_answers
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import (
    BlockText,
    QuestionSurvey,
    ReviewQuestion,
    TaskCandidate,
    planned_tasks,
    question_of,
)
from twinset.generators.decisions.source import Decisions
from twinset.review.neutral_images import in_one_form
from twinset.review.store import Asked
from twinset.shards.media.decode import UnreadableImage
from twinset.shards.read import read_settings
from twinset.shards.records import stages_in
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store
from twinset.stages.job import job_of

LOOK_SECONDS = 2.0  # between two looks at whether a plan was written again
ID_BYTES = 16
PICTURED = 32  # tasks whose images stay in memory: a browser asks for them one by one

logger = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """A task as the page knows it.

    id: what the page calls it, which says nothing of its key. asked: stage, task and binding of answers to it. needed:
    how many people's answers its decision takes. survey: how it is asked.
    """

    id: str
    candidate: TaskCandidate
    asked: Asked
    needed: int
    survey: QuestionSurvey

    @property
    def stage(self) -> str:
        """Name of its stage."""
        return self.asked[0]

    @property
    def binding(self) -> str:
        """That of what it shows."""
        return self.asked[2]

    @property
    def question(self) -> ReviewQuestion:
        """Its kind."""
        return question_of(self.candidate.question)

    @property
    def block(self) -> int:
        """Number of the block that it is asked in."""
        return self.survey.block_of(self.candidate)

    @property
    def words(self) -> BlockText:
        """What the page says of it."""
        return self.survey.blocks[self.block]

    @property
    def unit(self) -> tuple[str, str]:
        """What one annotator answers whole: stage and key, or stage and subject where the protocol has instances."""
        return self.stage, self.candidate.subject if self.survey.instances else self.candidate.key

    def missing(self, answers: Collection[Answer]) -> int:
        """How many more people must answer: after a tie one more. answers: of those who did."""
        if len(answers) < self.needed:
            return self.needed - len(answers)
        return int(len(answers) > 1 and self.question.decide([*answers]) is None)  # a single answer is no tie


@dataclass(frozen=True, slots=True)
class ReviewStage:
    """A planned decision stage. answers: the file of its answers."""

    name: str
    generator: Decisions
    answers: Path
    tasks: tuple[ReviewTask, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is asked at one time; a plan that is written again gives another one.

    images: task and number of the image, by the id of an image.
    """

    stages: Mapping[str, ReviewStage]
    tasks: tuple[ReviewTask, ...]
    by_id: Mapping[str, ReviewTask]
    by_asked: Mapping[Asked, ReviewTask]
    images: Mapping[str, tuple[ReviewTask, int]]


def stages_that_ask(store: Store) -> list[str]:
    """Homes of the stages below OUT that ask people; raises `WrongUse` for a stage whose recipe cannot be read."""
    return [home for home in stages_in(store) if isinstance(read_settings(store, home)[1].source, Decisions)]


class ReviewTasks:
    """The decision stages below OUT, read again when one is planned again.

    secret: what ids are made with. only: names of stages; all when empty. Raises `WrongUse`: a stage cannot be read, or
    stages keep their answers in several files.
    """

    def __init__(self, store: Store, secret: bytes, only: Sequence[str] = ()) -> None:
        self.store, self.secret, self._only = store, secret, tuple(only)
        self._lock = threading.Lock()
        self._problem = ""
        self._stamps = self._stamps_now()
        self._loaded = self._collected(self._stages())
        self._looked = time.monotonic()
        self._pictures = lru_cache(PICTURED)(self._pictures_of)

    def now(self) -> Loaded:
        """What is asked now. While a stage cannot be read, what was asked before stays, and the log says why."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_SECONDS:
                try:
                    stamps = self._stamps_now()
                    if stamps != self._stamps:
                        self._loaded, self._stamps = self._collected(self._stages()), stamps
                    self._problem = ""
                except (TwinsetError, OSError) as error:
                    if self._problem != str(error):
                        logger.warning("a plan that was written again cannot be read: %s", error)
                    self._problem = str(error)
                self._looked = time.monotonic()
            return self._loaded

    def picture(self, task: ReviewTask, number: int) -> bytes:
        """An image of a task as people see it: nothing but the picture tells it from the task's other images.

        Raises what `Decisions.picture` raises, and `WrongUse` when the task is gone or one of its images is broken.
        """
        return self._pictures(task.id)[number]

    def image_id(self, task: ReviewTask, number: int) -> str:
        """What the page calls an image: it tells nothing of its number or content."""
        return self._opaque("image", *task.asked, str(number))

    def _pictures_of(self, task_id: str) -> list[bytes]:
        task = self._loaded.by_id.get(task_id)
        if task is None:
            raise WrongUse(f"{self.store.root}: the stage was planned again; reload the page")
        generator, numbers = self._loaded.stages[task.stage].generator, range(len(task.candidate.images))
        try:
            return in_one_form([generator.picture(task.candidate, number) for number in numbers])
        except UnreadableImage as error:
            raise WrongUse(
                f"{task.stage}: an image of {task.candidate.key} ({', '.join(task.candidate.images)}) cannot be shown: "
                f"{error}; replace it and build again, or answer the task by --import"
            ) from error

    def _stamps_now(self) -> dict[str, str]:
        """What changes when a stage is planned again, by home."""
        listings = {home: self.store.listing(f"{home}/{layout.META}") for home in stages_in(self.store)}
        return {home: files["stage.json"].stamp for home, files in listings.items() if "stage.json" in files}

    def _stages(self) -> list[ReviewStage]:
        """The stages that ask people and are planned."""
        homes = {home.rpartition("/")[2]: home for home in stages_that_ask(self.store)}
        stages = [self._read(homes[name], name) for name in sorted(homes) if not self._only or name in self._only]
        for stage in stages:
            if stage.answers != stages[0].answers:
                raise WrongUse(
                    f"answers of {stage.name} lie in {stage.answers}, those of {stages[0].name} in "
                    f"{stages[0].answers}; use --stage {stage.name}"
                )
        return stages

    def _read(self, home: str, name: str) -> ReviewStage:
        generator = job_of(self.store, home)[0].worker(name).source
        assert isinstance(generator, Decisions), f"{name}: a decision stage is made by a Decisions"
        place = generator.answers_place
        refuse_other_answers(f"stages.{name}.source.answers", place, self.store.root)
        tasks = tuple(
            ReviewTask(
                id=self._opaque("task", name, candidate.key, candidate.binding),
                candidate=candidate,
                asked=(name, candidate.key, candidate.binding),
                needed=generator.needed(candidate),
                survey=generator.survey,
            )
            for candidate in planned_tasks(self.store, home)
        )
        return ReviewStage(name, generator, place, tasks)

    def _collected(self, stages: Sequence[ReviewStage]) -> Loaded:
        tasks = tuple(task for stage in stages for task in stage.tasks)
        return Loaded(
            stages={stage.name: stage for stage in stages},
            tasks=tasks,
            by_id={task.id: task for task in tasks},
            by_asked={task.asked: task for task in tasks},
            images={
                self.image_id(task, number): (task, number)
                for task in tasks
                for number in range(len(task.candidate.images))
            },
        )

    def _opaque(self, *parts: str) -> str:
        return hmac.new(self.secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()[: 2 * ID_BYTES]
