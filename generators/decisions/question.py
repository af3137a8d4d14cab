"""What people are asked: a planned task, what it shows, what can be answered, and how answers become a decision.

The kinds of questions: which image, which caption, whether a pair is good (BiVLC, 3.1 and 3.2; EqBen, B.2). A protocol
says in which words and blocks they are asked, and how many instances each annotator answers.
"""

import hashlib
import tomllib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, cast

from pydantic import Field, RootModel, TypeAdapter

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json
from twinset.contracts.doors import Registry
from twinset.contracts.source import Settings
from twinset.generators.decisions.answers import Answer
from twinset.shards.plan import plan_file, read_slice
from twinset.shards.records import read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store


@dataclass(frozen=True, slots=True)
class Decision:
    """What the answers to a task come to.

    choice: value of the option. reason: why the task's subject is dropped; empty where it is kept. detail: such as why
    a pair was screened out. annotators: who gave answers that count, sorted.
    """

    choice: str
    reason: str
    detail: str
    annotators: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCandidate(Candidate):
    """A planned task.

    question: its kind, a name of `QUESTIONS`. texts, images: what is shown; images are keys of an earlier stage, or
    names in a folder of photos. image_tars, image_sha256s: where each lies in its stage, and its file's digest; empty
    for a photo. subject: key of the negative caption or pair that is asked about; kind_name: its kind, such as
    ``replace_obj``. decision: the JSON of its `Decision`; empty until it is made.
    """

    question: str
    texts: tuple[str, ...]
    images: tuple[str, ...]
    image_tars: tuple[str, ...]
    image_sha256s: tuple[str, ...]
    subject: str
    kind_name: str = ""
    decision: str = ""

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


Text = Annotated[str, Field(min_length=1)]


class Example(Settings):
    """A worked example of the instructions: a case, its right answer, and why."""

    text: Text
    answer: Text
    why: Text


class BlockText(Settings):
    """What the page says of a block of tasks."""

    title: Text
    instructions: Annotated[tuple[Text, ...], Field(min_length=1)]
    examples: tuple[Example, ...] = ()


class QuestionSurvey(Settings):
    """How one question is asked.

    instances: of an annotator, who answers all tasks about each of them; 0: tasks are given one by one, of any
    instance, until none is left. blocks: one of all tasks, or one of the tasks with an image and then one of those
    with more.
    """

    instances: int = Field(default=0, ge=0)
    blocks: Annotated[tuple[BlockText, ...], Field(min_length=1, max_length=2)]

    def block_of(self, task: TaskCandidate) -> int:
        """Number of the block that a task is in."""
        return int(len(self.blocks) > 1 and len(task.images) > 1)


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
    """A kind of question. The page knows nothing else of it; a new kind comes by the door ``twinset.questions``.

    words: those of the page, where no protocol has others. shuffled: whether the order of options is random. ranked:
    whether an answer is the values of options in order, best first, with spaces between them; options that it lacks
    are equal, behind those. drops: values of options that drop the subject, and the reason of the rejection. reasons:
    codes and words of why it is dropped, offered after a dropping answer.
    """

    name: ClassVar[str]
    words: ClassVar[BlockText]
    shuffled: ClassVar[bool] = True
    ranked: ClassVar[bool] = False
    drops: ClassVar[Mapping[str, str]] = {}
    reasons: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def layout(self, task: TaskCandidate) -> Layout:
        """What a person sees of a task, in canonical order."""

    def takes(self, task: TaskCandidate, value: str) -> bool:
        """Whether a value is an answer to a task."""
        given, values = value.split(" ") if self.ranked else [value], {*self.layout(task).values}
        return {*given} <= values and len({*given}) == len(given)

    def compared(self, value: str) -> str:
        """The category that answers are counted and compared in: why the subject is dropped, empty where it is kept;
        the value where nothing is dropped. More than one image can be right (BiVLC, appendix I.3)."""
        return self.drops.get(value, "") if self.drops else value

    def decide(self, answers: Sequence[Answer]) -> Decision | None:
        """What answers come to: the category with most votes, and in it the value with most, of equal ones the first.

        Args:
            answers: of different annotators, at least one.

        Returns:
            None where categories tie.
        """
        votes = Counter(self.compared(answer.answer) for answer in answers)
        winners = [category for category, count in votes.items() if count == max(votes.values())]
        if len(winners) > 1:
            return None
        values = Counter(answer.answer for answer in answers if self.compared(answer.answer) == winners[0])
        return self.decided(min(values, key=lambda value: (-values[value], len(value), value)), answers)

    def decided(self, choice: str, answers: Sequence[Answer]) -> Decision:
        """The decision for a value, by all answers that count.

        Its detail is the reason given most often by those who chose it, of equal ones the first by code.
        """
        given = Counter(a.reason for a in answers if a.answer == choice and a.reason in self.reasons)
        detail = min(given, key=lambda code: (-given[code], code), default="")
        return Decision(choice, self.drops.get(choice, ""), detail, tuple(sorted(a.annotator for a in answers)))


