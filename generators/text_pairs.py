"""The text pairs of a table of negative captions: planned image by image, each with its image."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import field_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.doors import UnknownKind
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Frame, Rejected
from twinset.contracts.kinds.text_pair import TEXT_SCORES, TextPair
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.locations import Location
from twinset.contracts.source import Place, SourceSettings, StageName
from twinset.generators.annotation_files import OptionalFiles
from twinset.generators.caption_scores.scorers.scorer import bringing, scorer_of
from twinset.generators.captions.training_split import TrainingSplit, TrainShare, joined
from twinset.generators.image_files import IMAGE_REASONS, ImageFiles, UnusableImage, looked_for_by
from twinset.generators.negative_captions.kinds import COLUMNS, ScoredCaption, columns_of, scores_in, with_scores
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Context, Source, StageGenerator
from twinset.shards.media.media_folder import ImageFolder, Media


class TextPairs(Source):
    """An image, its caption and a negative caption, for each row of a table of negative captions.

    negatives: the stage of negative captions, or the folder of a finished one; twinset's own scores are taken along.
    scores: those of other packages' caption scorers to take along.
    images: folder of the captions' images, or of tars of them; only an index is made when absent.
    train: share of the images (0-1) whose pairs are in the split ``train``, by a hash of the recipe's seed and the
    image id; the others are in the split of the subset. Absent: all are. held_out: files of captions whose images are
    never in ``train``, such as those of COCO's test; those that they name as trained on may be. licence: of captions
    and images.
    """

    kind: Literal["text-pairs"]
    negatives: StageName
    scores: tuple[str, ...] = ()
    images: Annotated[Location, Place("folder", "media")] | None = None
    train: TrainShare | None = None
    held_out: OptionalFiles = ()
    licence: str = ""

    generator = "twinset.generators.text_pairs:TextPairGenerator"
    makes = "text-pair"
    paper = BIVLC
    group = "image"
    verb = "made from"
    card_template = Path(__file__).with_name("text_pairs.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, "no-image": "rows that name no image"}

    @field_validator("scores")
    @classmethod
    def _known(cls, scores: tuple[str, ...]) -> tuple[str, ...]:
        for score in scores:
            try:
                scorer_of(score)
            except UnknownKind as error:
                raise ValueError(str(error)) from error
        return scores

    @property
    def brought(self) -> dict[str, str]:
        return bringing(self.scores, "scores")

    @property
    def scores_meant(self) -> Mapping[str, str]:
        scorers = [scorer_of(score)[1] for score in ("vera", "cola", "lm", "similarity", *self.scores)]
        return {column: f"{one.title} {one.unit}".strip() for one in scorers for column in one.columns()}

    def misfit(self, earlier: SourceSettings) -> str:
        given = earlier.scores_given
        lacking = [score for score in self.scores if given is not None and score not in given]
        return f"source.scores: {self.negatives} has no {lacking[0]}; name its scorer there" if lacking else ""

    def media_files(self) -> Media | None:
        return ImageFolder(self.images) if self.images is not None else None


BLOCK = 100_000  # rows that are put in order together
SLICE = 10_000  # rows that are Python objects at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPairCandidate(ScoredCaption):
    """A row of a table of negative captions. negative_key: its key there."""

    negative_key: str

    @property
    def media_names(self) -> tuple[str, ...]:
        return (self.image,)


class TextPairGenerator(StageGenerator[TextPairs]):
    """A text pair a row; those of an image are a group."""

    version = 2
    libraries = ("numpy", "pillow")

    def __init__(self, source: TextPairs, context: Context) -> None:
        super().__init__(source, context)
        self._scores = columns_of(source.scores)
        self.numbers = self._scores[len(TEXT_SCORES) :]
        self._candidate = self.candidate = with_scores(TextPairCandidate, self._scores)
        self._images = ImageFiles(source.images, upright=True) if source.images is not None else None

    def plan(self) -> Iterator[Candidate]:
        """Images in the order in which they first come in the table; pairs of an image in the table's order.

        Raises `WrongUse` when images are asked for that no row names.
        """
        self._training.check(self.name)
        named = self._images is None
        for row in self._rows():
            image = looked_for_by(row["image"], row["image_id"])
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
        identified = self.identified(*json.loads(row["identity"]), group=row["image_id"], shows=(Terms.of(row),))
        candidate: TextPairCandidate = self._candidate(
            **{**identified, "split": self._training.of(row["image_id"] or row["caption"], image)},
            **{**{name: row[name] for name in COLUMNS.names}, "image": image, **scores_in(row, self._scores)},
            negative_key=row["key"],
        )
        return candidate

    @cached_property
    def _training(self) -> TrainingSplit:
        return TrainingSplit(self.source.train, self.split, self.seed, self.source.held_out)

    def inputs(self) -> str:
        return joined(super().inputs(), self._training)

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the table image by image.

        Memory holds a number a row, and where the images are scattered `BLOCK` rows or those of an image.
        """
        there = self.earlier.columns()
        columns = [
            "key",
            "identity",
            *TERMS,
            *COLUMNS.names,
            *(name for name in TEXT_SCORES if name in there),
            *self.numbers,
        ]
        codes, blocks = self._images_in_blocks()
        if (codes[1:] >= codes[:-1]).all():
            for batch in self.earlier.batches(columns):
                for start in range(0, len(batch), SLICE):
                    yield from batch.slice(start, SLICE).to_pylist()
            return
        for first, last in blocks:
            chosen = (codes >= first) & (codes < last)
            whole = pa.Table.from_batches(self.earlier.batches(columns, None if chosen.all() else chosen))
            order = np.argsort(codes[chosen], kind="stable")
            for batch in whole.take(pa.array(order)).to_batches(max_chunksize=SLICE):
                yield from batch.to_pylist()

    def _images_in_blocks(self) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
        """The number of each row's image, by first occurrence, and ranges of numbers that have some `BLOCK` rows.

        Rows without an image id that are read together count as of one image.
        """
        known: dict[str, int] = {}
        parts = [np.empty(0, np.int32)]
        for number, batch in enumerate(self.earlier.batches(["image_id"])):
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
                **one.placed,
                image=image,
                caption=one.caption,
                negative_caption=one.negative_caption,
                type=one.type,
                subtype=one.subtype,
                image_id=one.image_id,
                provenance={"caption_id": one.caption_id, "image_id": one.image_id, "negative_key": one.negative_key},
                scores=one.scores(),
            )
