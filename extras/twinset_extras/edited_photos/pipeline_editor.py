"""Edits pictures with a pipeline of diffusers: by what it is told, or by painting inside a mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PIL import Image

from twinset.contracts.kinds.samples import Json, Rejected
from twinset.models.diffusion.painter import PipelineWorker, broken
from twinset.models.image_engine import Drawn
from twinset_extras.edited_photos.diffusers_edits import DiffusersEdits
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor

STRIPE = 4  # the longer side over the shorter one, at most
MULTIPLE = 32  # of the sides that pipelines work at: the largest that one of them needs


class PipelineEditor(PipelineWorker[DiffusersEdits], ImageEditor):
    """Edits one at a time, since pictures have different sizes, and so do what models read of them."""

    version = 2
    micro_batch = 1

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        """As `ImageEditor.edit`; a result has the size of its picture.

        Raises:
            OutOfMemory: an edit does not fit.
            BuildFailed: the model does not.
        """
        for edit in edits:
            prompt = self._prompt(edit)
            yield self._refused(edit, prompt) or self.unread(edit.key, prompt) or self._edited(edit, prompt)

    @property
    def _inpaints(self) -> bool:
        return "inpaint" in self.pipeline.found.row.does

    def _prompt(self, edit: Edit) -> str:
        """What stands inside the mask, or what is to be done; where the place is cleared, what the picture shows."""
        return (edit.phrase or edit.wanted) if self._inpaints else edit.instruction

    def _refused(self, edit: Edit, prompt: str) -> Rejected | None:
        if not self._inpaints:
            return None if prompt else Rejected(edit.key, "no-instruction")
        if edit.mask is None or not edit.mask.any():
            return Rejected(edit.key, "no-mask")
        if edit.mask.shape != edit.pixels.shape[:2]:
            sizes = ("x".join(map(str, picture.shape[1::-1])) for picture in (edit.mask, edit.pixels))
            return Rejected(edit.key, "mask-size", "the mask has {}, the picture {}".format(*sizes))
        return None

    def _edited(self, edit: Edit, prompt: str) -> Drawn | Rejected:
        from twinset.models.device import within_memory

        pipeline, settings = self.pipeline, self.settings
        height, width = edit.pixels.shape[:2]
        size = working_size(width, height, settings.resolution or pipeline.side)
        given = {
            "image": Image.fromarray(edit.pixels).resize(size, Image.Resampling.LANCZOS),
            "mask_image": _mask(edit, size) if self._inpaints else None,
            **{"width": size[0], "height": size[1], "max_area": size[0] * size[1], "strength": settings.strength},
        }
        ((made, finite),) = within_memory(lambda: pipeline([prompt], [edit.seed], **given))
        pixels = np.asarray(Image.fromarray(made).resize((width, height), Image.Resampling.LANCZOS))
        if self._inpaints and edit.mask is not None and settings.outside == "own":
            pixels = np.where(edit.mask[..., None], pixels, edit.pixels)
        how: dict[str, Json] = {**self.provenance(), "size": [*made.shape[1::-1]]}
        if self._inpaints:
            how |= {"strength": settings.strength, "outside": settings.outside}
        return broken(edit.key, made, finite) or Drawn(edit.key, pixels, how, sources=pipeline.files)


def working_size(width: int, height: int, side: int) -> tuple[int, int]:
    """Width and height near a picture's ratio, of about ``side`` squared pixels; models read no long stripes."""
    ratio = min(max(width / height, 1 / STRIPE), STRIPE) ** 0.5
    across, down = (max(2, round(length / MULTIPLE)) * MULTIPLE for length in (side * ratio, side / ratio))
    return across, down


def _mask(edit: Edit, size: tuple[int, int]) -> Image.Image | None:
    if edit.mask is None:
        return None
    return Image.fromarray(np.where(edit.mask, 255, 0).astype(np.uint8)).resize(size, Image.Resampling.NEAREST)
