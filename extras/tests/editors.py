"""An image editor of another distribution, which needs no network."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from twinset.contracts.kinds.samples import Rejected
from twinset.models.image_engine import Drawn
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor, ImageEditorSettings


class FilledMasks(ImageEditorSettings):
    """Masks filled with one colour, which depends on the phrase."""

    kind: Literal["mylab-fill"]
    licence: str = "CC0-1.0"

    title = "filled masks"
    masked = True

    def open(self) -> "Filler":
        """As `EngineSettings.open`."""
        return Filler()


class Filler(ImageEditor):
    """As `FilledMasks`."""

    version = 1

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        """As `ImageEditor.edit`."""
        for one in edits:
            colour = np.random.default_rng([*one.phrase.encode()]).integers(0, 200, 3)
            mask = one.mask if one.mask is not None else np.ones(one.pixels.shape[:2], np.bool_)
            pixels = np.where(mask[..., None], colour, one.pixels).astype(np.uint8)
            yield Drawn(one.key, pixels, {"colour": colour.tolist()})


def install(folder: Path) -> None:
    """Write a folder for PYTHONPATH in which a package brings the editor; it needs the checkout on that path too."""
    meta = folder / "mylab_fill-0.1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: mylab-fill\nVersion: 0.1.0\n")
    (meta / "entry_points.txt").write_text("[twinset.image_editors]\nmylab-fill = extras.tests.editors:FilledMasks\n")
