"""Which images are trained on: a share of them by a hash, and none that a test set asks about."""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.generators.captions.tables import Caption, CaptionSources

TRAIN = "train"
TRAINED = (TRAIN, "restval")  # splits of Karpathy's files that are trained on

#: Setting: share of the images (0-1) that are trained on.
TrainShare = Annotated[float, Field(gt=0, lt=1)]

#: COCO's file names of 2014 and 2017, which are padded to twelve digits, and its plain ids.
_NUMBERED = re.compile(r"(?:(?:COCO_[a-z]+\d{4}_)?(\d{12})|([1-9]\d*))(?:\.jpe?g)?", re.IGNORECASE)


def image_number(name: str) -> str:
    """What an image goes by in all releases of COCO: its number; of other images the name of the file.

    Members of tars and addresses are numbered otherwise: they go by all of their name.
    """
    if "://" in name or ".tar/" in name:
        return name
    base = name.rpartition("/")[2]
    found = _NUMBERED.fullmatch(base)
    return (found[1] or found[2]).lstrip("0") if found else base


class TrainingSplit:
    """The split of each image, the same in all stages of a recipe that ask for the same share.

    Args:
        share: of the images (0-1) that are in `TRAIN`; None for all that are not held out.
        split: of the others.
        seed: of the recipe.
        held_out: files of captions whose images, but those of `TRAINED`, are never trained on.
    """

    def __init__(self, share: float | None, split: str, seed: int, held_out: Sequence[Path] = ()) -> None:
        self.share, self.split, self.seed, self.files = share, split, seed, tuple(held_out)

    def check(self, stage: str) -> None:
        """Raise `WrongUse` where both parts would have one name."""
        if self.share is not None and self.split == TRAIN:
            raise WrongUse(
                f"{stage}: its split is {TRAIN!r} and source.train names another part so; set split to that of the "
                "other images, such as validation"
            )

    def of(self, image_id: str, name: str = "") -> str:
        """The split of an image. name: another that it goes by, such as that of its file."""
        if self.share is None or self.is_held_out(image_id, name):
            return self.split
        hashed = hashlib.blake2b(canonical_json([self.seed, "split", image_id]), digest_size=8).digest()
        return TRAIN if int.from_bytes(hashed, "big") < self.share * 2**64 else self.split

    def is_held_out(self, *names: str) -> bool:
        """Whether a file of `held_out` has an image that goes by one of some names."""
        return bool(self.files) and any(image_number(one) in self._held_out for one in names if one)

    def digest(self) -> str:
        """Of the files, "" without them."""
        return CaptionSources(self.files).digest() if self.files else ""

    @cached_property
    def _held_out(self) -> frozenset[str]:
        read = (one for one in CaptionSources(self.files).read() if isinstance(one, Caption))
        named = ((one.image_id, one.image) for one in read if one.split not in TRAINED)
        return frozenset(image_number(name) for names in named for name in names if name)


def joined(inputs: str, split: TrainingSplit) -> str:
    """The digest of a stage's inputs with that of the files of images held out; as it was without them."""
    return digest([inputs, split.digest()]) if split.files else inputs
