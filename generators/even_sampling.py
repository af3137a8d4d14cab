"""Random draws that stay near uniform at every count."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

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
