"""Which images are trained on: a share of them by a hash."""

import hashlib
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse

TRAIN = "train"

#: Setting: share of the images (0-1) that are trained on.
TrainShare = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, slots=True)
class TrainingSplit:
    """The split of each image, the same in all stages of a recipe that ask for the same share.

    share: of the images (0-1) that are in `TRAIN`; None for none. split: of the others. seed: of the recipe.
    """

    share: float | None
    split: str
    seed: int

    def check(self, stage: str) -> None:
        """Raise `WrongUse` where both parts would have one name."""
        if self.share is not None and self.split == TRAIN:
            raise WrongUse(
                f"{stage}: its split is {TRAIN!r} and source.train names another part so; set split to that of the "
                "other images, such as validation"
            )

    def of(self, image_id: str) -> str:
        """The split of an image."""
        if self.share is None:
            return self.split
        hashed = hashlib.blake2b(canonical_json([self.seed, "split", image_id]), digest_size=8).digest()
        return TRAIN if int.from_bytes(hashed, "big") < self.share * 2**64 else self.split
