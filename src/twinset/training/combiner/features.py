"""Batches of features of a frozen encoder: each image and each condition is encoded once, and kept in a store."""

import logging
from collections.abc import Generator, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import Query
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore, text_name
from twinset.evaluation.scorers.composers import Averaged
from twinset.models.encoders.contract import DualEncoder, Floats
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET, Triplets, picture
from twinset.training.examples.batches import MAX_BROKEN, Batch
from twinset.training.examples.ordering import kept_apart, order, whole_batches
from twinset.training.runs.processes import Process

WINDOW = 1024  # triplets that are encoded together
_LOG = logging.getLogger("twinset")
#: Name in the store of what each role of a triplet has.
Names = tuple[bytes, bytes, bytes]


class FeatureBatches:
    """Batches whose images and texts are features, (n, d) float32, not normalised; see `training.examples.Batches`.

    The order of triplets is that of `Batches`, without those that cannot be read: these are left out of all epochs.

    Args:
        triplets: at least one batch.
        encoder: in inference mode.
        store: of its features.
        size: images or texts of a pass of the encoder.
        batch, seed: as `Batches` has them.
        process: it has its part of each batch. The first one encodes; the others find the features in the store.
        max_broken: share of the triplets that may be unreadable.
    """

    def __init__(
        self,
        triplets: Triplets,
        encoder: DualEncoder,
        store: FeatureStore,
        size: int,
        batch: int,
        seed: int,
        process: Process,
        max_broken: float = MAX_BROKEN,
    ) -> None:
        triplets.require((REFERENCE, TARGET, CONDITION))
        self._triplets, self._store, self._batch, self._seed = triplets, store, batch, seed
        self._mine = slice(*(rank * batch // process.world for rank in (process.rank, process.rank + 1)))
        self._names: list[Names] = []
        self._numbers: list[int] = []
        #: Where and why, of each triplet that cannot be read.
        self.left_out: list[tuple[str, str]] = []
        # What prepares queries of an image and a text needs a rule to compose them, though none is composed here.
        if not process.is_first:
            process.wait()
        similarities = ByFeatures(encoder, store, size, Averaged(encoder.name, encoder, 0.5))
        for start in range(0, len(triplets), WINDOW):
            self._encode(range(start, min(start + WINDOW, len(triplets))), similarities)
        if process.is_first:
            process.wait()
        if len(self.left_out) > max_broken * len(triplets):
            where, why = self.left_out[0]
            raise BuildFailed(
                f"{len(self.left_out)} of {len(triplets)} triplets cannot be read, more than {max_broken:.1%}; "
                f"the first is {where}: {why}. Fetch these tars again or run their build again, then resume"
            )
        same = triplets.same
        self._same = None if same is None else same[np.array(self._numbers, np.int64)]
        self.steps_per_epoch = len(self._names) // batch if self._same is None else whole_batches(self._same, batch)
        if not self.steps_per_epoch:
            found = len(self._names) if self._same is None else len(np.unique(self._same))
            raise WrongUse(f"{found:,} different triplets do not fill a batch of {batch:,}; choose a smaller --batch")
        self._order = (-1, np.empty(0, np.int64))  # of an epoch

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs; the first one names what is left out of all."""
        epoch, place = divmod(step, self.steps_per_epoch)
        chosen = self._in_order(epoch)[place * self._batch :][: self._batch][self._mine]
        names = [self._names[number] for number in chosen.tolist()]
        found = self._store.find(name for three in names for name in three)
        reference, target, condition = (_stacked(found[three[role]] for three in names) for role in range(3))
        examples = [self._triplets[self._numbers[number]] for number in chosen.tolist()]
        return Batch(
            step=step,
            epoch=epoch,
            keys=tuple(one.key for one in examples),
            groups=tuple(one.group for one in examples),
            images={REFERENCE: reference, TARGET: target},
            texts={CONDITION: condition},
            left_out=() if step else tuple(self.left_out),
        )

    def stream(self, first_step: int, last_step: int) -> Generator[Batch, None, None]:
        """The batches of steps [first_step, last_step); as `Batches.stream` it ends where a dataset was rebuilt."""
        for step in range(first_step, last_step):
            if step and step % self.steps_per_epoch == 0:
                self._triplets.check_unchanged()
            yield self.at(step)

    def check_resumed(self, before: Sequence[Sequence[str]]) -> None:
        """Raise `BuildFailed` where other triplets cannot be read than when the run began: batches would be others.

        Args:
            before: what the first batch of the run named as left out.
        """
        then, now = ({where for where, *_ in some} for some in (before, self.left_out))
        for where in sorted(then ^ now):
            changed = "can be read now, and could not" if where in then else "cannot be read now, and could"
            raise BuildFailed(
                f"{where}: {changed} when this run began, so that its batches would be others; put its tar back as it "
                "was and resume, or train again into a new --out"
            )

    def _in_order(self, epoch: int) -> NDArray[np.int64]:
        if self._order[0] != epoch:
            found = order(len(self._names), self._seed, epoch)
            self._order = epoch, found if self._same is None else kept_apart(found, self._same, self._batch)
        return self._order[1]

    def _encode(self, numbers: range, similarities: ByFeatures) -> None:
        """Have the features of some triplets in the store, and remember their names."""
        examples = {number: self._triplets[number] for number in numbers}
        window = {
            number: Query(
                key=str(number),
                subset="",
                group="",
                image=picture(self._triplets, one, REFERENCE),
                text=one.texts[CONDITION],
                gallery=(picture(self._triplets, one, TARGET),),
                targets=frozenset({0}),
            )
            for number, one in examples.items()
        }
        unusable = similarities.prepare(list(window.values()))
        for number, query in window.items():
            if (problem := unusable.get(query.key)) is not None:
                where = examples[number].where
                _LOG.warning("left out of training: %s: %s", where, problem.reason)
                self.left_out.append((where, problem.reason))
                continue
            assert query.image is not None and query.text is not None
            shown = (query.image, *query.gallery)
            reference, target = (similarities.pictures.name(one) for one in shown)
            self._names.append((reference, target, text_name(query.text)))
            self._numbers.append(number)


def _stacked(features: Iterable[Floats]) -> torch.Tensor:
    stacked: NDArray[np.float32] = np.stack(list(features))
    return torch.from_numpy(stacked)
