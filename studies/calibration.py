"""A threshold of the score, from images that people have judged."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinset.contracts.errors import WrongUse

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold below which images are rejected, and what that does to the judged ones.

    good_kept, bad_rejected, rejected: shares of the good, the bad and all of them; NaN where there are none.
    """

    threshold: float
    good_kept: float
    bad_rejected: float
    rejected: float


def calibrate(scores: Floats, good: Bools, keep: float = 0.95) -> Calibration:
    """The threshold that rejects most of the bad images and keeps enough of the good ones.

    A higher threshold rejects more of both, so it is the highest that keeps enough.

    Args:
        scores: of the images, 0 to 1.
        good: what people decided of each.
        keep: share of the good images that must be kept, above 0.

    Raises:
        WrongUse: nothing was judged good, a score is NaN, or the shapes differ.
    """
    if scores.shape != good.shape or scores.ndim != 1:
        raise WrongUse(f"calibrate: {scores.shape} scores and {good.shape} decisions; give one decision for each score")
    if not 0 < keep <= 1:
        raise WrongUse(f"calibrate: keep is {keep}; it is a share above 0, up to 1")
    if np.isnan(scores).any():
        raise WrongUse("calibrate: a score is NaN; leave images without questions out")
    if not good.any():
        raise WrongUse("calibrate: no image was judged good; judge more of them")
    best_first = np.sort(scores[good])[::-1]
    least = int(np.ceil(keep * len(best_first) - 1e-9))  # good images that must stay; the last of them is the limit
    threshold = float(best_first[least - 1])
    return at_threshold(scores, good, threshold)


def at_threshold(scores: Floats, good: Bools, threshold: float) -> Calibration:
    """What a threshold does to judged images."""
    low = scores < threshold
    bad_rejected = float(low[~good].mean()) if (~good).any() else float("nan")
    good_kept = float((~low[good]).mean()) if good.any() else float("nan")
    return Calibration(threshold, good_kept, bad_rejected, float(low.mean()))
