"""Figures by which the best weights are chosen, on examples that share no image with training."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.training.clip.settings import ClipSettings
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.features import Features
from twinset.training.losses.names import OBJECTIVES

TWINS = ("image", "text", "negative_image", "negative_text")


class Validation:
    """Validation data, in batches that stay the same for all of a run.

    In-batch accuracy depends on the size of a batch, so all have one size (`batch_size`).
    """

    def __init__(self, examples: ExampleSet, prepare: Transforms, tokenize: Any, settings: ClipSettings) -> None:
        self._has_twins = all(examples.lacking(role) is None for role in TWINS)
        if settings.best_by == "group" and not self._has_twins:
            raise WrongUse("best_by: group needs validation data of twins (pairs); write accuracy, or name other data")
        roles = TWINS if self._has_twins else OBJECTIVES.find(settings.objective).roles
        if len(examples) < 2:
            raise WrongUse("validation: in-batch accuracy needs at least two examples; name more data")
        size = batch_size(len(examples), settings.batch)
        self._batches = Batches(examples, prepare, tokenize, size, 0, roles, settings.workers)

    def measure(
        self,
        network: Any,
        encode: Callable[[Batch], Features],
        loss: Callable[[Features], tuple[torch.Tensor, dict[str, float]]],
    ) -> dict[str, float]:
        """Figures of the weights as they are now, in percent; the loss as it is.

        ``accuracy``: mean of both directions, over the logits that the objective compares, as BiVLC's code chooses by.
        ``chance``: its value for guesses, where the objective logs it.
        ``text``, ``image``, ``group``: EqBen's scores (section 5.1) for twins; first the mean of each group of
        examples (an image, a video, a scene), then the mean of the groups, so that none counts for more.
        """
        losses, accuracies = [], []
        right: dict[str, list[NDArray[np.bool_]]] = {"text": [], "image": [], "group": []}
        groups: list[str] = []
        with evaluating(network):
            for batch in self._batches.stream(0, self._batches.steps_per_epoch):
                features = encode(batch)
                value, logged = loss(features)
                losses.append(float(value))
                accuracies.append((logged["image_accuracy"] + logged["text_accuracy"]) / 2)
                if self._has_twins:
                    groups += batch.groups
                    for name, flags in twin_outcomes(_cosines(features)).items():
                        right[name].append(flags)
        figures = {"loss": float(np.mean(losses)), "accuracy": 100 * float(np.mean(accuracies))}
        figures |= {"chance": 100 * logged["chance"]} if "chance" in logged else {}
        if self._has_twins:
            figures |= {name: mean_of_groups(np.concatenate(flags), groups) for name, flags in right.items()}
        return figures


def batch_size(examples: int, largest: int) -> int:
    """The largest size up to ``largest`` that leaves out less than one example a batch.

    It is at least 2: the only text of a batch is always the right one.
    """
    return max(2, examples // -(-examples // largest))


def _cosines(features: Any) -> list[list[NDArray[np.float32]]]:
    """Of image i and text j of each pair of twins."""
    images, texts = (features.images, features.negative_images), (features.texts, features.negative_texts)
    return [[(image * text).sum(-1).cpu().numpy() for text in texts] for image in images]


def twin_outcomes(s: Any) -> dict[str, NDArray[np.bool_]]:
    """Of each pair of twins whether text, image and group score count it, as in `evaluation.metrics.matching`.

    Args:
        s: of image i and text j, shape (2, 2, n).
    """
    text = (s[0][0] > s[0][1]) & (s[1][1] > s[1][0])
    image = (s[0][0] > s[1][0]) & (s[1][1] > s[0][1])
    return {"text": text, "image": image, "group": text & image}


def mean_of_groups(right: NDArray[np.bool_], groups: list[str]) -> float:
    """The mean over groups of each group's own mean, in percent. right: (n,); groups: n names."""
    _, numbers = np.unique(np.array(groups, dtype=object), return_inverse=True)
    means = np.bincount(numbers, right) / np.bincount(numbers)
    return 100 * float(means.mean())


@contextlib.contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """A network in inference mode, without gradients."""
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train()
