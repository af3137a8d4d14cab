"""Settings of the rules that read questions off a parsed caption."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place
from twinset.generators.image_verification.questions import Answers, QuestionWriter
from twinset.generators.reasons import reasons_beside
from twinset.generators.scene_graphs.relations import LIBRARIES
from twinset.models.spacy_pipelines import EMBEDDED, Pipeline, check_installed, find_pipeline
from twinset_extras.image_questions.questions import FactQuestion, counted

DSG = Reference("Davidsonian Scene Graph", "https://arxiv.org/abs/2310.18235", bibtex("cho2024davidsonian"))


class Facts(QuestionWriter):
    """A question for each entity, attribute, count and relation, in the form of the Davidsonian Scene Graph.

    pipeline: spaCy's, by name or folder, which parses the captions.
    """

    kind: Literal["facts"] = "facts"
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)

    reference = DSG
    title = "what a parser reads in each caption, right or wrong"
    libraries = (*LIBRARIES, "inflect")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "facts")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_installed(key, self.pipeline, *self.libraries)

    @cached_property
    def _parsing(self) -> Pipeline:
        return find_pipeline(self.pipeline)

    def questions(self, captions: Sequence[str]) -> Sequence[Sequence[FactQuestion]]:
        """Those of each caption, all parsed together."""
        from twinset.generators.scene_graphs.relations import parser_of
        from twinset_extras.image_questions.asking import prepared, questions_of

        parser = parser_of(self._parsing)
        with parser.nlp.memory_zone():
            return [*map(questions_of, parser.docs(map(prepared, captions)))]

    def score(self, questions: Sequence[FactQuestion], answers: Answers) -> float:
        """The share of questions that count."""
        return sum(counted(questions, answers)) / len(questions)

    def runs_on(self) -> str:
        """The parser is a network on the CPU."""
        return "cpu"

    def weights(self) -> Mapping[str, str]:
        """Digests of the parser and of the word lists."""
        from twinset_extras.image_questions.vocabulary import vocabulary

        return {"pipeline": self._parsing.digest, "vocabulary": vocabulary().digest}
