"""Hard negatives of a data set's images, and negatives sampled from them: EqBen C, coarse to fine.

The matching head scores each image with all texts of its 128 neighbours, once before training: all pairs of Flickr30K
would take weeks, these take an hour. docs/training.md has the steps.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from twinset.training.losses.names import ABSENT

#: Places of images and of texts, each int64 (pairs,) → log-odds that they match, (pairs,).
Score = Callable[[Tensor, Tensor], Tensor]
#: The texts of each image's nearest images: places of examples with these texts, int64, shape (images, k), then
#: `ABSENT` where an image has fewer; never one that matches the image too.
Neighbours = NDArray[np.int64]
#: Labels of n examples, int64, (kinds, n), such as which image and which text they have. Two that share a label of any
#: kind match each other too: they are no negatives.
Labels = NDArray[np.int64]


def negatives_of_all(labels: Labels) -> int:
    """Number of negatives that there are for every example, at least."""
    alike = sum(np.bincount(numbers)[numbers] for numbers in labels) - (len(labels) - 1)
    return int(labels.shape[1] - np.max(alike))


def texts_of_neighbours(near: NDArray[np.int32], labels: Labels) -> Neighbours:
    """Neighbours in the order of the nearest images, all texts of an image after each other.

    Args:
        near: numbers of the nearest images of each image, best first, then `ABSENT`; (images, k).
        labels: number of each example's image, and of its text, (2, n).
    """
    by_image = np.argsort(labels[0], kind="stable")
    parts = np.split(by_image, np.cumsum(np.bincount(labels[0], minlength=len(near)))[:-1])
    rows = []
    for own, images in zip(parts, near, strict=True):
        examples = np.concatenate([by_image[:0], *(parts[image] for image in images if image != ABSENT)])
        rows.append(examples[~np.isin(labels[1, examples], labels[1, own])])
    places = np.full((len(near), max(map(len, rows))), ABSENT, np.int64)
    for row, examples in zip(places, rows, strict=True):
        row[: len(examples)] = examples
    return places


def score_neighbours(score: Score, places: Neighbours, labels: Labels, most: int) -> Neighbours:
    """Neighbours ordered by how well the matching head says that they match an image.

    Args:
        score: the matching head, of places of examples with an image and with a text.
        places, labels: as `texts_of_neighbours` gives and takes them.
        most: pairs that are scored at a time; of one image at least.
    """
    firsts = np.unique(labels[0], return_index=True)[1]
    images, slots = np.nonzero(places != ABSENT)
    scores = np.full(places.shape, -np.inf, np.float32)
    at_a_time = max(1, most // places.shape[1]) * places.shape[1]
    with torch.no_grad():
        for start in range(0, len(images), at_a_time):
            entries = images[start : start + at_a_time], slots[start : start + at_a_time]
            pairs = torch.from_numpy(firsts[entries[0]]), torch.from_numpy(places[entries])
            scores[entries] = score(*pairs).float().cpu().numpy()
    return np.take_along_axis(places, np.argsort(-scores, axis=1, kind="stable"), 1)


def sample_negatives(
    neighbours: Neighbours,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    negatives: int,
    hard: int,
    labels: Labels,
) -> tuple[Tensor, Tensor]:
    """Negatives of some examples: the ``hard`` best texts of their image's neighbours, and others at random.

    Args:
        labels: as `texts_of_neighbours` has them. `negatives_of_all` is at least ``negatives``, and each image has
            ``hard`` neighbours or more.

    Returns:
        places: of examples, distinct, of another image and text, int64, shape (rows, negatives); the hard ones first.
        close: whether each is one of the hard ones, bool, shape (rows, negatives).
    """
    places = np.empty((len(rows), negatives), np.int64)
    places[:, :hard] = neighbours[labels[0, rows], :hard]
    for place, row in enumerate(rows):
        taken = (labels == labels[:, row, None]).any(axis=0)
        taken[places[place, :hard]] = True
        places[place, hard:] = rng.choice(np.flatnonzero(~taken), negatives - hard, replace=False)
    close = np.arange(negatives) < np.full((len(rows), 1), hard)
    return torch.from_numpy(places), torch.from_numpy(close)
