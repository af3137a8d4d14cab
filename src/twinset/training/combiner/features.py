"""Batches of features of a frozen encoder: each image and each text is encoded once, and kept in a store."""

from collections.abc import Sequence
from typing import Any

import torch

from twinset.contracts.errors import BuildFailed
from twinset.evaluation.examples import Matching
from twinset.evaluation.features.similarities import ByFeatures
from twinset.training.combiner.data import picture
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.contracts import Example
from twinset.training.examples.example_set import ExampleSet
from twinset.training.runs.processes import Process

WINDOW = 1024  # examples that are encoded together


class FeatureBatches(Batches):
    """As `Batches`, of features: images and texts are (n, d) float32, not normalised.

    Args:
        roles: two of images or none, and one or two of texts.
        features: of an encoder. The first process encodes what they lack; the others find it in their store.

    Raises:
        BuildFailed: an image cannot be read.
    """

    def __init__(
        self, examples: ExampleSet, features: ByFeatures, batch: int, seed: int, roles: Sequence[str], process: Process
    ) -> None:
        super().__init__(examples, None, None, batch, seed, roles, 0, process.rank, process.world)
        self._features = features
        if not process.is_first:
            process.wait()
        for start in range(0, len(examples), WINDOW):
            self._encode([examples[number] for number in range(start, min(start + WINDOW, len(examples)))])
        if process.is_first:
            process.wait()

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs."""
        examples = [self.examples[number] for number in self.numbers(step)]
        images = {role: [picture(self.examples, example, role) for example in examples] for role in self.image_roles}
        texts = {role: [example.texts[role] for example in examples] for role in self.text_roles}
        return Batch(
            step=step,
            epoch=step // self.steps_per_epoch,
            keys=tuple(example.key for example in examples),
            groups=tuple(example.group for example in examples),
            images={role: torch.from_numpy(self._features.features(shown)) for role, shown in images.items()},
            texts={role: torch.from_numpy(self._features.features(said)) for role, said in texts.items()},
        )

    def _encode(self, examples: Sequence[Example]) -> None:
        matchings = [
            Matching(
                key=str(number),
                subset="",
                group="",
                images=tuple(picture(self.examples, example, role) for role in self.image_roles),
                captions=tuple(example.texts[role] for role in self.text_roles),
            )
            for number, example in enumerate(examples)
        ]
        for unusable in self._features.prepare(matchings).values():
            raise BuildFailed(
                f"{unusable.where}: {unusable.reason}; fetch this tar again or run its build again, then resume"
            )
