"""The tasks below OUT that people are asked: the plans of its decision stages."""

import hashlib
import hmac
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
from twinset.shards.read import read_settings
from twinset.shards.records import planned_stage, stages_in
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

    id: what the page calls it, which says nothing of its key. asked: what answers to it are found by. needed: how many
    people's answers its decision takes. survey: how it is asked.
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
    def instance(self) -> tuple[str, str]:
        """Stage and subject: what one annotator answers whole, where the protocol has instances."""
        return self.stage, self.candidate.subject

    def missing(self, answers: Collection[Answer]) -> int:
        """How many more people must answer: after a tie one more. answers: of those who did."""
        if len(answers) < self.needed:
            return self.needed - len(answers)
        return int(len(answers) > 1 and self.question.decide([*answers]) is None)  # a single answer is no tie


@dataclass(frozen=True, slots=True)
class ReviewStage:
    """A planned decision stage.

    plan: digest that changes when it is planned again. answers: the file of its answers. used: whether a build has
    taken the decisions into its plan.
    """

    name: str
    plan: str
    generator: Decisions
    answers: Path
    tasks: tuple[ReviewTask, ...]
    used: bool = False


@dataclass(slots=True)
class _Seen:
    """A stage record that was looked at. stage: None where it is not one that asks people."""

    stamp: str
    stage: ReviewStage | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is asked at one time; a plan that is written again gives another one.

    by_asked: tasks by what answers are found by. images: task and number by id.
    """

    stages: Mapping[str, ReviewStage] = field(default_factory=dict)
    tasks: tuple[ReviewTask, ...] = ()
    by_id: Mapping[str, ReviewTask] = field(default_factory=dict)
    by_asked: Mapping[Asked, ReviewTask] = field(default_factory=dict)
    images: Mapping[str, tuple[ReviewTask, int]] = field(default_factory=dict)


def stages_that_ask(store: Store) -> list[str]:
    """Homes of the stages below OUT that ask people; raises `WrongUse` for a stage whose recipe cannot be read."""
    return [home for home in stages_in(store) if _decisions_of(store, home) is not None]


def _decisions_of(store: Store, home: str) -> Decisions | None:
    """The settings of a stage that asks people; None of another."""
    source = read_settings(store, home)[1].source
    return source if isinstance(source, Decisions) else None


class ReviewTasks:
    """The decision stages below OUT, read again when one is planned again.

    secret: what ids are made with. only: names of stages; all when empty.
    """

    def __init__(
        self, store: Store, secret: bytes, only: Sequence[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.store, self.secret, self._only, self._clock = store, secret, tuple(only), clock
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._looked = -LOOK_SECONDS
        self._pictures: OrderedDict[Asked, list[bytes]] = OrderedDict()
        self._loaded = Loaded()
        self.answers: Path | None = None  # one file for all stages: that of the first
        self.problems: dict[str, str] = {}  # why stages cannot be asked now

    def now(self) -> Loaded:
        """What is asked now; raises nothing: a stage that cannot be read is left out until it can, and logged."""
        with self._lock:
            if self._clock() - self._looked >= LOOK_SECONDS:
                if self._look():
                    self._loaded = self._collected()
                self._looked = self._clock()
            return self._loaded

    def picture(self, task: ReviewTask, number: int) -> bytes:
        """An image of a task as people see it: nothing but the picture tells it from the task's other images.

        Raises what `Decisions.picture` raises, and `WrongUse` when the stage is gone.
        """
        with self._lock:
            pictures = self._pictures.get(task.asked)
        if pictures is None:
            stage = self._loaded.stages.get(task.stage)
            if stage is None:
                raise WrongUse(f"{self.store.root}: {task.stage} is being planned again; reload the page")
            read = [stage.generator.picture(task.candidate, each) for each in range(len(task.candidate.images))]
            pictures = in_one_form(read)
            with self._lock:
                self._pictures[task.asked] = pictures
                if len(self._pictures) > PICTURED:
                    self._pictures.popitem(last=False)
        return pictures[number]

    def image_id(self, task: ReviewTask, number: int) -> str:
        """What the page calls an image: it tells nothing of its number or content."""
        return self._opaque("image", *task.asked, str(number))

    def _look(self) -> bool:
        """Read stages whose record is new; whether any changed."""
        changed, found = False, stages_in(self.store)
        for home in [*self._seen]:
            if home not in found:
                changed |= self._seen.pop(home).stage is not None
        for home in found:
            record = self.store.listing(f"{home}/{layout.META}").get("stage.json")
            name = home.rpartition("/")[2]
            if record is None or (self._only and name not in self._only):
                continue
            seen = self._seen.get(home)
            if seen is not None and seen.stamp == record.stamp:
                continue
            try:
                stage = self._read(home, name)
            except (TwinsetError, OSError) as error:
                if self.problems.get(name) != str(error):
                    logger.warning("%s: cannot be asked now: %s", name, error)
                self.problems[name] = str(error)
                changed |= self._seen.pop(home, _Seen("", None)).stage is not None
                continue
            changed |= stage is not None or (seen is not None and seen.stage is not None)
            self._seen[home] = _Seen(record.stamp, stage)
            self.problems.pop(name, None)
        return changed

    def _read(self, home: str, name: str) -> ReviewStage | None:
        source = _decisions_of(self.store, home)
        if source is None:
            return None
        record = planned_stage(self.store, home)
        generator = job_of(self.store, home)[0].worker(name).source
        assert isinstance(generator, Decisions), f"{name}: a decision stage is made by a Decisions"
        place = generator.answers_place
        refuse_other_answers(f"stages.{name}.source.answers", place, self.store.root)
        self.answers = self.answers or place
        if place != self.answers:
            raise WrongUse(f"its answers lie in {place}, those of other stages in {self.answers}; use --stage {name}")
        planned = planned_tasks(self.store, home)
        tasks = tuple(
            ReviewTask(
                id=self._opaque("task", name, one.key, one.binding),
                candidate=one,
                asked=(name, one.key, one.binding),
                needed=generator.needed(one),
                survey=generator.survey,
            )
            for one in planned
        )
        used = any(one.decision for one in planned)  # by a build
        return ReviewStage(name, f"{record.content} {record.plan}", generator, place, tasks, used)

    def _collected(self) -> Loaded:
        stages = {seen.stage.name: seen.stage for seen in self._seen.values() if seen.stage is not None}
        tasks = tuple(task for name in sorted(stages) for task in stages[name].tasks)
        images = {
            self.image_id(task, number): (task, number)
            for task in tasks
            for number in range(len(task.candidate.images))
        }
        by_asked = {task.asked: task for task in tasks}
        return Loaded(stages, tasks, {task.id: task for task in tasks}, by_asked, images)

    def _opaque(self, *parts: str) -> str:
        return hmac.new(self.secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()[: 2 * ID_BYTES]
