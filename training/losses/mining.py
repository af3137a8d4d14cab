"""Nearest neighbours of a data set's images, and hard negatives sampled from them: EqBen C, coarse to fine.

1. Coarse: the 128 images most similar to each image, by features of an image encoder.
2. Fine: the matching head scores each image with the texts of its 128 neighbours, once before training. All pairs of
   Flickr30K would take weeks; these take an hour.
3. In each step an image gets 15 negatives: the 8 neighbours of the highest score, which are "close", and 7 at random.

NegCLIP (Yuksekgonul et al. 2023, section 4) samples one of the 3 nearest images of each image into its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from manifests.errors import WrongUse
from shards.storage.whole_file import whole_file

NEIGHBOURS, NEGATIVES, HARD = 128, 15, 8

#: Places of images and of texts, each int64 (pairs,) → log-odds that they match, (pairs,).
Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Each image's nearest images, best first, after the fine step.

    Attributes:
        places: of the neighbours, int64, shape (n, k); never the image itself.
        scores: log-odds that the image matches its neighbour's text, float32, shape (n, k), descending.
        examples: digest of the examples that places count.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float32]
    examples: str

    def save(self, path: Path) -> None:
        """Write a safetensors file, whole or not at all."""
        with whole_file(path) as beside:
            save_file({"places": self.places, "scores": self.scores}, beside, {"examples": self.examples})


def load_neighbours(path: Path, examples: str) -> Neighbours:
    """Read what `Neighbours.save` wrote.

    Raises:
        WrongUse: the file cannot be read, or its places count other examples.
    """
    try:
        with safe_open(path, "np") as file:
            found = Neighbours(file.get_tensor("places"), file.get_tensor("scores"), file.metadata()["examples"])
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise WrongUse(f"{path}: not a file of neighbours ({error}); score them again") from error
    if found.examples != examples:
        raise WrongUse(f"{path}: made of other examples than those that are trained on; score neighbours again")
    return found


def nearest(features: Tensor, k: int = NEIGHBOURS, rows: int = 1024) -> Tensor:
    """The k images most similar to each image, best first.

    Args:
        features: of norm 1, shape (n, d).
        k: neighbours; at most n − 1 exist.
        rows: compared at a time, so that memory is rows · n numbers.

    Returns:
        Places, int64, shape (n, min(k, n − 1)); no image is its own neighbour.
    """
    found = []
    for start in range(0, len(features), rows):
        cosines = features[start : start + rows].float() @ features.float().T
        own = torch.arange(len(cosines), device=cosines.device)
        cosines[own, own + start] = -torch.inf
        found.append(cosines.topk(min(k, len(features) - 1), dim=1).indices)
    return torch.cat(found)


def score_neighbours(score: Score, places: Tensor, examples: str, pairs: int = 256) -> Neighbours:
    """Order neighbours by how well the matching head says that their texts match the image.

    Args:
        score: the matching head. Text i is the one that describes image i.
        places: of the neighbours, shape (n, k), as `nearest` gives them.
        examples: digest of the examples.
        pairs: scored at a time.
    """
    images, texts = torch.arange(len(places)).repeat_interleave(places.shape[1]), places.flatten().cpu()
    parts = []
    with torch.no_grad():
        for start in range(0, len(images), pairs):
            parts.append(score(images[start : start + pairs], texts[start : start + pairs]).float().cpu())
    ordered = torch.cat(parts).view(places.shape).sort(dim=1, descending=True, stable=True)
    return Neighbours(places.cpu().gather(1, ordered.indices).numpy(), ordered.values.numpy(), examples)


def sample_negatives(
    neighbours: Neighbours,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    negatives: int = NEGATIVES,
    hard: int = HARD,
) -> tuple[Tensor, Tensor]:
    """Negatives of some images: their ``hard`` best neighbours, and others at random.

    Returns:
        places: distinct, never the image itself, int64, shape (rows, negatives); the hard ones first.
        close: whether each is one of the hard ones, bool, shape (rows, negatives).

    Raises:
        WrongUse: there are not enough neighbours, or examples.
    """
    n, k = neighbours.places.shape
    if not 0 <= hard <= min(negatives, k) or negatives > n - 1:
        raise WrongUse(
            f"{negatives} negatives, {hard} of them hard: there are {k} neighbours and {n - 1} other examples"
        )
    places = np.empty((len(rows), negatives), np.int64)
    places[:, :hard] = neighbours.places[rows, :hard]
    for place, row in enumerate(rows):
        taken = np.sort(np.append(places[place, :hard], row))
        # The i-th example that is not taken: i, moved up by one for each taken one at or below it.
        free = rng.choice(n - len(taken), negatives - hard, replace=False)
        places[place, hard:] = free + np.searchsorted(taken - np.arange(len(taken)), free, side="right")
    close = np.zeros(places.shape, bool)
    close[:, :hard] = True
    return torch.from_numpy(places), torch.from_numpy(close)
