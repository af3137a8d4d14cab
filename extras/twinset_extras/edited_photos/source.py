"""The settings of pairs of a photo and its edit, and what their card says (VisMin, section 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from twinset.contracts.licences.terms import DerivingTerms
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import AnnotationFile, MediaFolderPath, Need, Settings, StageName
from twinset.generators.image_files import IMAGE_REASONS
from twinset.models.device import check_opencv
from twinset.models.engines import EngineSource
from twinset.shards.media.media_folder import ImageFolder, Media
from twinset_extras.edited_photos.image_editor import ImageEditorEngine

Change = Literal["object", "attribute", "count", "removal"]


class Bounds(Settings):
    """What an edit must keep to, measured on the files as they are stored.

    shift: most pixels that nine tenths of the textured tiles outside of the place may have moved. ssim, difference,
    worst: least structural similarity, most mean difference of colours (0-255), and most of any 32 x 32 pixels, all
    outside of the place. changed: least mean difference within it.
    """

    shift: float = Field(default=1.0, ge=0, le=32)
    ssim: float = Field(default=0.9, ge=0, le=1)
    difference: float = Field(default=5.0, ge=0, le=255)
    worst: float = Field(default=16.0, ge=0, le=255)
    changed: float = Field(default=8.0, ge=0, le=255)


class EditedPhotos(DerivingTerms, EngineSource):
    """A photo with its caption, and an edit of it that shows the negative caption, changed in one place and proved so.

    negatives: the stage of negative captions, whose rows name the photos. photos: folder of the photos, of folders
    of them, or of tars. instances: COCO's, whose boxes and masks say where a noun of the caption is. engine: the
    editor. changes: those that are made: an ``object`` becomes another, an ``attribute`` changes, a ``count``
    falls, or what a negative denies is removed. margin: pixels that a mask is wider than the outline. smallest,
    largest: share of the picture that a place may have (0-1). shared: most of another instance that may lie in it
    (0-1). paste: whether what lies outside of the mask is taken from the photo after the shift was measured, for
    editors that redraw the whole picture. bounds: of the proof.
    licence: of what the editor paints.
    """

    kind: Literal["edited-photos"]
    negatives: StageName
    photos: MediaFolderPath
    instances: AnnotationFile
    engine: ImageEditorEngine
    changes: Annotated[tuple[Change, ...], Field(min_length=1)] = ("object", "attribute", "count", "removal")
    margin: int = Field(default=4, ge=0, le=256)
    smallest: float = Field(default=0.005, ge=0, le=1)
    largest: float = Field(default=0.5, gt=0, le=1)
    shared: float = Field(default=0.1, ge=0, le=1)
    paste: bool = False
    bounds: Bounds = Bounds()
    licence: str = ""

    generator = "twinset_extras.edited_photos.generator:EditedPhotoGenerator"
    makes = "pair"
    paper = Reference("VisMin", "https://arxiv.org/abs/2407.16772", bibtex("awal2024vismin"))
    group = "image"
    verb = "edited from"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "edited-photos")}
    scored: ClassVar[Mapping[str, str]] = {
        "place": "share of the picture that the mask takes (0-1)",
        "shift": "pixels that nine tenths of the textured tiles outside have moved at most (8: lost, -1: no tile)",
        "ssim_outside": "structural similarity outside of the place (to 1)",
        "difference_outside": "mean difference of colours there (0-255)",
        "worst_outside": "that of the 32 x 32 pixels that differ most (0-255)",
        "difference_inside": "mean difference of colours within the place (0-255)",
    }
    unmeasured: ClassVar[Mapping[str, float]] = {"shift": -1.0}

    def media_files(self) -> Media:
        return ImageFolder(self.photos)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "media" in needs:
            check_opencv(key)
