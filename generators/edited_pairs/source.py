"""The settings of EQ-SD, and what its card says (EqBen, section B.5 and Figure 15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.generators.edited_pairs.vocabulary import FIGURE_15, load_captions, vocabulary_file
from twinset.generators.papers import EQBEN
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import is_model_folder
from twinset.manifests.references import bibtex
from twinset.manifests.source import Need, Place, Reference
from twinset.models.diffusion.settings import DiffusionModel
from twinset.models.files import brought_model
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import Media, MediaFolder

EVERYWHERE = "region-everywhere"  # a flag


class StableDiffusion(DiffusionModel, Source):
    """EQ-SD: pairs that prompt-to-prompt draws with a text-to-image model.

    model, resolution, steps, micro_batch: as `DiffusionModel`; device, threads: as `OnDevice`.
    vocabulary: of captions: ``figure-15`` (the paper's), a name that a package brings with its model, or the path of a
    YAML file in the form of ``manifests/vocabularies/eq_sd.yaml``.
    guidance: scale of classifier-free guidance. scheduler: the sampler.
    cross_replace_steps, self_replace_steps: share of the steps in which the edited image takes cross- and
    self-attention of the other one (`generators.prompt_to_prompt.alignment.Edit`). blend: whether what lies outside of
    the edited object is taken from the other image (local blend), in rows of the vocabulary that name one.
    precision: of the network; ``auto`` is float16 on a GPU and float32 on the CPU.
    licence: of what the model draws, copied into every sample and the card; must be given for a model not known
    here.
    """

    kind: Literal["stable-diffusion"]
    vocabulary: Annotated[str, Place("words", "annotations")] = Field(default=FIGURE_15, min_length=1)
    guidance: float = Field(default=7.5, ge=0, le=50)
    scheduler: Literal["ddim", "dpm-solver++"] = "ddim"
    cross_replace_steps: float = Field(default=0.8, ge=0, le=1)
    self_replace_steps: float = Field(default=0.4, ge=0, le=1)
    blend: bool = False
    precision: Literal["auto", "float32", "float16"] = "auto"
    licence: str

    generator = "twinset.generators.edited_pairs.generator:EditedPairGenerator"
    reference = Reference(
        "prompt-to-prompt", "https://arxiv.org/abs/2208.01626", bibtex("hertz2023prompt", "rombach2022high")
    )
    paper = EQBEN
    group = "drawing"
    verb = "drawn with"
    unbounded = True
    synthetic = True
    of_model: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "CompVis/stable-diffusion-v1-4": {
            "licence": "CreativeML OpenRAIL-M: no rights are claimed in what is drawn, restrictions of use go with it",
        },
    }
    reasons: ClassVar[Mapping[str, str]] = {
        "caption-unfit": "the model cannot read a caption: too many words, or two tokenizers at odds on it",
        "not-finite": "numbers of the network overflowed, and a picture has none",
        "identical": "not one pixel of the two pictures differs",
        "blank": "all pixels of a picture are equal",
        EVERYWHERE: "the words of the edited object have attention in the whole picture: nothing was kept from the "
        "other image by local blend, and there is no `similarity_outside`",
    }

    @model_validator(mode="after")
    def _model_knows_the_words(self) -> StableDiffusion:
        # One that knows few words would draw something else for others.
        brought = brought_model(self.model)
        known = brought.vocabularies if brought is not None else None
        if known is not None and not known:
            raise ValueError(f"no vocabulary here has captions of the kind that {self.model} draws; name another model")
        if known is not None and self.vocabulary not in known and not is_model_folder(self.vocabulary):
            raise ValueError(
                f"{self.model} knows only the words of vocabulary {' or '.join(known)}; leave vocabulary out"
            )
        return self

    def introduction(self) -> str:
        """As `SourceSettings.introduction`: what differs."""
        return "The captions differ in an object, a scene or an attribute, and one image is an edit of the other.\n"

    def how_made(self, reports: Mapping[str, Any]) -> str:
        captions = "the paper's (Figure 15)" if self.vocabulary == FIGURE_15 else f"those of {self.vocabulary}"
        if is_model_folder(self.vocabulary):
            captions = "those of a file"
        brought, blend = brought_model(self.model), ""
        if self.blend:
            blend = "\n   Where the captions name the thing that is edited, all outside of it is that of the first one."
        return _STEPS.format(
            captions=captions,
            model=brought.title if brought is not None else "a text-to-image model",
            steps=self.steps,
            scheduler=self.scheduler,
            cross=self.cross_replace_steps,
            self_=self.self_replace_steps,
            blend=blend,
        )

    def notes(self) -> str:
        """What no count tells of drawn pairs."""
        brought = brought_model(self.model)
        return (brought.notes if brought is not None else "") + _NOTES

    @property
    def planned_from(self) -> str:
        return f"vocabulary {self.vocabulary}"

    def media_files(self) -> Media | None:
        """The model's files; None where the hub's cache holds them, under names that are their digests."""
        if (brought := brought_model(self.model)) is not None:
            return MediaFolder(brought.folder)
        return MediaFolder(Path(self.model)) if is_model_folder(self.model) else None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`: the vocabulary, and the files of the model."""
        if "annotations" in needs:
            try:
                load_captions(vocabulary_file(self.vocabulary))
            except WrongUse as error:
                raise WrongUse(f"{key}.vocabulary: {error}") from error
        if "models" in needs:
            self.check_model(key)


_STEPS = """\
1. Captions are templates with words filled in, {captions}. Those of a pair differ in one slot.
2. Both pictures start from one noise, and {model} draws them in {steps} steps (`{scheduler}`).
3. One picture is drawn from its caption alone. The other one is an edit of it by prompt-to-prompt: it takes the first
   one's cross-attention for {cross:.0%} of the steps, and its self-attention for {self_:.0%}.{blend}
4. Only what is broken is rejected: one colour, no numbers, two equal pictures.
"""
_NOTES = """\
* Nothing has checked that the pictures show what their captions say: only what is plainly broken is rejected
  (of one colour, not a number, two equal pictures). EqBen's own EQ-SD was screened by people, who kept 1,513 pairs.
* No limit on a text-image similarity was used: it would favour what one model of the kind that is tested takes for
  right. The filter `directional-similarity` measures one and rejects nothing.
* `scores` in each sample's JSON are for people who screen: `region` is the share of the picture that has the
  model's attention for the words of the edited object (1: an edit of the whole picture), `similarity_inside` and
  `similarity_outside` say how alike the two pictures are within and without it (1: equal; −1: there is no outside,
  and so no score).
* One image of a pair (`plain` in `provenance`) was drawn from its caption alone, the other one under its attention,
  from the same noise. Which of the two it is changes from pair to pair.
* Some pairs are with and without a phrase, such as that of a place: the shorter caption does not mention it, and is
  true of both.
* Captions come from a few templates, and are repeated with another noise when there are more pairs than wordings.
"""
