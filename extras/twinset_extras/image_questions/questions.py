"""Questions about facts, which of them count for an image, and which tell two captions apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinset.generators.image_verification.questions import YES, Answers, ImageQuestion


@dataclass(frozen=True, slots=True)
class FactQuestion(ImageQuestion):
    """A question about a fact.

    id: from 1. parents: ids of the questions that must be answered yes for this one to count. words: the tuple that it
    asks for, such as ``(man, bench, sitting on)``. meaning: equal for questions of two captions that ask for the same,
    though one says "dogs" and one "a dog".
    """

    id: int
    parents: tuple[int, ...]
    words: tuple[str, ...]
    meaning: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As the column ``questions`` has it."""
        words = {"parents": list(self.parents), "kind": self.kind, "tuple": list(self.words)}
        return {"id": self.id, **words, "question": self.question}


def counted(questions: Sequence[FactQuestion], answers: Answers) -> list[bool]:
    """Which questions count for an image: those answered yes whose parents are all answered yes (Cho et al. 2023).

    As in the released code, the answers to the parents decide, not whether these count themselves. Parents that no
    question has are ignored.
    """
    yes = {question.id: answers[question.question] >= YES for question in questions}
    return [yes[q.id] and all(yes.get(parent, True) for parent in q.parents) for q in questions]


def distinguishing(own: Sequence[FactQuestion], other_questions: Sequence[FactQuestion]) -> set[tuple[str, ...]]:
    """Meanings of the questions of one caption that the other one does not ask."""
    return {question.meaning for question in own} - {question.meaning for question in other_questions}
