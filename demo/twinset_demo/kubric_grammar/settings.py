"""Settings of the engine ``kubric``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from twinset.contracts.source import Need, Pool
from twinset.models.device import check_installed
from twinset.models.image_engine import ImageEngineSettings

if TYPE_CHECKING:
    from twinset_demo.kubric_grammar.painter import KubricPainter


class KubricImages(ImageEngineSettings):
    """Rendered scenes of captions that a small grammar can read.

    resolution: width and height in pixels. samples: at most so many rays a pixel, fewer where the picture is clean.
    denoise: by Intel's Open Image Denoise. device: ``gpu`` takes OptiX or CUDA if Blender finds one. threads: of the
    renderer, 0 for all cores. attempts: scenes that are tried before a caption is rejected.
    """

    kind: Literal["kubric"]
    resolution: int = Field(default=256, ge=64, le=4096)
    samples: int = Field(default=16, ge=1, le=4096)
    denoise: bool = True
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=0)
    attempts: int = Field(default=6, ge=1, le=100)
    licence: str = "CC0-1.0"

    execution = ("device", "threads")
    title = "Kubric"
    reasons: ClassVar[Mapping[str, str]] = {
        "not-in-grammar": "the caption has a word or an order of words that the engine cannot read",
        "not-drawable": "the caption says what the engine's objects cannot show, such as a bus on top of a ball",
        "no-room": "could not place all objects without overlap",
        "never-still": "what was dropped on another object was still moving after three seconds",
        "not-on-top": "what was dropped on another object does not rest on it",
        "wrong-relation": "as the viewer sees it, the relation is not true, or another one is as well",
        "wrong-colour": "too few pixels of an object have the colour that the caption says",
        "wrong-count": "there are more or fewer objects than the caption says",
        "hidden": "too little of an object is seen",
        "cut-off": "the border of the picture cuts an object",
        "too-small": "an object takes too little of the picture",
    }

    @property
    def pool(self) -> Pool:
        """As `ImageEngineSettings.pool`."""
        return "render"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `ImageEngineSettings.check_inputs`: what renders."""
        if "media" in needs:
            check_installed(key, ("bpy", "kubric", "pybullet"), "render")

    def open(self) -> KubricPainter:
        """As `ImageEngineSettings.open`."""
        from twinset_demo.kubric_grammar.painter import KubricPainter

        return KubricPainter(self)
