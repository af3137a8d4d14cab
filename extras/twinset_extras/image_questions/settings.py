"""Settings of the rules that read questions off a parsed caption."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.image_verification.questions import QuestionSettings
from twinset.generators.scene_graphs.relations import LIBRARIES
from twinset.models.spacy_pipelines import EMBEDDED, check_installed

DSG = Reference("Davidsonian Scene Graph", "https://arxiv.org/abs/2310.18235", bibtex("cho2024davidsonian"))


class Facts(QuestionSettings):
    """A question for each entity, attribute, count and relation, in the form of the Davidsonian Scene Graph.

    pipeline: spaCy's, by name or folder, which parses the captions.
    """

    kind: Literal["facts"] = "facts"
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)

    worker = "twinset_extras.image_questions.asking:FactWriter"
    reference = DSG
    title = "what a parser reads in each caption, right or wrong"
    libraries = (*LIBRARIES, "inflect")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "facts")

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            check_installed(key, self.pipeline, *self.libraries)
