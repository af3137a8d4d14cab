"""Yes/no questions about an image: who writes those of a caption, and what an engine answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Protocol, cast

from pydantic import SerializeAsAny

from twinset.contracts.doors import OfKind, Registry
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need
from twinset.models.engines import EngineSettings, EngineSource
from twinset.models.visual_questions.settings import Inquiry, Unanswered, answers_of

YES = 0.5  # the least probability of an answer that counts as yes
LONGEST = 2000  # characters of a caption that is asked about
CAPTION = "caption"  # kind of the one question about all that a caption says


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


class QuestionWriter(Protocol):
    """Writes questions. weights: digests of what decides them. device: of its network, None without one."""

    def questions(self, captions: Sequence[str]) -> Sequence[list[ImageQuestion]]:
        """The questions of each caption, parents first; none where nothing can be asked."""

    def device(self) -> str | None: ...

    def weights(self) -> Mapping[str, str]: ...


class QuestionSettings(EngineSettings):
    """Settings of a `QuestionWriter`, light to import.

    Subclasses set ``kind`` as a `Literal`, `worker`, and `reasons`: ``wrong-KIND`` for each kind of question. title:
    what is asked, as a card says it. libraries: as of a generator.
    """

    title: ClassVar[str]
    libraries: ClassVar[tuple[str, ...]] = ()


class WholeCaption(QuestionSettings):
    """One question: whether the image shows the caption, as VQAScore asks (Lin et al. 2024)."""

    kind: Literal["caption"] = "caption"

    worker = f"{__name__}:WholeCaptionWriter"
    reference = Reference("VQAScore", "https://arxiv.org/abs/2404.01291", bibtex("lin2024vqascore"))
    title = "whether it shows the whole of each caption"
    reasons: ClassVar[Mapping[str, str]] = {
        "wrong-caption": "the image does not show its caption, or one of a pair shows the other's too"
    }


class WholeCaptionWriter:
    """As `QuestionWriter`."""

    def __init__(self, settings: WholeCaption) -> None:
        pass

    def questions(self, captions: Sequence[str]) -> list[list[ImageQuestion]]:
        """One, unless the caption is empty."""
        return [
            [ImageQuestion(1, (), CAPTION, (caption,), f'Does this figure show "{caption}"?', (CAPTION, caption))]
            if caption.strip()
            else []
            for caption in captions
        ]

    def device(self) -> None:
        """None."""

    def weights(self) -> Mapping[str, str]:
        """None."""
        return {}


KINDS = {"caption": f"{__name__}:WholeCaption"}
QUESTION_WRITERS = Registry[QuestionSettings]("question writer", QuestionSettings, __name__, "twinset.question_writers")


class QuestionSource(EngineSource):
    """Captions, who asks about them, and the engine that answers.

    questions: who writes them.
    """

    questions: Annotated[SerializeAsAny[QuestionSettings], OfKind(QUESTION_WRITERS)] = WholeCaption()

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        self.questions.check_inputs(f"{key}.questions", needs)

    isolation = "process"  # torch's number of threads is its process's

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]  # each writer has its own
        return self.questions.libraries

    def runs_on(self) -> str | None:
        """The engine's; that of the writer, which is on the CPU, where the engine has none."""
        return super().runs_on() or self._writer.device()

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), **self._writer.weights()}

    def questions_about(self, captions: Iterable[str]) -> dict[str, list[ImageQuestion]]:
        """The questions of each caption."""
        texts = list(dict.fromkeys(captions))
        return dict(zip(texts, self._writer.questions(texts), strict=True))

    def answers(self, inquiries: Mapping[str, Sequence[Inquiry]]) -> dict[str, list[dict[str, float]] | Rejected]:
        """By key, the probability of yes by question for each inquiry, or why there is none."""
        every = [one for some in inquiries.values() for one in some]
        given = iter(answers_of(self.worker, self.engine.kind, every))
        found: dict[str, list[dict[str, float]] | Rejected] = {}
        for key, some in inquiries.items():
            answers = [next(given) for _ in some]
            if refused := next((one for one in answers if isinstance(one, Unanswered)), None):
                found[key] = Rejected(key, refused.reason, refused.detail)
            else:
                said = zip(some, cast(list[list[float]], answers), strict=True)
                found[key] = [dict(zip(one.questions, yes, strict=True)) for one, yes in said]
        return found

    @cached_property
    def _writer(self) -> QuestionWriter:
        return cast(QuestionWriter, self.questions.open())


def distinguishing(one: Sequence[ImageQuestion], other: Sequence[ImageQuestion]) -> set[tuple[str, ...]]:
    """Meanings of the questions of one caption that the other one does not ask."""
    return {each.meaning for each in one} - {each.meaning for each in other}
