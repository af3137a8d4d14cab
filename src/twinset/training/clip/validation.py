"""Figures by which the best weights are chosen, on examples that share no group with training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

TWINS = ("image", "text", "negative_image", "negative_text")
#: What `twin_figures` gives, for cards.
FIGURES = "text, image, group: EqBen's scores on twins, as means of groups of examples."


def batch_size(examples: int, largest: int) -> int:
    """The largest size up to ``largest`` that leaves out less than one example a batch.

    In-batch accuracy depends on the size of a batch, so all have one size. It is at least 2: the only text of a batch
    is always the right one. Raises `WrongUse`: there is one example.
    """
    if examples < 2:
        raise WrongUse("validation: one example, whose text is always the right one; name more validation data")
    return max(2, examples // -(-examples // largest))


def twin_figures(scores: Any, groups: Sequence[str]) -> dict[str, float]:
    """Text, image and group score (EqBen 5.1) in percent, first the mean of each group of examples (an image, a video,
    a scene), then the mean of the groups, so that none counts for more.

    Args:
        scores: of image i and text j of n twins, shape (2, 2, n); nothing but strict ``>`` is right.
        groups: n names.
    """
    text = (scores[0][0] > scores[0][1]) & (scores[1][1] > scores[1][0])
    image = (scores[0][0] > scores[1][0]) & (scores[1][1] > scores[0][1])
    return {
        "text": mean_of_groups(text, groups),
        "image": mean_of_groups(image, groups),
        "group": mean_of_groups(text & image, groups),
    }


def mean_of_groups(right: NDArray[np.bool_], groups: Sequence[str]) -> float:
    """The mean over groups of each group's own mean, in percent. right: (n,); groups: n names."""
    _, numbers = np.unique(np.array(groups, dtype=object), return_inverse=True)
    means = np.bincount(numbers, right) / np.bincount(numbers)
    return 100 * float(means.mean())
