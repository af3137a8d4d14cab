"""What a drawn pair is rejected for, only what is plainly broken, and what is measured for people to judge by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shards.kinds.samples import Pixels

LEVELS = 255  # of a colour channel


def broken(image0: Pixels, image1: Pixels, finite: bool) -> str:
    """The reason why a pair cannot be used whatever its captions say, or "". Images are (height, width, 3).

    No limit is drawn that a good picture could fall short of: a picture is ``blank`` when all its pixels are equal, and
    a pair ``identical`` when no pixel differs.
    """
    if not finite:
        return "not-finite"
    if any((image == image[0, 0]).all() for image in (image0, image1)):
        return "blank"
    return "identical" if np.array_equal(image0, image1) else ""


def similarity(image0: Pixels, image1: Pixels, region: NDArray[np.bool_]) -> dict[str, float]:
    """How much of the picture the edited thing takes, and how alike the two images are within and without.

    region: (height, width), where the words that name the edited thing have their attention; everywhere for an edit of
    the whole picture. Gives ``region`` (its share of the picture, 0-1), ``similarity_inside`` and
    ``similarity_outside``: 1 less the mean absolute difference of colour channels as a share of their range, so that 1
    is equal; 1 also where there is nothing to compare. A good edit of a thing is less alike inside than outside; an
    edit that hardly changes the inside has failed. Sums are whole numbers: the same on every machine for the same
    images.
    """
    differences = np.abs(image0.astype(np.int16) - image1.astype(np.int16)).sum(axis=2, dtype=np.int64)
    return {
        "region": float(region.mean()),
        "similarity_inside": _similarity(differences[region]),
        "similarity_outside": _similarity(differences[~region]),
    }


def _similarity(differences: NDArray[np.int64]) -> float:
    return 1 - int(differences.sum()) / (differences.size * 3 * LEVELS) if differences.size else 1.0
