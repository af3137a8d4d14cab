"""Similar images of the examples of a run, from a table of ``image-neighbours``, and batches that they are mixed into.

NegCLIP (Yuksekgonul et al. 2023, section 4): half of a batch is sampled in order; the other half are neighbours, one of
the 3 nearest images of each. With `infonce` the same batches are hard negatives by image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.training.examples.columns import SHORT_DIGITS
from twinset.training.examples.contracts import data_place
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import Integers
from twinset.training.losses.names import ABSENT, NEAREST

COLUMNS = ("image_sha256", "number", "neighbours")


def image_numbers(examples: ExampleSet) -> tuple[NDArray[np.uint64], Integers]:
    """The distinct images of all examples by the start of their sha256, sorted, and the place there of each example's
    image, (n,). Images of tars of others, which nothing hashed, are told apart by their places.
    """
    found, known = [], 0
    for part in examples.parts:
        sides = []
        for side in part.sides:
            slices = part.columns.images[side.images["image"]]
            places = np.stack([part.columns.tar.astype(np.int64), slices.offsets])
            of_place = np.unique(places, axis=1, return_inverse=True)[1].reshape(-1).astype(np.uint64)
            sides.append(np.where(slices.hashes == 0, np.uint64(known + 1) + of_place, slices.hashes))
            known += len(of_place)
        found.append(np.tile(np.stack(sides, 1).reshape(-1), part.copies))  # as `Part.example` counts
    images, numbers = np.unique(np.concatenate(found), return_inverse=True)
    return images, numbers.astype(np.int64)


@dataclass(frozen=True, slots=True)
class ImageNeighbours:
    """Similar images.

    Attributes:
        image: number of the image of each example, int64, (n,). nearest: images that a neighbour is sampled from.
        places: numbers of the nearest images of each image, best first, then `ABSENT`; (images, k).
        digest: of the table.
    """

    image: Integers
    places: NDArray[np.int32]
    digest: str
    nearest: int = NEAREST

    def mixed(self, seeds: Integers, half: int, rng: np.random.Generator) -> Integers:
        """Batches of ``half`` examples and as many neighbours, one after the other.

        A neighbour is an example of one of the nearest images of its seed that no other example of the batch has, both
        at random; where all are taken, of any other image.

        Args:
            seeds: numbers of the examples in order; what does not fill half a batch is left out.
        """
        by_image = np.argsort(self.image, kind="stable")
        ends = np.cumsum(np.bincount(self.image, minlength=len(self.places)))
        batches = []
        for some in seeds[: len(seeds) // half * half].reshape(-1, half):
            taken, near = set(self.image[some].tolist()), np.empty(half, np.int64)
            for slot, seed in enumerate(some):
                chosen = self._free(int(self.image[seed]), taken, rng)
                taken.add(chosen)
                first = ends[chosen - 1] if chosen else 0
                near[slot] = by_image[rng.integers(first, ends[chosen])]
            batches += [some, near]
        return np.concatenate(batches)

    def _free(self, image: int, taken: set[int], rng: np.random.Generator) -> int:
        for place in rng.permutation(self.places[image, : self.nearest]).tolist():
            if place != ABSENT and place not in taken:
                return int(place)
        while True:  # there are more images than a batch has examples
            other = int(rng.integers(len(self.places)))
            if other not in taken:
                return other


def open_image_neighbours(text: str, examples: ExampleSet, nearest: int) -> ImageNeighbours:
    """The neighbours of the images of some examples among these images.

    Args:
        text: ``DIR:STAGE``, or the folder or URL of the stage.
        nearest: as `ImageNeighbours` has it.

    Raises:
        WrongUse: there is no such table, or it lacks images of the examples.
    """
    place = data_place(text)
    root, home = (place.root, place.subset) if place.subset else text.rstrip("/").rpartition("/")[::2]
    stage = FinishedStage(Store(root or ("/" if text.startswith("/") else ".")), home)
    table = stage.read(COLUMNS)
    hashes = np.array([int(one[:SHORT_DIGITS], 16) for one in table["image_sha256"].to_pylist()], np.uint64)
    images, numbers = image_numbers(examples)
    order = np.argsort(hashes)
    at = np.minimum(np.searchsorted(hashes, images, sorter=order), len(hashes) - 1)
    rows = order[at] if len(hashes) else np.zeros(0, np.int64)
    if not len(hashes) or (hashes[rows] != images).any():
        lacking = len(images) - int((hashes[rows] == images).sum() if len(hashes) else 0)
        raise WrongUse(
            f"neighbours: {stage.where} lacks {lacking:,} of the {len(images):,} images that are trained on; build it "
            "of the same data, which twinset built"
        )
    here = np.full(len(hashes), ABSENT, np.int32)
    here[table["number"].to_numpy()[rows]] = np.arange(len(images), dtype=np.int32)
    near = table["neighbours"].combine_chunks().flatten().to_numpy().reshape(len(hashes), -1)
    return ImageNeighbours(numbers, packed(here[near[rows]]), stage.digest, nearest)


def packed(places: NDArray[np.int32]) -> NDArray[np.int32]:
    """Rows of places with what is `ABSENT` behind the others, which keep their order."""
    return np.take_along_axis(places, np.argsort(places == ABSENT, axis=1, kind="stable"), 1)
