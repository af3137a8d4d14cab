"""A part of a benchmark: so many examples of each subset, the same ones for every model."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, Example, Grounding, LeftOut, Matching, Query, Statement


class Limited(Benchmark):
    """At most ``limit`` examples of each subset, of its categories as many as their shares, drawn by ``seed``.

    An example is drawn by a digest of seed and key, so that neither order nor the other examples matter: a larger
    limit keeps those of a smaller one, but for the rounding of shares. It reads the annotation twice, and no image.
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
        drawn = self._drawn()
        for item in self.whole.examples():
            if isinstance(item, LeftOut) or self._rank(item) in drawn:
                yield item

    def digest(self) -> str:
        """Of the whole, limit and seed: models are compared where they answered the same part."""
        return digest(["limited", self.whole.digest(), self.limit, self.seed])

    def _rank(self, example: Example) -> bytes:
        text = f"{self.seed}:{example.key}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=16).digest()

    def _drawn(self) -> set[bytes]:
        """The ranks of the examples that are drawn."""
        ranks: defaultdict[str, defaultdict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        for item in self.whole.examples():
            if not isinstance(item, LeftOut):
                ranks[item.subset][item.category].append(self._rank(item))
        drawn = set[bytes]()
        for categories in ranks.values():
            for category, share in shares({name: len(found) for name, found in categories.items()}, self.limit).items():
                drawn.update(sorted(categories[category])[:share])
        return drawn


def shares(counts: dict[str, int], limit: int) -> dict[str, int]:
    """A limit divided in proportion to counts, by largest remainders; never more than a count."""
    whole = sum(counts.values())
    total = min(limit, whole)
    divided = {name: total * count // whole for name, count in counts.items()}
    by_remainder = sorted(counts, key=lambda name: (-(total * counts[name] % whole), name))
    for name in by_remainder[: total - sum(divided.values())]:
        divided[name] += 1
    return divided


def limited(benchmarks: Sequence[Benchmark], limit: int | None, seed: int) -> list[Benchmark]:
    """At most ``limit`` examples of each subset of benchmarks; None: all."""
    return [*benchmarks] if limit is None else [Limited(one, limit, seed) for one in benchmarks]
