"""The settings of EQ-SD, and what its card says (EqBen, section B.5 and Figure 15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.contracts.errors import naming
from twinset.contracts.licences.terms import DerivingTerms
from twinset.contracts.locations import is_model_folder
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.edited_pairs.vocabulary import FIGURE_15, load_captions, vocabulary_file
from twinset.generators.papers import EQBEN
from twinset.models.diffusion.settings import DiffusionModel
from twinset.models.files import ModelFolder, brought_model
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import Media, MediaFolder

EVERYWHERE = "region-everywhere"  # a flag


class DrawnPairs(DerivingTerms, DiffusionModel, Source):
    """Settings of pairs that prompt-to-prompt draws: the second image of a pair under the attention of the first.

    model, resolution, steps, micro_batch: as `DiffusionModel`; device, threads: as `OnDevice`.
    guidance: scale of classifier-free guidance. scheduler: the sampler.
    cross_replace_steps, self_replace_steps: share of the steps in which the edited image takes cross- and
    self-attention of the other one (`generators.prompt_to_prompt.alignment.Edit`). blend: whether what lies outside of
    the edited object is taken from the other image (local blend), of pairs whose captions name one.
    precision: of the network; ``auto`` is float16 on a GPU and float32 on the CPU.
    licence: of what the model draws, copied into every sample and the card; must be given for a model not known
    here.
    """

    guidance: float = Field(default=7.5, ge=0, le=50)
    scheduler: Literal["ddim", "dpm-solver++"] = "ddim"
    cross_replace_steps: float = Field(default=0.8, ge=0, le=1)
    self_replace_steps: float = Field(default=0.4, ge=0, le=1)
    blend: bool = False
    precision: Literal["auto", "float32", "float16"] = "auto"
    licence: str

    reference = Reference(
        "prompt-to-prompt", "https://arxiv.org/abs/2208.01626", bibtex("hertz2023prompt", "rombach2022high")
    )
    group = "drawing"
    verb = "drawn with"
    synthetic = True
    card_template = Path(__file__).with_name("card.md.j2")
    of_model: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "CompVis/stable-diffusion-v1-4": {
            "licence": "creativeml-openrail-m",
        },
    }
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "stable-diffusion")
    scored: ClassVar[Mapping[str, str]] = {
        "region": "share of the picture (0-1) that was edited: where the words of the edited object have the model's "
        "attention; 1 where all of the picture was edited, on purpose or with the flag `region-everywhere`",
        "similarity_inside": "likeness of both images there: 1 less the mean difference of colours (0-1)",
        "similarity_outside": "likeness of both images elsewhere (0-1); -1 where all of the picture was edited",
    }
    unmeasured: ClassVar[Mapping[str, float]] = {"region": 1.0, "similarity_outside": -1.0}

    @property
    def brought_model(self) -> ModelFolder | None:
        """The model that a package brings, where it is one."""
        return brought_model(self.model)

    @property
    def whose_captions(self) -> str:
        """Where the captions come from, for the card."""
        raise NotImplementedError

    def media_files(self) -> Media | None:
        """The model's files; None where the hub's cache holds them, under names that are their digests."""
        if (brought := self.brought_model) is not None:
            return MediaFolder(brought.folder)
        return MediaFolder(Path(self.model)) if is_model_folder(self.model) else None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            self.check_model(key)


class StableDiffusion(DrawnPairs):
    """Pairs of captions of a vocabulary, drawn with a text-to-image model (EqBen's EQ-SD, section B.5).

    model, resolution, steps, micro_batch: as `DiffusionModel`; device, threads: as `OnDevice`. guidance, scheduler,
    cross_replace_steps, self_replace_steps, blend, precision, licence: as `DrawnPairs`.
    vocabulary: of captions: ``figure-15`` (the paper's), a name that a package brings with its model, or the path of a
    YAML file in the form of ``manifests/vocabularies/eq_sd.yaml``.
    """

    kind: Literal["stable-diffusion"]
    vocabulary: Annotated[str, Place("words", "annotations")] = Field(default=FIGURE_15, min_length=1)

    generator = "twinset.generators.edited_pairs.generator:EditedPairGenerator"
    paper = EQBEN
    unbounded = True

    @model_validator(mode="after")
    def _model_knows_the_words(self) -> StableDiffusion:
        # One that knows few words would draw something else for others.
        brought = self.brought_model
        known = brought.vocabularies if brought is not None else {}
        if known and self.vocabulary not in known and not is_model_folder(self.vocabulary):
            raise ValueError(
                f"{self.model} knows only the words of vocabulary {' or '.join(known)}; leave vocabulary out"
            )
        return self

    @property
    def whose_captions(self) -> str:
        if is_model_folder(self.vocabulary):
            return "those of a file"
        return "the paper's (Figure 15)" if self.vocabulary == FIGURE_15 else f"words of {self.vocabulary}"

    @property
    def planned_from(self) -> str:
        return f"vocabulary {self.vocabulary}"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "annotations" in needs:
            with naming(f"{key}.vocabulary"):
                load_captions(vocabulary_file(self.vocabulary))
        super().check_inputs(key, needs)
