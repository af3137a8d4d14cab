"""The settings of every source that a recipe can name, typed; `generators.create` turns them into generators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from manifests.locations import PROCEDURAL, Location, procedural_assets_folder


class Settings(BaseModel):
    """Strict: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MediaSource(Settings):
    """A source with an annotation file and a folder of media.

    annotations: the source's annotation file. media: folder of its videos (or dumped frames).
    licence: of the source's media, copied into every sample and the card.
    """

    annotations: Location
    media: Location
    licence: str

    #: Where things lie is not part of what is made: annotations enter the digest by content, media by their sha256.
    locations: ClassVar[tuple[str, ...]] = ("annotations", "media")

    #: Nor is how it is made: a device that rounds differently is named by the runtime class.
    execution: ClassVar[tuple[str, ...]] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """The settings that name files of the user's."""
        return self.locations

    @property
    def planned_from(self) -> str:
        """What a plan is read from, for messages."""
        return str(self.annotations)

    @property
    def media_root(self) -> Path | None:
        """Folder of the files that samples are made from; None where they are not on this machine."""
        return self.media


class ActionGenome(MediaSource):
    """EQ-AG (EqBen, sections 4.1 and B.1).

    frames: ``dump`` reads ``VIDEO.mp4/000123.png`` of the official ffmpeg dump, ``video`` takes the same 1-based
    frame numbers from ``VIDEO.mp4``.
    skip: annotated frames left out after a chosen one (the paper says 1 and 2).
    exclusive: stricter than the paper: each frame has a caption that does not hold of the other one. {holding} and
    {holding, touching} are said differently, and make a pair, but "holding" holds of both.
    """

    kind: Literal["action-genome"]
    frames: Literal["dump", "video"] = "video"
    skip: int = Field(default=1, ge=0)
    exclusive: bool = False
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


Source = Annotated[ActionGenome | Gebc | YouCook2 | Kubric, Field(discriminator="kind")]
