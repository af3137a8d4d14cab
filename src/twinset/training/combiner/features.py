"""Batches of features of a frozen encoder: each image and each text is encoded once, and kept in a store."""

from collections.abc import Iterable, Sequence

import torch

from twinset.contracts.errors import BuildFailed
from twinset.evaluation.examples import Matching
from twinset.evaluation.features.similarities import ByFeatures
from twinset.training.combiner.data import picture
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import order
from twinset.training.runs.processes import Process

PASS = 32  # images or texts of a pass of an encoder that is not trained, as `twinset eval run` has it by default


class FeatureBatches(Batches):
    """As `Batches`, of features: images and texts are (n, d) float32, not normalised.

    Args:
        features: of an encoder; what their store lacks is encoded with the batch that reads it.
    """

    def __init__(
        self, examples: ExampleSet, features: ByFeatures, batch: int, seed: int, roles: Sequence[str], process: Process
    ) -> None:
        # Nothing is decoded or tokenized in a batch.
        super().__init__(examples, None, None, batch, seed, roles, 0, process.rank, process.world)  # type: ignore[arg-type]
        self._features = features

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs. Raises `BuildFailed`: an image cannot be read."""
        epoch, place = divmod(step, self.steps_per_epoch)
        numbers = order(len(self.examples), self.seed, epoch)[place * self.batch :][self._mine.start : self._mine.stop]
        return self.of(numbers.tolist(), step)

    def of(self, numbers: Iterable[int], step: int = 0) -> Batch:
        """Some examples as a batch."""
        examples = [self.examples[number] for number in numbers]
        images = {role: [picture(self.examples, example, role) for example in examples] for role in self.image_roles}
        texts = {role: [example.texts[role] for example in examples] for role in self.text_roles}
        shown = zip(*images.values(), strict=True) if images else [()] * len(examples)
        all_captions = zip(*texts.values(), strict=True)
        asked = [
            Matching(key=str(number), subset="", group="", images=pictures, captions=captions)
            for number, (pictures, captions) in enumerate(zip(shown, all_captions, strict=True))
        ]
        for problem in self._features.prepare(asked).values():
            raise BuildFailed(f"{problem.where}: {problem.reason}; run the build of its dataset again, then resume")
        return Batch(
            step=step,
            epoch=step // self.steps_per_epoch,
            keys=tuple(example.key for example in examples),
            groups=tuple(example.group for example in examples),
            images={role: torch.from_numpy(self._features.features(pictures)) for role, pictures in images.items()},
            texts={role: torch.from_numpy(self._features.features(captions)) for role, captions in texts.items()},
        )
