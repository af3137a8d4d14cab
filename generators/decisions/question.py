"""What people are asked: a planned task, what it shows, what can be answered, and how answers become a decision.

The kinds of questions: which image, which caption, whether a pair is good (BiVLC, 3.1 and 3.2; EqBen, B.2). Where a
recipe names a protocol, it says in which words and blocks they are asked, and how many instances each annotator
answers; without one a question has its own words, and tasks are asked in any order of anybody.
"""

import hashlib
import tomllib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field, TypeAdapter, field_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json
from twinset.contracts.doors import Registry
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES, is_model_folder
from twinset.contracts.plan import plan_file, read_slice
from twinset.contracts.recipe.strict_yaml import read_words
from twinset.contracts.source import Settings
from twinset.generators.decisions.answers import Answer
from twinset.shards.records import read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

UNSCORED = -1.0
Line = Annotated[str, Field(min_length=1, max_length=2000)]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the answers to a task come to.

    choice: value of the option. reason: why the task's subject is dropped; empty where it is kept. detail: such as why
    a pair was screened out. votes: how many answers were counted; agreement: the share of them that gave this choice.
    annotators: who gave them, sorted.
    """

    choice: str
    reason: str
    detail: str
    votes: int
    agreement: float
    annotators: tuple[str, ...]
    adjudicated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCandidate(Candidate):
    """A planned task.

    question: its kind, a name of `QUESTIONS`. texts, images: what is shown; images are
    keys of an earlier stage, or names in a folder of photos. image_tars: where each lies in its stage; empty for a
    photo. image_sha256s: of each image's file; empty for a photo, which is bound by its name.
    subject: key of the negative caption or pair that is asked about; kind_name: its kind, such as ``replace_obj``.
    priority: score of verification, `UNSCORED` without one; higher is asked first. truth: value of the
    right option where it is known, else empty; it never leaves for the page. decision: the JSON of its `Decision`;
    empty until it is made.
    """

    question: str
    texts: tuple[str, ...]
    images: tuple[str, ...]
    image_tars: tuple[str, ...]
    image_sha256s: tuple[str, ...]
    subject: str
    kind_name: str = ""
    priority: float = UNSCORED
    truth: str = ""
    decision: str = ""

    @property
    def counted_as(self) -> str:
        return self.kind_name

    @property
    def binding(self) -> str:
        """sha256 (hexadecimal) of what is shown. An answer counts for the binding that it was given for alone, so that
        an image that is made again makes the answers about it stale, and no others."""
        shown = [self.question, self.texts, self.images, self.image_sha256s]
        return hashlib.sha256(canonical_json(shown)).hexdigest()


_DECISION = TypeAdapter(Decision)


def decision_of(task: TaskCandidate) -> Decision:
    """The decision that is recorded in a planned task."""
    return _DECISION.validate_json(task.decision)


def planned_tasks(store: Store, home: str) -> list[TaskCandidate]:
    """All tasks of a planned stage in plan order; raises FileNotFoundError when it is not planned."""
    tasks: list[TaskCandidate] = []
    for shard in read_planned(store, home):
        file, row_group = plan_file(shard.shard)
        with store.open(layout.plan(home, file)) as stream:
            tasks += cast(list[TaskCandidate], read_slice(stream, row_group, TaskCandidate))
    return tasks


class Example(Settings):
    """A worked example of the instructions: a case, its right answer, and why."""

    text: Line
    answer: Line
    why: Line


@dataclass(frozen=True, slots=True)
class Option:
    """Something that can be answered. value: as it is stored. image, text: number of the task's image or text that it
    shows, if any."""

    value: str
    label: str
    image: int | None = None
    text: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a task is shown.

    texts, images: numbers of the task's texts and images that are the question itself, in order. options: shown in an
    order that is random by task and annotator where `ReviewQuestion.shuffled` is set. extra: options that follow them,
    never shuffled: none, both, drop.
    """

    texts: tuple[int, ...]
    images: tuple[int, ...]
    options: tuple[Option, ...]
    extra: tuple[Option, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """Values of all options, in canonical order."""
        return tuple(option.value for option in (*self.options, *self.extra))


class ReviewQuestion(ABC):
    """A kind of question. The page knows nothing else of it; a new kind is a class and a line
    in `KINDS`, or comes by the door ``twinset.questions``.

    parts: names of the kinds of task that a protocol may ask in blocks of their own. shuffled: whether the order of
    options is random. ranked: whether an answer is the values of options in order, best first, with spaces between
    them; options that it lacks are equal, behind those. drops: values of options that drop the subject, and the reason
    of the rejection. reasons: codes and words of why it is dropped, offered after a dropping answer. settled: whether
    of values with equal votes on one side, kept or dropped, the first is taken; else that is a tie.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    instructions: ClassVar[tuple[str, ...]]
    examples: ClassVar[tuple[Example, ...]] = ()
    parts: ClassVar[tuple[str, ...]] = ()
    shuffled: ClassVar[bool] = True
    ranked: ClassVar[bool] = False
    drops: ClassVar[Mapping[str, str]] = {}
    reasons: ClassVar[Mapping[str, str]] = {}
    settled: ClassVar[bool] = True

    @abstractmethod
    def layout(self, task: TaskCandidate) -> Layout:
        """What a person sees of a task, in canonical order."""

    def takes(self, task: TaskCandidate, value: str) -> bool:
        """Whether a value is an answer to a task."""
        given, values = value.split(" ") if self.ranked else [value], {*self.layout(task).values}
        return {*given} <= values and len({*given}) == len(given)

    def part(self, task: TaskCandidate) -> str:
        """Which of `parts` a task is."""
        return ""

    def compared(self, value: str) -> str:
        """The category of an answer that agreement between annotators is measured on."""
        return value

    def decide(self, answers: Sequence[Answer]) -> Decision | None:
        """What answers come to: first, by majority, whether the subject is kept; then the value with most votes.

        Args:
            answers: of different annotators, at least one.

        Returns:
            None for a tie, which somebody must settle.
        """
        dropping = [answer for answer in answers if answer.answer in self.drops]
        if 2 * len(dropping) == len(answers):
            return None
        dropped = 2 * len(dropping) > len(answers)
        votes = Counter(answer.answer for answer in answers if (answer.answer in self.drops) == dropped)
        winners = [value for value, count in votes.items() if count == max(votes.values())]
        if len(winners) > 1 and not self.settled:
            return None
        return self.decided(min(winners, key=lambda value: (len(value), value)), answers)

    def decided(self, choice: str, answers: Sequence[Answer]) -> Decision:
        """The decision for a value, by all answers that count."""
        return Decision(
            choice=choice,
            reason=self.drops.get(choice, ""),
            detail=self.why(choice, answers),
            votes=len(answers),
            agreement=sum(answer.answer == choice for answer in answers) / len(answers),
            annotators=tuple(sorted(answer.annotator for answer in answers)),
        )

    def why(self, choice: str, answers: Sequence[Answer]) -> str:
        """The reason given most often by those who chose a value, of equal ones the first by code; empty if none."""
        given = Counter(a.reason for a in answers if a.answer == choice and a.reason in self.reasons)
        return min(given, key=lambda code: (-given[code], code), default="")


KINDS = {
    "best-image": "twinset.generators.decisions.question:BestImage",
    "fits-caption": "twinset.generators.decisions.question:FitsCaption",
    "keep-pair": "twinset.generators.decisions.question:KeepPair",
    "match": "twinset.generators.decisions.question:Match",
}
QUESTIONS = Registry[ReviewQuestion]("review question", ReviewQuestion, __name__, "twinset.questions")
NONE = "none"
_WORDS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))


def _words(name: str) -> tuple[str, tuple[str, ...], tuple[Example, ...]]:
    """Title, instructions and examples of a question."""
    words = _WORDS[name]
    return words["title"], tuple(words["instructions"]), tuple(Example(**fields) for fields in words["examples"])


def question_of(name: str) -> ReviewQuestion:
    """The question of a name; raises `UnknownKind`."""
    return QUESTIONS.find(name)()


class BestImage(ReviewQuestion):
    """One text, the caption, and k images of it: which shows it best, or none (BiVLC, section 3.1, step 3)."""

    name = "best-image"
    title, instructions, examples = _words(name)
    drops: ClassVar[Mapping[str, str]] = {NONE: "none-fits"}

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the images' numbers."""
        images = tuple(Option(str(number), "Image", image=number) for number in range(len(task.images)))
        return Layout((0,), (), images, (Option(NONE, "None of them"),))

    def compared(self, value: str) -> str:
        """Any image or none: more than one can be right (BiVLC, appendix I.3)."""
        return NONE if value == NONE else "any"


PHOTO, GENERATED, BOTH = "photo", "generated", "both"


class FitsCaption(ReviewQuestion):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption.

    An instance is ambiguous unless the photo is chosen (BiVLC, section 3.1, step 4).
    """

    name = "fits-caption"
    title, instructions, examples = _words(name)
    drops: ClassVar[Mapping[str, str]] = {GENERATED: "ambiguous", BOTH: "ambiguous"}

    def layout(self, task: TaskCandidate) -> Layout:
        options = (Option(PHOTO, "Image", image=0), Option(GENERATED, "Image", image=1))
        return Layout((0,), (), options, (Option(BOTH, "Both"),))


KEEP, DROP = "keep", "drop"


class KeepPair(ReviewQuestion):
    """Two texts and two images: caption 0 belongs to image 0, caption 1 to image 1."""

    name = "keep-pair"
    title, instructions, examples = _words(name)
    shuffled = False
    drops: ClassVar[Mapping[str, str]] = {DROP: "screened-out"}
    reasons: ClassVar[Mapping[str, str]] = _WORDS[name]["reasons"]

    def layout(self, task: TaskCandidate) -> Layout:
        return Layout((0, 1), (0, 1), (Option(KEEP, "Keep"),), (Option(DROP, "Drop"),))


class Match(ReviewQuestion):
    """One image and two texts, or one text and two images; the task's truth says which is right."""

    name = "match"
    title, instructions, examples = _words(name)
    parts = ("image-to-text", "text-to-image")
    settled = False

    def part(self, task: TaskCandidate) -> str:
        return self.parts[len(task.images) - 1]

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the numbers of the two."""
        if len(task.images) == 1:
            return Layout((), (0,), tuple(Option(str(n), "Description", text=n) for n in range(2)))
        return Layout((0,), (), tuple(Option(str(n), "Image", image=n) for n in range(2)))


SHIPPED = {"bivlc": VOCABULARIES / "bivlc_surveys.yaml"}
Title = Annotated[str, Field(min_length=1, max_length=200)]


class BlockText(Settings):
    """What the page says of a block of tasks.

    tasks: which (`ReviewQuestion.part`); all of the question when empty. labels: of options that show neither image
    nor text, by the value of their answer; others keep their own.
    """

    tasks: str = ""
    title: Title
    instructions: Annotated[tuple[Line, ...], Field(min_length=1, max_length=20)]
    examples: Annotated[tuple[Example, ...], Field(max_length=20)] = ()
    labels: Mapping[str, Annotated[str, Field(min_length=1, max_length=100)]] = {}


class QuestionSurvey(Settings):
    """How one question is asked.

    instances: of an annotator, who answers all tasks about each of them; 0: tasks are given one by one, of any
    instance, until none is left. blocks: of tasks; an annotator ends one before the next.
    """

    instances: int = Field(default=0, ge=0, le=10_000)
    blocks: Annotated[tuple[BlockText, ...], Field(min_length=1)]

    def block_of(self, task: TaskCandidate) -> int:
        """Number of the block that a task is in."""
        part = question_of(task.question).part(task)
        return next(number for number, block in enumerate(self.blocks) if block.tasks in ("", part))


class Protocol(Settings):
    """A file of words: ``title`` as cards name it, and how questions are asked, by name."""

    title: Title
    questions: Annotated[Mapping[str, QuestionSurvey], Field(min_length=1)]

    @field_validator("questions")
    @classmethod
    def _known(cls, questions: Mapping[str, QuestionSurvey]) -> Mapping[str, QuestionSurvey]:
        for name, survey in questions.items():
            parts = QUESTIONS.find(QUESTIONS.known(name)).parts
            given = [block.tasks for block in survey.blocks]
            if given != [""] and sorted(given) != sorted(parts):
                needed = f"one block each for {', '.join(parts)}, or " if parts else ""
                raise ValueError(f"{name}: has blocks for {given}; write {needed}one block without tasks")
        return questions

    def of(self, task: TaskCandidate) -> QuestionSurvey:
        """How a task is asked; raises `WrongUse` when the protocol does not say, or says so of answers that are not."""
        question = task.question
        if question not in self.questions:
            raise WrongUse(f"protocol {self.title!r} does not say how {question} is asked; add it under questions")
        survey, values = self.questions[question], {one.value for one in question_of(question).layout(task).extra}
        if unknown := [value for block in survey.blocks for value in block.labels if value not in values]:
            has = f"it has {', '.join(sorted(values))}" if values else "it has none"
            raise WrongUse(f"labels of {question}: {unknown[0]!r} is not an answer without image or text; {has}")
        return survey


def load_protocol(name: str) -> Protocol:
    """A protocol by its name or the path of its file; raises `WrongUse` when there is none or it is not one."""
    if is_model_folder(name):
        return read_words(Path(name).expanduser(), Protocol)
    if name not in SHIPPED:
        raise WrongUse(f"there is no protocol {name!r}; name {', '.join(SHIPPED)}, or a YAML file as ./FILE.yaml")
    return read_words(SHIPPED[name], Protocol)


@cache
def default_survey(question: type[ReviewQuestion]) -> QuestionSurvey:
    """How a question is asked without a protocol. Text from other packages is not validated."""
    words: dict[str, Any] = {name: getattr(question, name) for name in ("title", "instructions", "examples")}
    return QuestionSurvey.model_construct(blocks=(BlockText.model_construct(**words),))
