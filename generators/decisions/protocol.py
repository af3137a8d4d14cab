"""How people are asked where a recipe says so: in which words, in which blocks, and how many instances each annotator.

Without a protocol a question has its own words, and tasks are asked in any order of anybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import VOCABULARIES, is_model_folder
from twinset.contracts.recipe.strict_yaml import read_words
from twinset.contracts.source import Settings
from twinset.generators.decisions.answers import Answer
from twinset.generators.decisions.question import ReviewQuestion, TaskCandidate
from twinset.generators.decisions.questions import QUESTIONS, question_of

SHIPPED = {"bivlc": VOCABULARIES / "bivlc_surveys.yaml"}

Line = Annotated[str, Field(min_length=1, max_length=2000)]


class WorkedExample(Settings):
    """As `generators.decisions.question.Example`."""

    text: Line
    answer: Line
    why: Line


class Words(Settings):
    """What the page says of a block of tasks.

    tasks: which (`ReviewQuestion.part`); all of the question when empty. labels: of options that show neither image
    nor text, by the value of their answer; others keep their own.
    """

    tasks: str = ""
    title: Annotated[str, Field(min_length=1, max_length=200)]
    instructions: Annotated[tuple[Line, ...], Field(min_length=1, max_length=20)]
    examples: Annotated[tuple[WorkedExample, ...], Field(max_length=20)] = ()
    labels: Mapping[str, Annotated[str, Field(min_length=1, max_length=100)]] = {}


class Asking(Settings):
    """How one question is asked.

    instances: of an annotator, who answers all tasks about each of them; 0: tasks are given one by one, of any
    instance, until none is left. blocks: of tasks; an annotator ends one before the next.
    """

    instances: int = Field(default=0, ge=0, le=10_000)
    blocks: Annotated[tuple[Words, ...], Field(min_length=1)]

    def unit(self, task: TaskCandidate) -> str:
        """What one annotator answers whole: a task, or all tasks about an instance; its key."""
        return task.subject if self.instances else task.key

    def block_of(self, task: TaskCandidate) -> int:
        """Number of the block that a task is in."""
        part = question_of(task.question).part(task)
        return next(at for at, one in enumerate(self.blocks) if one.tasks in ("", part))


class Protocol(Settings):
    """A file of words: ``title`` as cards name it, and how questions are asked, by name."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    questions: Annotated[Mapping[str, Asking], Field(min_length=1)]

    @field_validator("questions")
    @classmethod
    def _known(cls, questions: Mapping[str, Asking]) -> Mapping[str, Asking]:
        for name, asking in questions.items():
            parts = QUESTIONS.find(QUESTIONS.known(name)).parts
            given = [one.tasks for one in asking.blocks]
            if given != [""] and sorted(given) != sorted(parts):
                needed = f"one block each for {', '.join(parts)}, or " if parts else ""
                raise ValueError(f"{name}: has blocks for {given}; write {needed}one block without tasks")
        return questions

    def of(self, question: str) -> Asking:
        """How a question is asked; raises `WrongUse` when the protocol does not say."""
        if question not in self.questions:
            raise WrongUse(f"protocol {self.title!r} does not say how {question} is asked; add it under questions")
        return self.questions[question]


def read_protocol(named: str) -> Protocol:
    """A protocol by its name or the path of its file; raises `WrongUse` when there is none or it is not one."""
    if is_model_folder(named):
        return read_words(Path(named).expanduser(), Protocol)
    if named not in SHIPPED:
        raise WrongUse(f"there is no protocol {named!r}; name {', '.join(SHIPPED)}, or a YAML file as ./FILE.yaml")
    return read_words(SHIPPED[named], Protocol)


@cache
def own_words(question: type[ReviewQuestion]) -> Asking:
    """How a question is asked without a protocol."""
    examples = tuple(WorkedExample(text=one.text, answer=one.answer, why=one.why) for one in question.examples)
    # Not validated: what another package's question says is its own affair.
    words = Words.model_construct(title=question.title, instructions=question.instructions, examples=examples)
    return Asking.model_construct(blocks=(words,))


def check_labels(asking: Asking, task: TaskCandidate) -> None:
    """Raise `WrongUse` where words are about an answer that the question does not have."""
    values = {one.value for one in question_of(task.question).layout(task).extra}
    for one in asking.blocks:
        if unknown := [value for value in one.labels if value not in values]:
            has = f"it has {', '.join(sorted(values))}" if values else "it has none"
            raise WrongUse(f"labels of {task.question}: {unknown[0]!r} is not an answer without image or text; {has}")


def of_whole_instances(asked: Iterable[tuple[str, Sequence[Answer]]]) -> list[list[Answer]]:
    """The answers to each task by those who answered all tasks about its instance; and those that settled a tie.

    Who leaves in the middle of an instance is not counted for it: somebody else answers it whole.

    Args:
        asked: instance (key of the task's subject) and answers of each task.
    """
    tasks = [*asked]
    whole: dict[str, set[str]] = {}
    for subject, answers in tasks:
        given = {one.annotator for one in answers}
        whole[subject] = whole[subject] & given if subject in whole else given
    return [[one for one in some if one.adjudicated or one.annotator in whole[subject]] for subject, some in tasks]
