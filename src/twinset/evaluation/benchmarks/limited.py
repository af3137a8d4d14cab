"""A part of a benchmark: so many examples of each subset, the same ones for every model."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Query, Statement

Stratum = tuple[str, str]  # subset and category


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
        chosen = self._chosen()
        for one in self.whole.examples():
            if isinstance(one, LeftOut) or self._rank(one.key) <= chosen.get((one.subset, one.category), b""):
                yield one

    def digest(self) -> str:
        """Of the whole, limit and seed: models are compared where they answered the same part."""
        return digest(["limited", self.whole.digest(), self.limit, self.seed])

    def _rank(self, key: str) -> bytes:
        return hashlib.blake2b(f"{self.seed}:{key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def _chosen(self) -> dict[Stratum, bytes]:
        """The greatest rank that is drawn of each subset and category."""
        counts: defaultdict[Stratum, int] = defaultdict(int)
        least: defaultdict[Stratum, list[bytes]] = defaultdict(list)
        for one in self.whole.examples():
            if isinstance(one, LeftOut):
                continue
            stratum = one.subset, one.category
            counts[stratum] += 1
            least[stratum].append(self._rank(one.key))
        drawn: dict[Stratum, bytes] = {}
        for subset in {subset for subset, _ in counts}:
            here = {stratum: count for stratum, count in counts.items() if stratum[0] == subset}
            for stratum, share in shares(here, min(self.limit, sum(here.values()))).items():
                if share:
                    drawn[stratum] = nsmallest(share, least[stratum])[-1]
        return drawn


def shares(counts: dict[Stratum, int], total: int) -> dict[Stratum, int]:
    """``total`` divided in proportion to counts, by largest remainders; never more than a count."""
    whole = sum(counts.values())
    found = {one: total * count // whole for one, count in counts.items()}
    left = sorted(counts, key=lambda one: (-(total * counts[one] % whole), one))
    for one in left[: total - sum(found.values())]:
        found[one] += 1
    return found


def limited(benchmarks: Sequence[Benchmark], limit: int | None, seed: int) -> list[Benchmark]:
    """At most ``limit`` examples of each subset of benchmarks; None: all."""
    return [*benchmarks] if limit is None else [Limited(one, limit, seed) for one in benchmarks]
