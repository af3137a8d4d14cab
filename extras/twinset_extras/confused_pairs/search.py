"""All pairs of rows with a cosine above a threshold, exactly: a bound on few numbers first, then those that pass it.

Let z be the coordinates of x on some orthonormal directions and r the norm of the rest. Then by Cauchy and Schwarz
x·y ≤ z_x·z_y + r_x r_y. Products of z, in blocks, leave out nearly all pairs; of the others the cosine is computed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from twinset.models.encoders.contract import Floats

Pairs = NDArray[np.int64]
ROWS, COLUMNS = 512, 4096  # of a block: 12 MiB of products, which stay in the processor's cache
LOT = 4096  # pairs, or rows, that are float64 at a time
MOST = 10_000_000  # pairs that are held
DIRECTIONS = 16  # that are added at a time
SAMPLED = 2048  # rows whose pairs tell how many directions are enough
EXACT = 2e6  # directions of a pair's product take as long as its exact cosine


class TooMany(Exception):
    """More than `MOST` pairs are above the threshold."""


def cosines(features: Floats, pairs: Pairs) -> NDArray[np.float64]:
    """x·y of each pair of rows of norm 1.

    Products of float32 are exact in float64, and the order of their sum is fixed: the same bits on every machine.
    """
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), LOT):
        some = pairs[start : start + LOT]
        terms = features[some[:, 0]].astype(np.float64) * features[some[:, 1]]
        while (width := terms.shape[1]) > 1:  # the second half is added to the first
            half = (width + 1) // 2
            terms[:, : width - half] += terms[:, half:]
            terms = terms[:, :half]
        found[start : start + LOT] = terms[:, 0]
    return found


def alike(features: Floats, above: float, threads: int) -> tuple[Pairs, NDArray[np.float64]]:
    """Pairs of rows i < j with a cosine above a threshold, in order, and their cosines.

    The same for every size of blocks, number of threads and machine.

    Args:
        features: of norm 1, shape (n, d).
        threads: that work on blocks of rows.

    Raises:
        TooMany: there are more than `MOST`.
    """
    from twinset.models.device import inference

    # Threads that share a product wait for each other at each of some 100,000 of them.
    with inference(1), ThreadPoolExecutor(threads) as pool:
        blocks = Blocks(features, above)
        working = [pool.submit(blocks.alike, start) for start in range(0, len(features), ROWS)]
        try:
            parts = [(np.empty((0, 2), np.int64), np.empty(0)), *(one.result() for one in working)]
        finally:
            pool.shutdown(cancel_futures=True)
    pairs, found = (np.concatenate(both) for both in zip(*parts, strict=True))
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], found[order]


class Blocks:
    """Rows in the order of what the bound leaves out, which is then much the same for all of a block."""

    def __init__(self, features: Floats, above: float) -> None:
        import torch

        # Products in bfloat16 are several times as fast where the processor has them; the bound allows for their error.
        known = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self.precision = torch.bfloat16 if known else torch.float32
        eps = torch.finfo(self.precision).eps
        directions = _directions(features, above, eps)
        z, rest = np.empty((len(features), directions.shape[1]), np.float32), np.empty(len(features), np.float32)
        for start in range(0, len(features), LOT):
            some = features[start : start + LOT].astype(np.float64)
            z[start : start + LOT] = here = some @ directions
            rest[start : start + LOT] = np.sqrt(np.maximum((some**2).sum(1) - (here**2).sum(1), 0))
        self.features, self.above = features, above
        self._held, self._lock = 0, Lock()
        self.order = np.argsort(rest)
        self.rest = torch.from_numpy(rest[self.order])
        self.z = torch.from_numpy(z).to(self.precision)[torch.from_numpy(self.order)]
        # Factors and product are rounded by half an eps of their size each, and so are sums, in float32.
        length = torch.linalg.vector_norm(self.z, dim=1, dtype=torch.float32)
        self.error = (2 * eps + z.shape[1] * 2.0**-23) * length.max() * length + 1e-6

    def alike(self, start: int) -> tuple[Pairs, NDArray[np.float64]]:
        """Pairs of a row of the block that begins at ``start`` and one behind it, unordered; raises `TooMany`."""
        import torch

        narrow, wide = (torch.empty(ROWS, COLUMNS, dtype=one) for one in (self.precision, torch.float32))
        rows, parts = slice(start, start + ROWS), [(np.empty((0, 2), np.int64), np.empty(0))]
        for first in range(start, len(self.z), COLUMNS):
            columns = slice(first, first + COLUMNS)
            one, other = self.z[rows], self.z[columns]
            products = wide[: len(one), : len(other)]
            products.copy_(torch.mm(one, other.T, out=narrow[: len(one), : len(other)]))
            least = self.above - self.error[rows]
            some = (products.amax(dim=1) >= least - self.rest[rows] * self.rest[columns].max()).nonzero()[:, 0]
            if not len(some):
                continue
            bound = products[some] + torch.outer(self.rest[rows][some], self.rest[columns])
            at, behind = (bound >= least[some, None]).nonzero(as_tuple=True)
            both = torch.stack([some[at] + start, behind + first], dim=1).numpy()
            both = np.sort(self.order[both[both[:, 0] < both[:, 1]]], axis=1)
            found = cosines(self.features, both)
            good = found > self.above
            parts.append((both[good], found[good]))
            self._hold(len(parts[-1][0]))
        return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts])

    def _hold(self, pairs: int) -> None:
        """Count pairs of all threads; raises `TooMany`."""
        with self._lock:
            self._held += pairs
            if self._held > MOST:
                raise TooMany


def _directions(features: Floats, above: float, eps: float) -> NDArray[np.float64]:
    """As many principal directions as make the search fast, shape (d, k)."""
    apart = max(1, len(features) // (8 * SAMPLED))
    some = features[::apart].astype(np.float64)
    directions = np.linalg.eigh(some.T @ some)[1][:, ::-1]  # the strongest first
    # Of other rows, as far as there are any: these directions fit those that they were made of better.
    sample = features[apart // 2 :: max(1, len(features) // SAMPLED)].astype(np.float64) @ directions
    products, rest, length = np.zeros((len(sample), len(sample))), (sample**2).sum(1), np.zeros(len(sample))
    best, used = np.inf, 0
    for start in range(0, sample.shape[1], DIRECTIONS):
        more = sample[:, start : start + DIRECTIONS]
        products += more @ more.T
        length += (more**2).sum(1)
        rest = np.maximum(rest - (more**2).sum(1), 0)
        bound = products + np.sqrt(np.outer(rest, rest)) + 2 * eps * np.sqrt(np.outer(length, length))
        cost = start + more.shape[1] + EXACT * ((bound > above).mean() - 1 / len(sample))
        if cost < best:
            best, used = cost, start + more.shape[1]
    return directions[:, :used]
