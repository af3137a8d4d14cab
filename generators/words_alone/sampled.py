"""A sample of each kind of the pairs of captions of a table, and what words alone tell of it."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.markdown import table
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.words_alone.probe import MOST, Probed, probed

ANY = "all pairs"  # where pairs have no kind


class Sampled:
    """Pairs of captions by kind, at most `MOST` of each, however many are added."""

    def __init__(self, seed: int = 0) -> None:
        """seed: of the draw and of the probes."""
        self._seed, self._random = seed, np.random.default_rng(seed)
        self._ranks: dict[str, NDArray[np.float64]] = {}
        self._pairs: dict[str, list[tuple[str, str]]] = {}

    def add(self, captions: pa.Array, negatives: pa.Array, kinds: pa.Array | None = None) -> None:
        """Draw from a batch: the pairs of smallest random numbers stay. kinds: of each pair, where there are any."""
        named = np.array([ANY] * len(captions) if kinds is None else kinds.to_pylist(), dtype=object)
        ranks = self._random.random(len(captions))
        for kind in dict.fromkeys(named.tolist()):
            rows = np.flatnonzero(named == kind)
            rows = rows[np.argsort(ranks[rows])[:MOST]]
            pairs = [(captions[row].as_py(), negatives[row].as_py()) for row in rows.tolist()]
            every = np.concatenate((self._ranks.get(kind, np.empty(0)), ranks[rows]))
            both = [*self._pairs.get(kind, ()), *pairs]
            order = np.argsort(every)[:MOST]
            self._ranks[kind], self._pairs[kind] = every[order], [both[place] for place in order.tolist()]

    def probed(self) -> dict[str, Probed]:
        """Both probes of each kind, in the order of the papers' tables, others after them."""
        ordered = [*(kind for kind in KINDS if kind in self._pairs), *sorted(self._pairs.keys() - KINDS.keys())]
        sides = {kind: [[pair[side] for pair in self._pairs[kind]] for side in (0, 1)] for kind in ordered}
        return {kind: probed(captions, negatives, self._seed) for kind, (captions, negatives) in sides.items()}


def words_table(found: Mapping[str, Probed]) -> str:
    """A Markdown table of what words alone tell of each kind."""
    rows = [
        (kind.replace("_", " "), f"{one.pairs:,}", said(one.auc), as_percent(one.paired)) for kind, one in found.items()
    ]
    return table(("kind", "pairs asked", "one caption: area under the curve", "both captions: right"), rows)


def said(auc: float | None) -> str:
    """An area under the curve, or that there are too few pairs for one."""
    return "too few" if auc is None else f"{auc:.2f}"


def as_percent(paired: float | None) -> str:
    """The share that the paired probe knows, or that there are too few pairs for one."""
    return "too few" if paired is None else f"{paired:.0%}"
