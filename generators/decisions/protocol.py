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
from twinset.generators.decisions.question import (
    QUESTIONS,
    Example,
    Line,
    ReviewQuestion,
    TaskCandidate,
    question_of,
)

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

    def unit(self, task: TaskCandidate) -> str:
        """What one annotator answers whole: a task, or all tasks about an instance; its key."""
        return task.subject if self.instances else task.key

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
    text = BlockText.model_construct(
        title=question.title, instructions=question.instructions, examples=question.examples
    )
    return QuestionSurvey.model_construct(blocks=(text,))


def of_whole_instances(answered: Iterable[tuple[str, Sequence[Answer]]]) -> list[list[Answer]]:
    """The answers to each task by those who answered all tasks about its instance; and those that settled a tie.

    Who leaves in the middle of an instance is not counted for it: somebody else answers it whole.

    Args:
        answered: instance (key of the task's subject) and answers of each task.
    """
    tasks = [*answered]
    whole: dict[str, set[str]] = {}
    for subject, answers in tasks:
        given = {answer.annotator for answer in answers}
        whole[subject] = whole.get(subject, given) & given
    return [[a for a in answers if a.adjudicated or a.annotator in whole[subject]] for subject, answers in tasks]
