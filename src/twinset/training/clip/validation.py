"""Figures by which the best weights are chosen, on examples that share no group with training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

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
    _, numbers, sizes = np.unique(np.array(groups, dtype=object), return_inverse=True, return_counts=True)
    rights = {"text": text, "image": image, "group": text & image}
    return {name: 100 * float((np.bincount(numbers, right) / sizes).mean()) for name, right in rights.items()}
