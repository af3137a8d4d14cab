"""Plans the text pairs of a table of negative captions image by image, and gives each its image."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.negative_captions.scored import ScoredCaption, columns_of, scores_in, with_scores
from twinset.generators.text_pairs.source import TextPairs
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import canonical_json, sample_key
from twinset.manifests.errors import WrongUse
from twinset.shards.contracts import Context, Generator, LeftOut
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.kinds.samples import Frame, Rejected
from twinset.shards.kinds.text_pair import TEXT_SCORES, TextPair

BLOCK = 100_000  # rows that are put in order together
SLICE = 10_000  # rows that are Python objects at a time
TRAIN = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPairCandidate(ScoredCaption):
    """A row of a table of negative captions. negative_key: its key there."""

    negative_key: str


class TextPairGenerator(Generator[TextPairs]):
    """A text pair a row; those of an image are a group."""

    version = 1
    libraries = ("numpy", "pillow")

    def __init__(self, source: TextPairs, context: Context) -> None:
        super().__init__(source, context)
        self._scores = columns_of(source.scores)
        self.numbers = self._scores[len(TEXT_SCORES) :]
        self._candidate = self.candidate = with_scores(TextPairCandidate, self._scores)
        self._images = ImageFiles(source.images, upright=True) if source.images is not None else None

    def inputs(self) -> str:
        """Digest of the earlier table."""
        return self._negatives.digest

    def plan(self) -> Iterator[Candidate]:
        """Images in the order in which they first come in the table; pairs of an image in the table's order.

        Raises `WrongUse` when images are asked for that no row names.
        """
        self.excluded = LeftOut()
        if self.source.train is not None and self.split == TRAIN:
            raise WrongUse(
                f"{self.name}: its split is {TRAIN!r} and source.train names another part so; set split to that of the "
                "other images, such as validation"
            )
        named = self._images is None
        for row in self._rows():
            image = _name_of(row)
            if self._images is not None and not image:
                self.excluded.add("no-image", f"{self.source.negatives} {row['identity']}")
                continue
            named = named or "://" not in image
            yield self._planned(row, image)
        if not named:
            raise WrongUse(
                f"subsets.{self.name}.source.images: no row of {self.source.negatives} names an image by id or file; "
                "leave images out for an index"
            )

    def _planned(self, row: Mapping[str, Any], image: str) -> Candidate:
        key = sample_key(self.name, *json.loads(row["identity"]))
        whole = {name: row[name] for name in ("identity", *COLUMNS.names)}
        candidate: TextPairCandidate = self._candidate(
            key=key,
            group=row["image_id"] or key,
            split=self._split_of(row["image_id"] or row["caption"]),
            negative_key=row["key"],
            **{**whole, "image": image, **scores_in(row, self._scores)},
        )
        return candidate

    def _split_of(self, image_id: str) -> str:
        """The same for an image in all stages of a recipe that ask for the same share."""
        if self.source.train is None:
            return self.split
        hashed = hashlib.blake2b(canonical_json([self.seed, "split", image_id]), digest_size=8).digest()
        return TRAIN if int.from_bytes(hashed, "big") < self.source.train * 2**64 else self.split

    @cached_property
    def _negatives(self) -> FinishedStage:
        return self.context.earlier(self.source.negatives)

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the table image by image.

        Memory holds a number a row, and where the images are scattered `BLOCK` rows or those of an image.
        """
        there = self._negatives.columns()
        columns = ["key", "identity", *COLUMNS.names, *(name for name in TEXT_SCORES if name in there), *self.numbers]
        codes, blocks = self._images_in_blocks()
        if (codes[1:] >= codes[:-1]).all():
            for batch in self._negatives.batches(columns):
                for start in range(0, len(batch), SLICE):
                    yield from batch.slice(start, SLICE).to_pylist()
            return
        for first, last in blocks:
            chosen = (codes >= first) & (codes < last)
            whole = pa.Table.from_batches(self._negatives.batches(columns, None if chosen.all() else chosen))
            order = np.argsort(codes[chosen], kind="stable")
            for batch in whole.take(pa.array(order)).to_batches(max_chunksize=SLICE):
                yield from batch.to_pylist()

    def _images_in_blocks(self) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
        """The number of each row's image, by first occurrence, and ranges of numbers that have some `BLOCK` rows.

        Rows without an image id that are read together count as of one image.
        """
        known: dict[str, int] = {}
        parts = [np.empty(0, np.int32)]
        for number, batch in enumerate(self._negatives.batches(["image_id"])):
            ids = batch[0].dictionary_encode()
            places = [known.setdefault(one or f"\0{number}", len(known)) for one in ids.dictionary.to_pylist()]
            parts.append(np.array(places, np.int32)[ids.indices.to_numpy()])
        codes = np.concatenate(parts)
        ends = np.cumsum(np.bincount(codes, minlength=len(known)))  # rows of all images up to each
        blocks, first = [], 0
        while first < len(known):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
            blocks.append((first, last))
            first = last
        return codes, blocks

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TextPair | Rejected]:
        """Pairs with their images, or why one has none (`generators.image_files.ImageFiles.read`)."""
        planned = cast(Sequence[TextPairCandidate], candidates)
        read: Mapping[str, Frame | UnusableImage] = {}
        if self._images is not None:
            read = self._images.read(one.image for one in planned)
        for one in planned:
            image = read.get(one.image)
            if isinstance(image, UnusableImage):
                yield image.rejected(one.key)
                continue
            yield TextPair(
                key=one.key,
                group=one.group,
                split=one.split,
                image=image,
                caption=one.caption,
                negative_caption=one.negative_caption,
                type=one.type,
                subtype=one.subtype,
                image_id=one.image_id,
                provenance={"caption_id": one.caption_id, "image_id": one.image_id, "negative_key": one.negative_key},
                scores=one.scores(),
            )


def _name_of(row: Mapping[str, Any]) -> str:
    """What the image is looked for by: its place as the captions' source names it, else its id."""
    image: str = row["image"]
    return image if image and "://" not in image else row["image_id"]
