"""Which image goes with which negative caption: tables of earlier stages joined as columns, some 100 bytes a row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS
from twinset.shards.finished_stage import FinishedStage

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Key of an image, or name of a photo; tar and sha256, both empty for a photo.
ImagePlace = tuple[str, str, str]


def best_of(captions: Sequence[str] | Ints, scores: Floats, numbers: Ints) -> Ints:
    """The row of the best image of each caption, in the order in which captions first occur.

    Args:
        captions: ids; rows of one id are images of one caption.
        scores: how well an image shows its caption, 0 to 1; NaN loses to any number.
        numbers: of the images of a caption; of equal scores the smallest number is taken.

    Raises:
        WrongUse: two images of a caption have one number.
    """
    if not len(captions):
        return np.zeros(0, np.int64)
    code = pc.dictionary_encode(pa.array(captions)).indices.to_numpy()
    # Last key first: by caption, then by score from the highest (NaN is sorted to the end), then by number.
    order = np.lexsort((numbers, -scores, code))
    sorted_codes = code[order]
    begins = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
    pairs = np.stack([code, np.asarray(numbers)], axis=1)
    if len(np.unique(pairs, axis=0)) < len(pairs):
        raise WrongUse("choose: two images of a caption have the same number; name one stage of images")
    return np.asarray(order[begins], np.int64)  # codes count captions as they first occur


def is_ambiguous(scores: Floats, originals: Floats, limit: float | None = 1.0, compared: bool = True) -> Bools:
    """Whether an image also fits the original caption, which must be wrong of it.

    Args:
        scores: by the caption that an image was generated from.
        originals: by the original caption; NaN where nothing could be asked, which is not ambiguous.
        limit: an image is ambiguous whose original score is at least this; None for no limit.
        compared: whether one is that scores at least as well by the original as by its own caption.
    """
    found = np.zeros(len(scores), np.bool_)
    if limit is not None:
        found |= originals >= limit
    if compared:
        found |= originals >= scores
    return found


def choose(
    captions: Sequence[str] | Ints,
    scores: Floats,
    originals: Floats,
    numbers: Ints,
    limit: float | None = 1.0,
    compared: bool = True,
) -> tuple[Ints, Ints]:
    """Rows of the best images of captions by `best_of`: of those that are not `is_ambiguous`, and of those that are.

    Where people have not decided, the verification's scores stand in for them (BiVLC, section 3.2, steps 3 and 4). The
    result depends on neither the order of the rows nor on other captions.
    """
    best = best_of(captions, scores, numbers)
    fits_both = is_ambiguous(scores[best], originals[best], limit, compared)
    return best[~fits_both], best[fits_both]


NONE = -1
BLOCK = 250_000  # images that are looked at together
#: The identity of an image: that of its negative caption, the side that it was generated from, and a number.
_IDENTITY = r'^(?P<own>.*),"(?P<side>caption|negative_caption)",(?P<number>\d+)\]$'


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one side, in the order of their stage.

    keys, tars: where they lie. sha256s: of their files. negatives: the row of each one's negative caption. numbers:
    among those of its caption. terms: columns `TERMS`.
    """

    keys: pa.Array
    tars: pa.Array
    sha256s: pa.Array
    negatives: Ints
    numbers: Ints
    terms: pa.Table

    def __len__(self) -> int:
        return len(self.negatives)

    def places(self) -> list[ImagePlace]:
        """Of each image."""
        return list(zip(*(one.to_pylist() for one in (self.keys, self.tars, self.sha256s)), strict=True))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The image of each negative caption, by its row. image: its place in `Images`, `NONE` where it has none.

    ambiguous: whether it has none because the best one fits the original caption too. score, original: of each image of
    `Images`; NaN without verification, or where nothing could be asked.
    """

    image: Ints
    ambiguous: Bools
    score: Floats
    original: Floats


def images_of(earlier: FinishedStage, negatives: pa.Table, side: str) -> Images:
    """Images that were generated from the captions of a side; those of other captions are left out.

    Args:
        earlier: the stage of images.
        negatives: columns ``identity`` and that of the side, all rows.

    Raises:
        WrongUse: one has no image.
    """
    parts, known = [], pc.cast(negatives["identity"], pa.large_string()).combine_chunks()
    captions = negatives[side].cast(pa.large_string()).combine_chunks()
    for block in _blocks(earlier.batches(("key", "identity", "tar", "caption", "image_sha256", *TERMS))):
        read = pc.extract_regex(block["identity"], _IDENTITY)
        own = pc.binary_join_element_wise(pc.struct_field(read, "own"), "]", "").cast(pa.large_string())
        rows = pc.index_in(own, known)
        same = pc.equal(pc.take(captions, rows), block["caption"].cast(pa.large_string()))
        wanted = pc.fill_null(pc.and_(same, pc.equal(pc.struct_field(read, "side"), side)), False)
        found = block.append_column("row", rows).append_column("number", pc.struct_field(read, "number"))
        parts.append(found.filter(wanted).select(["key", "tar", "image_sha256", "row", "number", *TERMS]))
    if not parts:
        nothing = pa.array([], pa.string())
        terms = pa.table(dict.fromkeys(TERMS, nothing))
        return Images(nothing, nothing, nothing, np.zeros(0, np.int64), np.zeros(0, np.int64), terms)
    table = pa.concat_tables(parts)
    lacking = table.filter(pc.equal(table["image_sha256"], ""))["key"]
    if len(lacking):
        raise WrongUse(f"{earlier.where}: {lacking[0]} has no image; name a stage that draws")
    keys, tars, sha256s = (table[name].combine_chunks() for name in ("key", "tar", "image_sha256"))
    return Images(keys, tars, sha256s, _numbers(table["row"]), _numbers(table["number"]), table.select(TERMS))


def first_images(images: Images, negatives: int) -> Ints:
    """The image with the smallest number of each negative caption, by its row; `NONE` without one.

    Args:
        negatives: how many there are.
    """
    found = np.full(negatives, NONE, np.int64)
    best = best_of(images.negatives, np.zeros(len(images)), images.numbers)
    found[images.negatives[best]] = best
    return found


def best_images(
    images: Images, negatives: int, verified: FinishedStage | None, limit: float | None, compared: bool
) -> Chosen:
    """As `generators.generated_pairs.joining.choose`; the first image of each where nothing was verified."""
    ambiguous = np.zeros(negatives, np.bool_)
    score, original, scored = scores_of(images, verified)
    if verified is None:
        return Chosen(first_images(images, negatives), ambiguous, score, original)
    owners = images.negatives[scored]
    chosen, both = choose(owners, score[scored], original[scored], images.numbers[scored], limit, compared)
    image = np.full(negatives, NONE, np.int64)
    image[owners[chosen]] = scored[chosen]
    ambiguous[owners[both]] = True
    return Chosen(image, ambiguous, score, original)


def decided_images(images: Images, negatives: pa.Table, decisions: FinishedStage) -> Ints:
    """The image of each negative caption by people's decisions; `NONE` where they dropped it or were not asked.

    Args:
        negatives: column ``identity``, all rows.
        decisions: a stage of decisions about these captions and images.

    Returns:
        The place of the image in `Images`.

    Raises:
        WrongUse: a decision is about an image that is not there, or was made again since.
    """
    made = decisions.read(["identity", "image_key", "image_sha256"])
    captions = pc.index_in(made["identity"].combine_chunks(), negatives["identity"].combine_chunks())
    places = pc.index_in(made["image_key"].combine_chunks(), images.keys)
    same = pc.equal(pc.take(images.sha256s, places), made["image_sha256"].combine_chunks())
    known = pc.and_(captions.is_valid(), pc.fill_null(same, False)).to_numpy(zero_copy_only=False)
    if not known.all():
        key = made["image_key"][int(np.flatnonzero(~known)[0])].as_py()
        raise WrongUse(
            f"{decisions.where}: decides about the image {key!r}, which is not among these images, or was made again; "
            "name stages that were made from each other, and run the build of the decisions again"
        )
    found = np.full(len(negatives), NONE, np.int64)
    found[_numbers(captions)] = _numbers(places)
    return found


def scores_of(images: Images, verified: FinishedStage | None) -> tuple[Floats, Floats, Ints]:
    """How well each image shows the caption that it was generated from, and the other one.

    Returns:
        Two scores an image, 0 to 1, NaN where there is none, and the numbers of the images that were scored.
    """
    score, original = (np.full(len(images), np.nan) for _ in range(2))
    if verified is None:
        return score, original, np.zeros(0, np.int64)
    table = verified.read(["image_key", "caption_score", "original_score"])
    rows = pc.index_in(images.keys, table["image_key"].combine_chunks())
    scored = np.flatnonzero(rows.is_valid().to_numpy(zero_copy_only=False))
    at = pa.array(_numbers(rows.drop_null()))
    score[scored], original[scored] = (
        table[name].take(at).cast(pa.float64()).to_numpy() for name in ("caption_score", "original_score")
    )
    return score, original, scored


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to some `BLOCK` rows: a table that rows are looked up in is hashed once for each."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= BLOCK:
            yield pa.Table.from_batches(held).combine_chunks()
            held = []
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _numbers(values: Any) -> npt.NDArray[np.int64]:
    return np.asarray(pc.cast(values, pa.int64()).to_numpy(zero_copy_only=False), np.int64)
