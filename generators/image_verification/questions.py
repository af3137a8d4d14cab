"""Yes/no questions about an image: who writes those of a caption, and what an engine answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import SerializeAsAny

from twinset.contracts.doors import Registry
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.parts import Part
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need
from twinset.models.engines import EngineSource
from twinset.models.language_models.answers import REFUSED, YES_NO, ShownImage, question
from twinset.models.language_models.settings import SeeingModel

YES = 0.5  # the least probability of an answer that counts as yes
LONGEST = 2000  # characters of a caption that is asked about
Inquiry = tuple[ShownImage, Sequence[str]]  # questions about an image with the answer yes or no, each once
Answers = Mapping[str, float]  # probability of yes by question


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """A question. kind: a word for what it asks about."""

    kind: str
    question: str

    def as_json(self) -> dict[str, Any]:
        """As the column ``questions`` has it."""
        return asdict(self)


class QuestionWriter(Part):
    """Writes the questions of captions.

    Subclasses set ``kind`` as a `Literal`, and `reasons`: ``wrong-KIND`` for each kind of question. title: what is
    asked, as a card says it.
    """

    title: ClassVar[str]

    @abstractmethod
    def questions(self, captions: Sequence[str]) -> Sequence[Sequence[ImageQuestion]]:
        """The questions of each caption; none where nothing can be asked."""

    @abstractmethod
    def score(self, questions: Sequence[Any], answers: Answers) -> float:
        """The score of an image, 0 to 1, by the answers to the questions of a caption, of which there are some."""

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Source.check_inputs`; ``key`` is such as ``stages.verified.source.questions``."""


class WholeCaption(QuestionWriter):
    """One question: whether the image shows the caption, as VQAScore asks (Lin et al. 2024)."""

    kind: Literal["caption"] = "caption"

    reference = Reference("VQAScore", "https://arxiv.org/abs/2404.01291", bibtex("lin2024vqascore"))
    title = "whether it shows the whole of each caption"
    reasons: ClassVar[Mapping[str, str]] = {"wrong-caption": "the image does not show its caption"}

    def questions(self, captions: Sequence[str]) -> Sequence[Sequence[ImageQuestion]]:
        """One, unless the caption is empty."""
        return [
            [ImageQuestion("caption", f'Does this figure show "{caption}"?')] if caption.strip() else []
            for caption in captions
        ]

    def score(self, questions: Sequence[Any], answers: Answers) -> float:
        """The probability of yes (Lin et al. 2024)."""
        return float(answers[questions[0].question])


KINDS = {"caption": f"{__name__}:WholeCaption"}
QUESTION_WRITERS = Registry[type[QuestionWriter]](
    "question writer", QuestionWriter, __name__, "twinset.question_writers"
)


class QuestionSource(EngineSource):
    """Captions, who asks about them, and the engine that answers."""

    engine: SeeingModel
    questions: Annotated[SerializeAsAny[QuestionWriter], QUESTION_WRITERS] = WholeCaption()

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

    def questions_about(self, captions: Iterable[str]) -> dict[str, Sequence[Any]]:
        """The questions of each caption."""
        texts = list(dict.fromkeys(captions))
        return dict(zip(texts, self.questions.questions(texts), strict=True))

    def answers(self, inquiries: Mapping[str, Sequence[Inquiry]]) -> dict[str, list[Answers] | Rejected]:
        """By key, the answers to each inquiry, or why there are none; raises `BuildFailed` for a broken engine."""
        asked = [(image, text) for of_key in inquiries.values() for image, texts in of_key for text in texts]
        follows = f" {self.engine.instruction}".rstrip()
        given = self.worker.ask([question(text + follows, (image,), YES_NO) for image, text in asked])
        if len(given) != len(asked) or not all(0 <= (answer.probability or 0) <= 1 for answer in given):
            what = f"no probability, 0 to 1, for each of {len(asked):,} questions"
            raise BuildFailed(f"{self.engine.kind}: gives {what}; correct its package")
        remaining, answers = iter(given), dict[str, list[Answers] | Rejected]()
        for key, of_key in inquiries.items():
            by_image = [{text: next(remaining) for text in texts} for _, texts in of_key]
            answers[key] = [{text: answer.probability or 0.0 for text, answer in image.items()} for image in by_image]
            for text, answer in (pair for image in reversed(by_image) for pair in reversed(image.items())):
                if answer.probability is None:
                    reason = "refused" if answer.finish == REFUSED else "no-answer"
                    answers[key] = Rejected(key, reason, f"{answer.text[:200] or answer.finish}: {text[:200]}")
        return answers
