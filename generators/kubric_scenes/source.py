"""The settings of EQ-Kubric, and what its card says (EqBen, section B.4 and Figure 14)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.locations import Location, on_this_machine
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.kubric_scenes.scene.look import Look
from twinset.generators.papers import EQBEN
from twinset.models.device import check_installed, check_opencv
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import Media, MediaFolder


class Kubric(Source):
    """Rendered scenes of objects that a vocabulary names.

    aspect: what the two captions differ in.
    assets: the manifest (file or URL) of a Kubric asset source in the layout of Google Scanned Objects; decides which
    objects of the vocabulary can be planned.
    backgrounds: folder of HDRI files (.hdr, .exr), projected on floor and sky; the look's ground and light when absent.
    resolution: width and height in pixels. samples: the most rays a pixel, fewer where the picture is clean.
    denoise: whether Blender's denoiser, a network, cleans the picture.
    device: ``gpu`` takes OptiX or CUDA if Blender finds one. threads: of each renderer, 0 for all cores; as many shards
    as there are cores are made at a time unless --workers says otherwise.
    size_ratio: how much longer a large object is than a small one. sizes: of the two objects of an attribute pair:
    ``shared``, or ``each`` its own, as in the paper's Figures 8 and 16.
    attempts: sub-seeds tried before a pair is rejected.
    look: grounds, light, cameras, bystanders and turns, which vary (`generators.kubric_scenes.scene.look.Look`).
    masks: whether instance masks are stored too (``mask0.png``, ``mask1.png``).
    licence: of the assets, copied into every sample and the card: CC-BY-4.0 for Google Scanned Objects.
    """

    kind: Literal["kubric"]
    aspect: Literal["location", "counting", "attribute"]
    assets: Annotated[str, Place("file", "media")]
    backgrounds: Annotated[Location, Place("folder", "media")] | None = None
    resolution: int = Field(default=512, ge=64, le=4096)
    samples: int = Field(default=128, ge=1, le=4096)
    denoise: bool = True
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=0)
    size_ratio: float = Field(default=1.8, gt=1, le=4)
    sizes: Literal["shared", "each"] = "shared"
    look: Look = Look()
    attempts: int = Field(default=8, ge=1, le=100)
    masks: bool = False
    licence: str

    generator = "twinset.generators.kubric_scenes.generator:KubricGenerator"
    reference = Reference("Kubric", "https://github.com/google-research/kubric", bibtex("greff2022kubric"))
    paper = EQBEN
    group = "scene"
    verb = "rendered with"
    unbounded = True
    synthetic = True
    execution = ("device", "threads")
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "kubric")

    @model_validator(mode="after")
    def _settings_fit(self) -> Kubric:
        if self.sizes == "each" and self.aspect != "attribute":
            raise ValueError("sizes: only captions of the aspect attribute say sizes; leave it out")
        return self

    @property
    def planned_from(self) -> str:
        return self.manifest

    @property
    def manifest(self) -> str:
        """Path or URL of the manifest of assets."""
        return on_this_machine(self.assets)

    def media_files(self) -> Media | None:
        """The asset archives, when the manifest is a file of this machine."""
        return None if "://" in self.manifest else MediaFolder(Path(self.manifest).parent)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        with naming(f"{key}.assets"):
            manifest = self.manifest
        if "://" not in manifest and not Path(manifest).is_file():
            raise WrongUse(f"{key}.assets: there is no file {manifest}; name a manifest with --set {key}.assets=FILE")
        if self.backgrounds is not None and not self.backgrounds.is_dir():
            raise WrongUse(f"{key}.backgrounds: there is no folder {self.backgrounds}; correct it or leave it out")

    def check_device(self, key: str) -> None:
        check_installed(key, ("bpy", "kubric", "pybullet"), "render")
        check_opencv(key)
