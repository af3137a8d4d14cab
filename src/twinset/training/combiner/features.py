"""Batches of features of a frozen encoder: each image and each text is encoded once, and kept in a store."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from twinset.contracts.errors import BuildFailed
from twinset.evaluation.examples import Matching
from twinset.evaluation.features.similarities import ByFeatures
from twinset.training.combiner.data import picture
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet
from twinset.training.runs.processes import Process

PASS = 32  # images or texts of a pass of an encoder that is not trained, as `twinset eval run` has it by default
WINDOW = 1024  # examples that are encoded together


class FeatureBatches(Batches):
    """As `Batches`, of features: images and texts are (n, d) float32, not normalised.

    Args:
        features: of an encoder. The first process encodes what they lack; the others find it in their store.

    Raises:
        BuildFailed: an image cannot be read.
    """

    def __init__(
        self, examples: ExampleSet, features: ByFeatures, batch: int, seed: int, roles: Sequence[str], process: Process
    ) -> None:
        # Nothing is decoded or tokenized in a batch.
        super().__init__(examples, None, None, batch, seed, roles, 0, process.rank, process.world)  # type: ignore[arg-type]
        self._features = features
        if not process.is_first:
            process.wait()
        encode(examples, features, roles)
        if process.is_first:
            process.wait()

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.steps_per_epoch)
        numbers = self._in_order(epoch)[place * self.batch :][self._mine.start : self._mine.stop].tolist()
        examples = [self.examples[number] for number in numbers]
        return Batch(
            step=step,
            epoch=epoch,
            keys=tuple(example.key for example in examples),
            groups=tuple(example.group for example in examples),
            images=read_features(self.examples, self._features, self.image_roles, numbers),
            texts=read_features(self.examples, self._features, self.text_roles, numbers),
        )


def encode(examples: ExampleSet, features: ByFeatures, roles: Sequence[str]) -> None:
    """Have features of all examples in the store. Raises `BuildFailed`: an image cannot be read."""
    for start in range(0, len(examples), WINDOW):
        window = [examples[number] for number in range(start, min(start + WINDOW, len(examples)))]
        matchings = [
            Matching(
                key=str(number),
                subset="",
                group="",
                images=tuple(picture(examples, example, role) for role in roles if role in example.images),
                captions=tuple(example.texts[role] for role in roles if role in example.texts),  # type: ignore[arg-type]
            )
            for number, example in enumerate(window)
        ]
        for problem in features.prepare(matchings).values():
            raise BuildFailed(f"{problem.where}: {problem.reason}; run the build of its dataset again, then resume")


def read_features(
    examples: ExampleSet, features: ByFeatures, roles: Sequence[str], numbers: Iterable[int]
) -> Mapping[str, torch.Tensor]:
    """Features by role of some examples, (n, d) float32, not normalised."""
    chosen = [examples[number] for number in numbers]
    return {
        role: torch.from_numpy(
            features.features(
                [picture(examples, example, role) for example in chosen]
                if role in chosen[0].images
                else [example.texts[role] for example in chosen]
            )
        )
        for role in roles
    }
