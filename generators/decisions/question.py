"""What a kind of question is: what a person sees, what can be answered, and how answers become a decision."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.task import TaskCandidate


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example of the instructions: a case, its right answer, and why."""

    text: str
    answer: str
    why: str


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
        return tuple(one.value for one in (*self.options, *self.extra))


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
    simulated: bool
    adjudicated: bool = False

    @property
    def kept(self) -> bool:
        """Whether the subject of the task stays."""
        return not self.reason


class ReviewQuestion(ABC):
    """A kind of question. The page knows nothing else of it; a new kind is a module and a line
    in `KINDS` of `generators.decisions.questions`, or comes by the door ``twinset.questions``.

    shuffled: whether the order of options is random. drops: values of options that drop the subject, and the reason
    of the rejection. reasons: codes and words of why it is dropped, offered after a dropping answer. settled: whether
    of values with equal votes on one side, kept or dropped, the first is taken; else that is a tie.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    instructions: ClassVar[tuple[str, ...]]
    examples: ClassVar[tuple[Example, ...]] = ()
    shuffled: ClassVar[bool] = True
    drops: ClassVar[Mapping[str, str]] = {}
    reasons: ClassVar[Mapping[str, str]] = {}
    settled: ClassVar[bool] = True

    @abstractmethod
    def layout(self, task: TaskCandidate) -> Layout:
        """What a person sees of a task, in canonical order."""

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
        kept = [one for one in answers if one.answer not in self.drops]
        if 2 * len(kept) == len(answers):
            return None
        side = kept if 2 * len(kept) > len(answers) else [one for one in answers if one.answer in self.drops]
        votes = Counter(one.answer for one in side)
        most = max(votes.values())
        winners = sorted((value for value, count in votes.items() if count == most), key=lambda one: (len(one), one))
        if len(winners) > 1 and not self.settled:
            return None
        choice = winners[0]
        return Decision(
            choice=choice,
            reason=self.drops.get(choice, ""),
            detail=self.why(choice, side),
            votes=len(answers),
            agreement=most / len(answers),
            annotators=tuple(sorted(one.annotator for one in answers)),
            simulated=any(one.simulated for one in answers),
        )

    def why(self, choice: str, answers: Sequence[Answer]) -> str:
        """The reason given most often by those who chose a value, of equal ones the first by code; empty if none."""
        given = Counter(one.reason for one in answers if one.answer == choice and one.reason in self.reasons)
        return min(given, key=lambda code: (-given[code], code), default="")
