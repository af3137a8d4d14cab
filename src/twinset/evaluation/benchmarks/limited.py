"""A part of a benchmark: so many examples of each subset, the same ones for every model."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, Example, Grounding, LeftOut, Matching, Query, Statement


class Limited(Benchmark):
    """At most ``limit`` examples of each subset, drawn by ``seed``.

    An example is drawn by a digest of seed and key, so that neither order nor the other examples matter: a larger
    limit keeps those of a smaller one. It reads the annotation twice, and no image.
    """

    def __init__(self, whole: Benchmark, limit: int, seed: int) -> None:
        if limit < 1:
            raise WrongUse(f"limit {limit}: name the examples of each subset, 1 or more")
        self.whole, self.limit, self.seed = whole, limit, seed
        self.name, self.citation, self.metrics, self.asks = whole.name, whole.citation, whole.metrics, whole.asks
        self.apart = whole.apart
        self.title = f"{whole.title}, {limit:,} of each subset (seed {seed})"

    def examples(self) -> Iterator[Matching | Query | Statement | Grounding | LeftOut]:
        """As `Benchmark.examples`; what the whole leaves out is named too."""
        ranks: defaultdict[str, list[bytes]] = defaultdict(list)
        for item in self.whole.examples():
            if not isinstance(item, LeftOut):
                ranks[item.subset].append(self._rank(item))
        drawn = {rank for of_subset in ranks.values() for rank in nsmallest(self.limit, of_subset)}
        for item in self.whole.examples():
            if isinstance(item, LeftOut) or self._rank(item) in drawn:
                yield item

    def digest(self) -> str:
        """Of the whole, limit and seed: models are compared where they answered the same part."""
        return digest(["limited to digests", self.whole.digest(), self.limit, self.seed])

    def _rank(self, example: Example) -> bytes:
        text = f"{self.seed}:{example.key}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=16).digest()


def limited(benchmarks: Sequence[Benchmark], limit: int | None, seed: int) -> list[Benchmark]:
    """At most ``limit`` examples of each subset of benchmarks; None: all."""
    return [*benchmarks] if limit is None else [Limited(whole, limit, seed) for whole in benchmarks]