KINDS = {
    "best-image": "twinset.generators.decisions.question:BestImage",
    "fits-caption": "twinset.generators.decisions.question:FitsCaption",
    "keep-pair": "twinset.generators.decisions.question:KeepPair",
    "match": "twinset.generators.decisions.question:Match",
}
QUESTIONS = Registry[type[ReviewQuestion]]("review question", ReviewQuestion, __name__, "twinset.questions")
_WORDS = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))


def question_of(name: str) -> ReviewQuestion:
    """The question of a name; raises `UnknownKind`."""
    return QUESTIONS.find(name)()


class BestImage(ReviewQuestion):
    """One text, the caption, and k images of it: which shows it best, or none (BiVLC, section 3.1, step 3)."""

    name = "best-image"
    words = BlockText(**_WORDS[name])
    drops: ClassVar[Mapping[str, str]] = {"none": "none-fits"}

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the images' numbers."""
        images = tuple(Option(str(number), "Image", image=number) for number in range(len(task.images)))
        return Layout((0,), (), images, (Option("none", "None"),))


class FitsCaption(ReviewQuestion):
    """One text, the original caption; image 0 is the photo, image 1 was generated from the negative caption.

    An instance is ambiguous unless the photo is chosen (BiVLC, section 3.1, step 4).
    """

    name = "fits-caption"
    words = BlockText(**_WORDS[name])
    drops: ClassVar[Mapping[str, str]] = {"generated": "ambiguous", "both": "ambiguous"}

    def layout(self, task: TaskCandidate) -> Layout:
        options = (Option("photo", "Image", image=0), Option("generated", "Image", image=1))
        return Layout((0,), (), options, (Option("both", "Both"),))


class KeepPair(ReviewQuestion):
    """Two texts and two images: caption 0 belongs to image 0, caption 1 to image 1."""

    name = "keep-pair"
    words = BlockText(**_WORDS[name])
    shuffled = False
    drops: ClassVar[Mapping[str, str]] = {"drop": "screened-out"}
    reasons: ClassVar[Mapping[str, str]] = _WORDS["reasons"]

    def layout(self, task: TaskCandidate) -> Layout:
        return Layout((0, 1), (0, 1), (Option("keep", "Keep"),), (Option("drop", "Drop"),))


class Match(ReviewQuestion):
    """One image and two texts, or one text and two images; the task's truth says which is right."""

    name = "match"
    words = BlockText(**_WORDS[name])

    def layout(self, task: TaskCandidate) -> Layout:
        """As `ReviewQuestion.layout`; the values are the numbers of the two."""
        if len(task.images) == 1:
            return Layout((), (0,), tuple(Option(str(n), "Description", text=n) for n in range(2)))
        return Layout((0,), (), tuple(Option(str(n), "Image", image=n) for n in range(2)))


class Protocol(RootModel[dict[str, QuestionSurvey]]):
    """A file of words: how questions are asked, by name."""
