"""Passes of a network that all have the same size, so that what it gives for an input does not depend on the others.

With one shape the kernels are the same, and each row of a batch is computed from its own input alone: a feature is the
same bits whether its neighbours were encoded before, by a run that was killed, or for another benchmark.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.parts import OutOfMemory
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import Floats

T = TypeVar("T")
_LOG = logging.getLogger("twinset")


class Passes:
    """Runs a model in passes of ``batch`` inputs and keeps what it gives in a store; halves them where memory runs out.

    Args:
        model: its name, for messages.
        batch: inputs of a pass.
    """

    def __init__(self, model: str, store: FeatureStore, batch: int) -> None:
        self.model, self.store, self.batch = model, store, batch
        self.done = 0  # inputs that a pass was made for
        self.unanswered: dict[bytes, int] = {}  # inputs that a model gave NaN for, with its code for the reason

    def run(
        self, inputs: Sequence[tuple[bytes, str, T]], give: Callable[[list[T]], Floats], reasons: bool = False
    ) -> None:
        """Give the features of inputs to the store.

        Args:
            inputs: name in the store, what it is (for messages), and what the model reads.
            give: the model: features of all inputs of a pass, a row each.
            reasons: whether it may give NaN and a code in place of a score; these are not kept, but noted in
                ``unanswered``. The second column of scores is left out.

        Raises:
            WrongUse: the model gives NaN, infinity or another shape.
            BuildFailed: memory runs out for a single input.
        """
        from twinset.models.device import within_memory

        start = 0
        while start < len(inputs):
            some = inputs[start : start + self.batch]
            filled = [one for _, _, one in some] + [some[-1][2]] * (self.batch - len(some))
            began = time.monotonic()
            try:
                values = within_memory(lambda filled=filled: give(filled))  # type: ignore[misc]
            except OutOfMemory as error:
                self._halve(error)
                continue
            values = np.asarray(values)
            if reasons and values.ndim == 2:
                without = np.isnan(values[: len(some), 0])
                self.unanswered |= {some[at][0]: int(values[at, 1]) for at in range(len(some)) if without[at]}
                kept = [at for at in range(len(some)) if not without[at]]
                values = np.nan_to_num(np.delete(values, 1, axis=1), posinf=np.inf, neginf=-np.inf)
            else:
                kept = [*range(len(some))]
            values = self._checked(values, some, len(filled))[kept]
            self.store.keep([some[at][0] for at in kept], values, time.monotonic() - began)
            start, self.done = start + len(some), self.done + len(some)

    def _halve(self, error: OutOfMemory) -> None:
        if self.batch == 1:
            raise BuildFailed(
                f"{self.model}: memory runs out for a single input ({error}); use a machine or a GPU with more, or a "
                "smaller model"
            ) from error
        self.batch //= 2
        _LOG.warning("%s: memory runs out, so that passes have %d inputs from here on", self.model, self.batch)

    def _checked(self, values: Floats, some: Sequence[tuple[bytes, str, T]], rows: int) -> Floats:
        values = np.asarray(values)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != rows or values.dtype != np.float32:
            raise WrongUse(
                f"{self.model}: gave an array {values.shape} of {values.dtype} for {rows} inputs, from {some[0][1]} "
                f"on; a scorer gives float32 of shape ({rows}, d), or ({rows},) for pairs"
            )
        values = values[: len(some)]
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if bad.size:
            raise WrongUse(
                f"{self.model}: gives NaN or infinity for {some[bad[0]][1]}; its weights are damaged, or the model "
                "does not run in float32: get the checkpoint again"
            )
        return values


def lots(inputs: Iterable[T], size: int) -> Iterator[list[T]]:
    """Inputs in lists of a size; the last may be shorter."""
    left = iter(inputs)
    while lot := list(islice(left, size)):
        yield lot
