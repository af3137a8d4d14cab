"""Yes/no questions about an image: who writes those of a caption, what an engine answers, and the score of an image."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import SerializeAsAny

from twinset.contracts.doors import OfKind, Registry
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.parts import Part
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need
from twinset.models.engines import EngineSource
from twinset.models.visual_questions.settings import Inquiry, Unanswered, answers_of

YES = 0.5  # the least probability of an answer that counts as yes
LONGEST = 2000  # characters of a caption that is asked about
CAPTION = "caption"  # kind of the one question about all that a caption says
Answers = Mapping[str, float]  # probability of yes by question


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """A question.

    id: from 1. parents: ids of the questions that must be answered yes for this one to count. kind: a word for what it
    asks about. words: the tuple that it asks for, such as ``(man, bench, sitting on)``. meaning: equal for questions of
    two captions that ask for the same, though one says "dogs" and one "a dog".
    """

    id: int
    parents: tuple[int, ...]
    kind: str
    words: tuple[str, ...]
    question: str
    meaning: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As the column ``questions`` has it."""
        words = {"parents": list(self.parents), "kind": self.kind, "tuple": list(self.words)}
        return {"id": self.id, **words, "question": self.question}


class QuestionWriter(Part):
    """Writes the questions of captions.

    Subclasses set ``kind`` as a `Literal`, and `reasons`: ``wrong-KIND`` for each kind of question. title: what is
    asked, as a card says it.
    """

    title: ClassVar[str]

    def questions(self, captions: Sequence[str]) -> Sequence[list[ImageQuestion]]:
        """The questions of each caption, parents first; none where nothing can be asked."""
        raise NotImplementedError(f"{type(self).__name__} has no method questions")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Source.check_inputs`; ``key`` is such as ``stages.verified.source.questions``."""


class WholeCaption(QuestionWriter):
    """One question: whether the image shows the caption, as VQAScore asks (Lin et al. 2024)."""

    kind: Literal["caption"] = "caption"

    reference = Reference("VQAScore", "https://arxiv.org/abs/2404.01291", bibtex("lin2024vqascore"))
    title = "whether it shows the whole of each caption"
    reasons: ClassVar[Mapping[str, str]] = {
        "wrong-caption": "the image does not show its caption, or one of a pair shows the other's too"
    }

    def questions(self, captions: Sequence[str]) -> Sequence[list[ImageQuestion]]:
        """One, unless the caption is empty."""
        return [
            [ImageQuestion(1, (), CAPTION, (caption,), f'Does this figure show "{caption}"?', (CAPTION, caption))]
            if caption.strip()
            else []
            for caption in captions
        ]


KINDS = {"caption": f"{__name__}:WholeCaption"}
QUESTION_WRITERS = Registry[QuestionWriter]("question writer", QuestionWriter, __name__, "twinset.question_writers")


class QuestionSource(EngineSource):
    """Captions, who asks about them, and the engine that answers.

    questions: who writes them.
    """

    questions: Annotated[SerializeAsAny[QuestionWriter], OfKind(QUESTION_WRITERS)] = WholeCaption()

    isolation = "process"  # torch's number of threads is its process's

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]  # each writer has its own
        return self.questions.libraries

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        self.questions.check_inputs(f"{key}.questions", needs)

    def runs_on(self) -> str | None:
        """The engine's; that of the writer, which is on the CPU, where the engine has none."""
        return super().runs_on() or self.questions.runs_on()

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), **self.questions.weights()}

    def questions_about(self, captions: Iterable[str]) -> dict[str, list[ImageQuestion]]:
        """The questions of each caption."""
        texts = list(dict.fromkeys(captions))
        return dict(zip(texts, self.questions.questions(texts), strict=True))

    def answers(self, inquiries: Mapping[str, Sequence[Inquiry]]) -> dict[str, list[Answers] | Rejected]:
        """By key, the answers to each inquiry, or why there are none."""
        every = [inquiry for asked in inquiries.values() for inquiry in asked]
        given = iter(answers_of(self.worker, self.engine.kind, every))
        answers: dict[str, list[Answers] | Rejected] = {}
        for key, asked in inquiries.items():
            own = [next(given) for _ in asked]
            if refused := next((each for each in own if isinstance(each, Unanswered)), None):
                answers[key] = Rejected(key, refused.reason, refused.detail)
            else:
                yes = zip(asked, cast(list[list[float]], own), strict=True)
                answers[key] = [dict(zip(inquiry.questions, values, strict=True)) for inquiry, values in yes]
        return answers


def distinguishing(own: Sequence[ImageQuestion], other: Sequence[ImageQuestion]) -> set[tuple[str, ...]]:
    """Meanings of the questions of one caption that the other one does not ask."""
    return {question.meaning for question in own} - {question.meaning for question in other}


def counted(questions: Sequence[ImageQuestion], answers: Answers) -> list[bool]:
    """Which questions count for an image: those answered yes whose parents are all answered yes (Cho et al. 2023).

    As in the released code, the answers to the parents decide, not whether these count themselves. Parents that no
    question has are ignored.
    """
    yes = {question.id: answers[question.question] >= YES for question in questions}
    return [yes[q.id] and all(yes.get(parent, True) for parent in q.parents) for q in questions]


def score_of(questions: Sequence[ImageQuestion], answers: Answers) -> float:
    """The score of an image: the share of questions that count, 1 without any.

    Of a single question about the whole caption it is the probability of yes (Lin et al. 2024).
    """
    if [question.kind for question in questions] == [CAPTION]:
        return float(answers[questions[0].question])
    counts = counted(questions, answers)
    return sum(counts) / len(counts) if counts else 1.0
