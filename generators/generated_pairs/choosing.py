"""Which of the k images of a caption is taken, and which captions are ambiguous (BiVLC, section 3.2, steps 3 and 4).

Where people have not decided, the verification's scores stand in for them. The result depends on neither the order of
the rows nor on other captions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from twinset.manifests.errors import WrongUse

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of each row. chosen: it is the image of its caption. ambiguous: it would be, but also fits the
    caption that it must not show."""

    chosen: Bools
    ambiguous: Bools


def best_of(captions: Sequence[str] | Ints, scores: Floats, numbers: Ints) -> Ints:
    """The row of the best image of each caption, in the order in which captions first occur.

    Args:
        captions: ids; rows of one id are images of one caption.
        scores: how well an image shows its caption, 0 to 1; NaN loses to any number.
        numbers: of the images of a caption; of equal scores the smallest number is taken.

    Raises:
        WrongUse: the shapes differ, or two images of a caption have one number.
    """
    if not len(captions) == len(scores) == len(numbers):
        raise WrongUse(f"choose: {len(captions)} captions, {len(scores)} scores, {len(numbers)} numbers; give as many")
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
) -> Choice:
    """The best image of each caption by `best_of`, unless it `is_ambiguous`."""
    best = best_of(captions, scores, numbers)
    chosen, ambiguous = (np.zeros(len(captions), np.bool_) for _ in range(2))
    fits_both = is_ambiguous(scores[best], originals[best], limit, compared)
    chosen[best[~fits_both]] = True
    ambiguous[best[fits_both]] = True
    return Choice(chosen, ambiguous)
