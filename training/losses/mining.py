"""Nearest neighbours of a data set's images, and hard negatives sampled from them: EqBen C, coarse to fine.

1. Coarse: the 128 images most similar to each image, by features of an image encoder.
2. Fine: the matching head scores each image with the texts of its 128 neighbours, once before training. All pairs of
   Flickr30K would take weeks; these take an hour.
3. In each step an image gets 15 negatives: the 8 neighbours of the highest score, which are "close", and 7 at random.

NegCLIP (Yuksekgonul et al. 2023, section 4) samples one of the 3 nearest images of each image into its batch.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from twinset.manifests.errors import WrongUse
from twinset.models.loading import saving
from twinset.shards.storage.whole_file import whole_file
from twinset.training.losses.names import HARD, NEGATIVES, NEIGHBOURS

#: Places of images and of texts, each int64 (pairs,) → log-odds that they match, (pairs,).
Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Each image's nearest images, best first, after the fine step.

    Attributes:
        places: of the neighbours, int64, shape (n, k); never the image itself.
        scores: log-odds that the image matches its neighbour's text, float32, shape (n, k), descending.
        examples: digest of the examples that places count, and of the models.
        left_out: number in the data, place and reason, of each example that could not be read: no place counts these.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float32]
    examples: str
    left_out: tuple[tuple[int, str, str], ...] = ()

    def save(self, path: Path) -> None:
        """Write a safetensors file, whole or not at all."""
        with whole_file(path) as beside, saving(path):
            said = {"examples": self.examples, "left_out": json.dumps(self.left_out)}
            save_file({"places": self.places, "scores": self.scores}, beside, said)


def load_neighbours(path: Path, examples: str) -> Neighbours:
    """Read what `Neighbours.save` wrote. Raises `WrongUse`: the file cannot be read, or its places count other
    examples.
    """
    try:
        with safe_open(path, "np") as file:
            said = file.metadata()
            left_out = tuple((int(number), where, why) for number, where, why in json.loads(said["left_out"]))
            found = Neighbours(file.get_tensor("places"), file.get_tensor("scores"), said["examples"], left_out)
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: not a file of neighbours ({error}); score them again") from error
    if found.examples != examples:
        raise WrongUse(f"{path}: made of other examples than those that are trained on; score neighbours again")
    return found


#: Labels of n examples, int64, (kinds, n), such as which image and which text they have. Two that share a label of any
#: kind match each other too: they are no negatives.
Labels = NDArray[np.int64]


def negatives_of_all(labels: Labels) -> int:
    """Number of negatives that there are for every example, at least."""
    alike = sum(np.bincount(one)[one] for one in labels) - (len(labels) - 1)
    return int(labels.shape[1] - np.max(alike))


def nearest(features: Tensor, k: int = NEIGHBOURS, rows: int = 1024, labels: Labels | None = None) -> Tensor:
    """The k images most similar to each image, best first.

    Args:
        features: of norm 1, shape (n, d).
        k: neighbours; at most n − 1 exist.
        rows: compared at a time, so that memory is rows · n numbers.
        labels: those that share one are not neighbours; without any, an image is only not its own.

    Returns:
        Places, int64, shape (n, min(k, n − 1)); with labels at most `negatives_of_all`.
    """
    found, labels = [], np.arange(len(features))[None] if labels is None else labels
    k, kinds = min(k, negatives_of_all(labels)), torch.from_numpy(labels).to(features.device)
    for start in range(0, len(features), rows):
        cosines = features[start : start + rows].float() @ features.float().T
        for one in kinds:
            cosines[one[start : start + rows, None] == one] = -torch.inf
        found.append(cosines.topk(k, dim=1).indices)
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
    labels: Labels | None = None,
) -> tuple[Tensor, Tensor]:
    """Negatives of some images: their ``hard`` best neighbours, and others at random.

    Args:
        labels: as `nearest` had them; `negatives_of_all` is at least ``negatives``.

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
        own = row if labels is None else np.flatnonzero((labels == labels[:, row, None]).any(axis=0))
        taken = np.union1d(places[place, :hard], own)
        # The i-th example that is not taken: i, moved up by one for each taken one at or below it.
        free = rng.choice(n - len(taken), negatives - hard, replace=False)
        places[place, hard:] = free + np.searchsorted(taken - np.arange(len(taken)), free, side="right")
    close = np.zeros(places.shape, bool)
    close[:, :hard] = True
    return torch.from_numpy(places), torch.from_numpy(close)
