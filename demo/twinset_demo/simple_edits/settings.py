"""Settings of the editor ``simple``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from twinset.contracts.source import Need
from twinset.models.device import check_opencv
from twinset.models.image_editor import ImageEditorSettings

if TYPE_CHECKING:
    from twinset_demo.simple_edits.editor import SimpleEditor


class SimpleEdits(ImageEditorSettings):
    """Another hue for what is coloured inside a mask, or nothing there by OpenCV's inpainting. It has no settings."""

    kind: Literal["simple"]
    licence: str = "CC0-1.0"

    title = "recolouring and OpenCV's inpainting"
    masked = True
    reasons: ClassVar[Mapping[str, str]] = {
        "cannot-paint": "the editor only recolours and removes",
        "no-colour": "too little of the place has the colour that the caption says, such as black, white or grey",
        "hole-too-thick": "inpainting would smear over so thick a hole",
        "wrong-lightness": "the place is too light or too dark to look like the new colour",
    }

    def notes(self) -> str:
        return "* Recolouring keeps lightness; inpainting smears what surrounds a hole, and looks blurred.\n"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "media" in needs:
            check_opencv(key)

    def open(self) -> SimpleEditor:
        from twinset_demo.simple_edits.editor import SimpleEditor

        return SimpleEditor()
