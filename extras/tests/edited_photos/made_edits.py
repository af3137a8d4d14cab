"""A photograph with a red box, editors that change it, and what becomes of their edits."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.models.image_engine import Drawn
from twinset_extras.edited_photos.image_editor import Edit, ImageEditor
from twinset_extras.edited_photos.source import EditedPhotos

HEIGHT, WIDTH = 256, 320
LEFT, TOP, SIDE = 40, 60, 48
Opened = Callable[..., Any]


def photo() -> Pixels:
    """Noise in soft spots, as a textured scene, with a red box."""
    spots = np.random.default_rng(0).integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    pixels = np.asarray(cv2.resize(spots, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)) // 2 + 60
    pixels[TOP : TOP + SIDE, LEFT : LEFT + SIDE] = (200, 40, 30)
    return pixels.astype(np.uint8)


def source(folder: Path, **given: Any) -> EditedPhotos:
    places = {"photos": folder / "photos", "instances": folder / "instances.json"}
    whole: dict[str, Any] = {"engine": {"kind": "mylab-fill"}, **places, **given}
    return EditedPhotos(kind="edited-photos", negatives="negatives", **whole)


class Fake(ImageEditor):
    """Gives what a function makes of an edit."""

    version = 1
    micro_batch = 4

    def __init__(self, change: Callable[[Edit], Pixels]) -> None:
        self.change = change

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        for one in edits:
            yield Drawn(one.key, self.change(one), {"fake": True})


def inside(one: Edit) -> Pixels:
    """Another colour in the mask."""
    assert one.mask is not None
    return np.where(one.mask[..., None], np.array((20, 160, 40), np.uint8), one.pixels)


def shifted(one: Edit) -> Pixels:
    return np.roll(inside(one), 2, axis=0)


def made(opened: Opened, change: Callable[[Edit], Pixels], **given: Any) -> Pair | Rejected:
    """What becomes of the first candidate."""
    generator = opened(**given)
    generator.__dict__["worker"] = Fake(change)
    (result,) = generator.make([next(iter(generator.plan()))])
    assert isinstance(result, Pair | Rejected)
    return result


def became(result: Pair | Rejected) -> str:
    """The kind of change of a pair, or the reason of a rejection."""
    return result.reason if isinstance(result, Rejected) else result.change
