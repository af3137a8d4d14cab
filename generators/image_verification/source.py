"""The settings of image verification, and what its card says (Cho et al. 2023; BiVLC, section 3.2)."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.generators.papers import BIVLC
from twinset.generators.scene_graphs.relations import LIBRARIES
from twinset.manifests.source import Need, Place, Reference, StageName
from twinset.models.engines import EngineSource
from twinset.models.spacy_pipelines import EMBEDDED, check_installed
from twinset.models.visual_questions.settings import QuestionAnswerer

DSG = Reference(
    "Davidsonian Scene Graph",
    "https://arxiv.org/abs/2310.18235",
    """@inproceedings{cho2024davidsonian,
  title     = {Davidsonian Scene Graph: Improving Reliability in Fine-grained Evaluation for Text-to-Image Generation},
  author    = {Cho, Jaemin and Hu, Yushi and Baldridge, Jason and Garg, Roopal and Anderson, Peter and Krishna, Ranjay
               and Bansal, Mohit and Pont-Tuset, Jordi and Wang, Su},
  booktitle = {ICLR},
  year      = {2024}
}""",
)


class ImageVerification(EngineSource):
    """Yes/no questions of a caption, asked of the image that was generated from it.

    images: the stage of text pairs, or the folder of a finished one. engine: what answers. threshold: images with a
    lower score, 0 to 1, are rejected; none are when absent. pipeline: spaCy's, by name or folder, which parses the
    captions. licence: of the captions.
    """

    kind: Literal["image-verification"]
    images: StageName
    engine: QuestionAnswerer
    threshold: float | None = Field(default=None, gt=0, le=1)
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)
    licence: str = "the captions stay under the terms of their source"

    generator = "twinset.generators.image_verification.generator:VerificationGenerator"
    makes = "table"
    reference = DSG
    paper = BIVLC
    group = "caption"
    verb = "asked of"
    reasons: ClassVar[Mapping[str, str]] = {
        "caption-too-long": "captions of more characters than are parsed",
        "no-question": "the caption names nothing that could be asked for",
        "not-as-captioned": "the score is below the threshold: the image does not show what its caption says",
    }

    def notes(self) -> str:
        """What no count tells."""
        return _NOTES

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `EngineSource.check_inputs`; also what parses the captions."""
        super().check_inputs(key, needs)
        if "models" in needs:
            check_installed(key, self.pipeline, *LIBRARIES, "inflect")


_NOTES = """\
* A model answered, no person. What it takes for right is kept: with a threshold, images that models of its kind get
  wrong are missed.
* A question asks for what a parser read in the caption. A caption that was parsed wrongly is asked for wrongly.
"""
