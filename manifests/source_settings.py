"""The settings of every source that a recipe can name, typed; `generators.create` turns them into generators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from manifests.genecis_settings import AttributeTemplates, ObjectTemplates, Triplets
from manifests.locations import (
    PROCEDURAL,
    SMALL,
    Location,
    is_model_folder,
    procedural_assets_folder,
    small_model_folder,
)
from manifests.media_source import MediaSource
from manifests.settings import Settings


class ActionGenome(MediaSource):
    """EQ-AG (EqBen, sections 4.1 and B.1).

    frames: ``dump`` reads ``VIDEO.mp4/000123.png`` of the official ffmpeg dump, ``video`` takes the same 1-based
    frame numbers from ``VIDEO.mp4``.
    skip: annotated frames left out after a chosen one (the paper says 1 and 2).
    exclusive: stricter than the paper: each frame has a caption that does not hold of the other one. {holding} and
    {holding, touching} are said differently, and make a pair, but "holding" holds of both.
    grammar: captions in correct English ("the clothes which are"), where the paper prints "the clothes which is".
    """

    kind: Literal["action-genome"]
    frames: Literal["dump", "video"] = "video"
    skip: int = Field(default=1, ge=0)
    exclusive: bool = False
    grammar: bool = False
    licence: str = "Action Genome (MIT) annotations; Charades videos, non-commercial research use"


class Gebc(MediaSource):
    """EQ-GEBC (EqBen, sections 4.1 and B.2).

    skip: boundaries between the twins beyond the first (1: before boundary i and after boundary i + 1).
    before, after: where in the interval before boundary i, and after boundary i + skip, the frame is taken
    (0 its start, 1 its end).
    """

    kind: Literal["gebc"]
    skip: int = Field(default=1, ge=0)
    before: float = Field(default=0.5, ge=0, le=1)
    after: float = Field(default=0.5, ge=0, le=1)
    licence: str = "Kinetics-GEB+ annotations, no licence stated; Kinetics-400 videos, their owners' terms"


class YouCook2(MediaSource):
    """EQ-YouCook2 (EqBen, sections 4.1 and B.3): middle frame of every segment, all pairs within a video."""

    kind: Literal["youcook2"]
    licence: str = "YouCook2 (MIT) annotations; YouTube videos, non-commercial research use"


DRAWN_LICENCE = "CC0-1.0 (assets drawn by twinset)"


class Kubric(Settings):
    """EQ-Kubric (EqBen, section B.4 and Figure 14): rendered scenes of vocabulary things.

    assets: ``procedural`` (drawn by twinset), or the manifest (file or URL) of a Kubric asset source in the layout of
    Google Scanned Objects; decides which things of the vocabulary can be planned.
    backgrounds: folder of HDRI files (.hdr, .exr); a floor under a plain sky when absent.
    resolution: width and height in pixels. samples: at most so many rays a pixel, fewer where the picture is clean.
    device: ``gpu`` takes OptiX or CUDA if Blender finds one. threads: of each renderer, 0 for all cores; as many shards
    as there are cores are made at a time unless --workers says otherwise.
    size_ratio: how much longer a large thing is than a small one. attempts: sub-seeds tried before a pair is rejected.
    masks: whether instance masks are stored too (``mask0.png``, ``mask1.png``).
    licence: of the assets, copied into every sample and the card; must be said of those that twinset did not draw.
    """

    kind: Literal["kubric"]
    aspect: Literal["location", "counting", "attribute"]
    assets: str = PROCEDURAL
    backgrounds: Location | None = None
    resolution: int = Field(default=512, ge=64, le=4096)
    samples: int = Field(default=128, ge=1, le=4096)
    denoise: bool = True
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=0)
    size_ratio: float = Field(default=1.8, gt=1, le=4)
    attempts: int = Field(default=8, ge=1, le=100)
    masks: bool = False
    licence: str = DRAWN_LICENCE

    locations: ClassVar[tuple[str, ...]] = ("assets", "backgrounds")
    execution: ClassVar[tuple[str, ...]] = ("device", "threads")
    drawn: ClassVar[bool] = True
    endless: ClassVar[bool] = True

    @model_validator(mode="after")
    def _foreign_assets_have_a_licence(self) -> Kubric:
        if self.assets != PROCEDURAL and self.licence == DRAWN_LICENCE:
            raise ValueError("set licence to that of these assets (CC-BY-4.0 for Google Scanned Objects)")
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """As `MediaSource.places`."""
        return tuple(key for key in self.locations if getattr(self, key) not in (PROCEDURAL, None))

    @property
    def planned_from(self) -> str:
        """As `MediaSource.planned_from`."""
        return self.manifest

    @property
    def manifest(self) -> str:
        """Path or URL of the manifest of assets."""
        return str(procedural_assets_folder() / "manifest.json") if self.assets == PROCEDURAL else self.assets

    @property
    def media_root(self) -> Path | None:
        """Folder of the asset archives, when the manifest is a file of this machine."""
        return None if "://" in self.manifest else Path(self.manifest).parent


#: What goes with the model where the recipe does not say: what it can draw, how well it does, on what terms.
OF_MODEL: dict[str, dict[str, Any]] = {
    SMALL: {
        "vocabulary": "small-world",
        "scheduler": "dpm-solver++",
        "steps": 20,
        "guidance": 3.0,
        "self_replace_steps": 0.0,  # more makes edits fail and keeps no more: evaluation/small_diffusion/sweep.py
        "blend": True,
        "licence": "CC0-1.0 (drawn by the model of twinset)",
    },
    "CompVis/stable-diffusion-v1-4": {
        "licence": "CreativeML OpenRAIL-M: no rights are claimed in what is drawn, restrictions of use go with it",
    },
}


class StableDiffusion(Settings):
    """EQ-SD (EqBen, section B.5 and Figure 15): pairs that prompt-to-prompt draws with a text-to-image model.

    model: ``small`` (comes with twinset), an id of the Hugging Face hub whose files are in the local cache, or a folder
    in diffusers' layout: one that is there, or a path that is absolute or begins with ``.`` or ``~``.
    vocabulary: of captions: ``figure-15`` (the paper's) or ``small-world`` (what `small` can draw; its default).
    resolution: side of an image in pixels; what the model was trained at when absent.
    steps: of denoising. guidance: scale of classifier-free guidance. scheduler: the sampler.
    cross_replace_steps, self_replace_steps: share of the steps in which the edited image takes cross- and
    self-attention of the other one (`generators.prompt_to_prompt.edits.Edit`). blend: whether what lies outside of the
    edited thing is taken from the other image (local blend), in rows of the vocabulary that name one.
    precision: of the network; ``auto`` is float16 on a GPU and float32 on the CPU.
    scorer: a CLIP model, named as ``model`` is, that scores how well the change of the images follows that of the
    captions; rejects nothing. None: no such score.
    device: ``gpu`` is the first CUDA device, and one shard is made at a time unless --workers says otherwise. threads:
    torch's, of each process. micro_batch: pairs that are drawn at a time; halved for a shard when memory runs out.
    licence: of what the model draws, copied into every sample and the card; must be said of a model not known here.
    """

    kind: Literal["stable-diffusion"]
    model: str = Field(default=SMALL, min_length=1)
    vocabulary: Literal["figure-15", "small-world"] = "figure-15"
    resolution: int | None = Field(default=None, ge=32, le=2048, multiple_of=8)
    steps: int = Field(default=50, ge=1, le=1000)
    guidance: float = Field(default=7.5, ge=0, le=50)
    scheduler: Literal["ddim", "dpm-solver++"] = "ddim"
    cross_replace_steps: float = Field(default=0.8, ge=0, le=1)
    self_replace_steps: float = Field(default=0.4, ge=0, le=1)
    blend: bool = False
    precision: Literal["auto", "float32", "float16"] = "auto"
    scorer: str | None = Field(default=None, min_length=1)
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=1, le=1024)
    micro_batch: int = Field(default=4, ge=1, le=1024)
    licence: str

    models: ClassVar[tuple[str, ...]] = ("model", "scorer")
    execution: ClassVar[tuple[str, ...]] = ("device", "threads", "micro_batch")
    drawn: ClassVar[bool] = True
    endless: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _as_goes_with_the_model(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        model = given.get("model", SMALL)
        return {**(OF_MODEL.get(model, {}) if isinstance(model, str) else {}), **given}

    @model_validator(mode="after")
    def _model_knows_the_words(self) -> StableDiffusion:
        # It spells words that it does not know, and would draw something else for them.
        if self.model == SMALL and self.vocabulary != "small-world":
            raise ValueError("the small model knows only the words of vocabulary small-world; leave vocabulary out")
        return self

    @property
    def locations(self) -> tuple[str, ...]:
        """As `MediaSource.locations`. A name is part of what is made; a folder is not, its weights enter by digest."""
        return tuple(key for key in self.models if is_model_folder(getattr(self, key) or ""))

    @property
    def places(self) -> tuple[str, ...]:
        """As `MediaSource.places`."""
        return self.locations

    @property
    def planned_from(self) -> str:
        """As `MediaSource.planned_from`."""
        return f"vocabulary {self.vocabulary}"

    @property
    def media_root(self) -> Path | None:
        """Folder of the model's files; None where the hub's cache holds them, under names that are their digests."""
        if self.model == SMALL:
            return small_model_folder()
        return Path(self.model) if is_model_folder(self.model) else None


Source = Annotated[
    ActionGenome | Gebc | YouCook2 | Kubric | StableDiffusion | Triplets | AttributeTemplates | ObjectTemplates,
    Field(discriminator="kind"),
]
