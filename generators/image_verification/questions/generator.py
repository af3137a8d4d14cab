"""Sources whose engine answers questions about images that a parser reads off captions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, TypeVar, cast

from pydantic import Field

from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.source import Need, Place
from twinset.generators.image_verification.questions.asking import ImageQuestion, prepared, questions_of
from twinset.generators.image_verification.questions.vocabulary import vocabulary
from twinset.generators.scene_graphs.relations import LIBRARIES, parser_of
from twinset.models.engines import EngineGenerator, EngineSource
from twinset.models.spacy_pipelines import EMBEDDED, Pipeline, check_installed, find_pipeline
from twinset.models.visual_questions.settings import Inquiry, Unanswered, VisualQuestionAnswerer, answers_of

LONGEST = 2000  # characters of a caption: the longest of DSG's has 900
QUESTION_LIBRARIES = (*LIBRARIES, "inflect")


class QuestionSource(EngineSource):
    """Captions, the pipeline that parses them, and the engine that answers.

    pipeline: spaCy's, by name or folder, which parses the captions.
    """

    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "models" in needs:
            check_installed(key, self.pipeline, *QUESTION_LIBRARIES)


S = TypeVar("S", bound=QuestionSource)


class QuestionGenerator(EngineGenerator[S]):
    """Reads questions off captions, and has them answered."""

    engine: VisualQuestionAnswerer
    isolation = "process"  # spaCy holds the interpreter's lock, torch's number of threads is its process's
    libraries: ClassVar[tuple[str, ...]] = QUESTION_LIBRARIES

    def device(self) -> str:
        """The engine's; the parser is a network on the CPU."""
        return super().device() or "cpu"

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), "pipeline": self._pipeline.digest, "vocabulary": vocabulary().digest}

    def questions(self, captions: Iterable[str]) -> dict[str, list[ImageQuestion]]:
        """The questions of each caption."""
        texts = list(dict.fromkeys(captions))
        parser = parser_of(self._pipeline)
        with parser.nlp.memory_zone():
            return dict(zip(texts, map(questions_of, parser.docs(map(prepared, texts))), strict=True))

    def answers(self, inquiries: Mapping[str, Sequence[Inquiry]]) -> dict[str, list[dict[str, float]] | Rejected]:
        """By key, the probability of yes by question for each inquiry, or why there is none."""
        every = [one for some in inquiries.values() for one in some]
        given = iter(answers_of(self.engine, self.source.engine.kind, every))
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
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.source.pipeline)
