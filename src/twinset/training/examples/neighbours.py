"""Similar images of the examples of a run, from a table of ``image-neighbours``, and batches that they are mixed into.

NegCLIP (Yuksekgonul et al. 2023, section 4): half of a batch is sampled in order; the other half are neighbours, one of
the 3 nearest images of each. With `infonce` the same batches are hard negatives by image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.training.examples.contracts import data_place
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import Integers
from twinset.training.examples.table import SHORT_DIGITS
from twinset.training.losses.names import ABSENT, NEAREST

COLUMNS = ("image_sha256", "number", "neighbours")


def image_numbers(examples: ExampleSet) -> tuple[list[str], Integers]:
    """The distinct images of all examples by the start of their sha256, sorted, and the place there of each example's
    image, (n,). Images of tars of others, which nothing hashed, are told apart by their places.
    """
    where = (examples.column("dataset"), examples.column("image.tar"), examples.column("image.offset"))
    places = pc.binary_join_element_wise(*(column.cast(pa.string()) for column in where), ":")
    starts = examples.column("image.sha256")
    names = pc.if_else(pc.equal(starts, ""), places, starts)
    images = sorted(pc.unique(names).to_pylist())
    return images, pc.index_in(names, pa.array(images, pa.string())).to_numpy().astype(np.int64)


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
        by_image = np.split(np.argsort(self.image, kind="stable"), np.cumsum(np.bincount(self.image))[:-1])
        batches = []
        for drawn in seeds[: len(seeds) // half * half].reshape(-1, half):
            in_batch, near = set(self.image[drawn].tolist()), np.empty(half, np.int64)
            for slot, image in enumerate(self.image[drawn].tolist()):
                chosen = self._free(image, in_batch, rng)
                in_batch.add(chosen)
                near[slot] = rng.choice(by_image[chosen])
            batches += [drawn, near]
        return np.concatenate(batches)

    def _free(self, image: int, in_batch: set[int], rng: np.random.Generator) -> int:
        for place in rng.permutation(self.places[image, : self.nearest]):
            if place != ABSENT and place not in in_batch:
                return int(place)
        free = np.setdiff1d(np.arange(len(self.places)), [*in_batch])  # there are more images than a batch has examples
        return int(rng.choice(free))


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
    table = stage.read(COLUMNS).combine_chunks()
    hashes = pc.utf8_slice_codeunits(table["image_sha256"].combine_chunks(), 0, SHORT_DIGITS)
    images, numbers = image_numbers(examples)
    found = pc.index_in(pa.array(images, pa.string()), hashes)
    if found.null_count:
        raise WrongUse(
            f"neighbours: {stage.where} lacks {found.null_count:,} of the {len(images):,} images that are trained on; "
            "build it of the same data, which twinset built"
        )
    rows = found.to_numpy()
    here = np.full(len(hashes), ABSENT, np.int32)
    here[table["number"].to_numpy()[rows]] = np.arange(len(images), dtype=np.int32)
    near = here[table["neighbours"].combine_chunks().flatten().to_numpy().reshape(len(hashes), -1)[rows]]
    # Images that are not trained on stand behind the others, which keep their order.
    places = np.take_along_axis(near, np.argsort(near == ABSENT, axis=1, kind="stable"), 1)
    return ImageNeighbours(numbers, places, stage.digest, nearest)
