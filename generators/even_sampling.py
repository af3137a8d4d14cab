"""Random draws that stay near uniform at every count."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

ORDERS = 1 << 20  # how much more a use counts than a use in the same order
T = TypeVar("T", bound=Hashable)


class Balance:
    """Draws the least used of the options.

    Independent draws leave some values half as frequent again as others at the counts that a benchmark has; here the
    uses of two options never differ by more than one, if each was open whenever the other was. Memory is bounded by the
    number of different (option, given) combinations, however many draws are made.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._used: Counter[tuple[Hashable, ...]] = Counter()

    def pick(self, slot: str, options: Sequence[T], *given: Hashable) -> T:
        """One of the options: the least used in this slot; of those, the least used beside what is ``given`` (what was
        drawn before, so that its combinations even out too); of those, any."""
        uses = [
            (self._used[slot, option], sum(self._used[slot, option, beside] for beside in given)) for option in options
        ]
        least = min(uses)
        ties = [option for option, use in zip(options, uses, strict=True) if use == least]
        chosen = ties[int(self._random.integers(len(ties)))]
        self._used.update([(slot, chosen), *((slot, chosen, beside) for beside in given)])
        return chosen


class Rounds:
    """Which facts to draw so that none comes again before all of its kind have come.

    A fact has two orders: a pair of images with the first and the second swapped shows the same. It is drawn in both
    before it is drawn in one of them twice. Facts of a kind fill an array, one axis for each part that can vary, so
    that memory is bounded by the number of facts.
    """

    def __init__(self) -> None:
        self._uses: dict[Hashable, NDArray[np.uint32]] = {}

    def ranks(self, kind: Hashable, swapped: Hashable, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        """How much each fact of a kind has been used: the least is due.

        Args:
            kind: what all of these facts share, in its order.
            swapped: the same in the other order.
            shape: of the array of facts.
        """
        uses = (self._uses.setdefault(key, np.zeros(shape, np.uint32)) for key in (kind, swapped))
        same, other = (one.astype(np.int64) for one in uses)
        return (same + other) * ORDERS + same

    def use(self, kind: Hashable, fact: tuple[int, ...] = ()) -> None:
        """Count a use of a fact whose kind `ranks` has been asked for."""
        self._uses[kind][fact] += 1
