"""The rows of a table of negatives, brought together by their caption, whatever the size of the table."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.shards.finished_stage import FinishedStage

ROWS_HELD = 400_000  # of a table whose captions are scattered; it is read once for so many rows
SLICE = 4096  # rows that are Python objects at a time
CAPTION = "caption"


def rows_by_caption(
    table: FinishedStage, columns: Sequence[str], held: int = ROWS_HELD
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a table, those of one caption one after the other, with a name of the caption for each.

    Captions come in the order of their first rows, rows of a caption in the order of the table. Memory: 13 bytes a row
    of the table, 35 and ``held`` rows where the captions are scattered. Rows of captions that are together already are
    read in one pass.

    Args:
        table: a finished stage with a column ``caption``.
        columns: to read, ``caption`` among them.
        held: rows that memory may hold.
    """
    hashes = _hashes(table)
    if not len(hashes):
        return
    ranks = _ranks(hashes)
    if ranks is None:
        at = 0
        for batch in table.batches(columns):
            yield from _named(batch, hashes[at : at + len(batch)])
            at += len(batch)
        return
    sizes = np.bincount(ranks)
    begins = np.cumsum(sizes) - sizes
    # Captions of like quotient come in one pass: as many rows as are held, and those of the caption that fills it.
    turn = begins // held
    for number in np.unique(turn).tolist():
        yield from _collected(table, columns, hashes, ranks, turn[ranks] == number)


def _hashes(table: FinishedStage) -> NDArray[np.uint64]:
    """A hash of each row's caption. That two captions share one is harmless: their rows come together."""
    found = [np.empty(0, dtype=np.uint64)]
    for batch in table.batches([CAPTION]):
        encoded = batch[CAPTION].dictionary_encode()  # a caption that follows itself is hashed once
        texts = encoded.dictionary.to_pylist()
        codes = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
        found.append(np.frombuffer(codes, dtype="<u8")[encoded.indices.to_numpy()])
    return np.concatenate(found)


def _ranks(hashes: NDArray[np.uint64]) -> NDArray[np.int32] | None:
    """The place of each row's caption among all, by their first rows; None where the rows of each are together."""
    begins = np.concatenate(([True], hashes[1:] != hashes[:-1]))
    runs = hashes[begins]  # rows of one caption that are together, of which there are far fewer than rows as a rule
    order = np.argsort(runs, kind="stable").astype(np.int32)
    runs = runs[order]
    new = np.concatenate(([True], runs[1:] != runs[:-1]))
    del runs
    if new.all():
        return None
    first = order[new]  # the first run of each caption, in the order of their hashes
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = rank[np.cumsum(new, dtype=np.int32) - 1]
    del order, new, first, rank
    return np.repeat(ranks, np.diff(np.flatnonzero(begins), append=len(hashes)))


def _collected(
    table: FinishedStage,
    columns: Sequence[str],
    hashes: NDArray[np.uint64],
    ranks: NDArray[np.int32],
    chosen: NDArray[np.bool_],
) -> Iterator[tuple[str, dict[str, str]]]:
    """The chosen rows of a table, sorted by their caption's rank."""
    at, parts = 0, list[pa.RecordBatch]()
    for batch in table.batches(columns):
        here = chosen[at : at + len(batch)]
        if here.any():
            parts.append(batch.filter(pa.array(here)))
        at += len(batch)
    order = np.argsort(ranks[chosen], kind="stable")
    rows, names = pa.Table.from_batches(parts).combine_chunks(), hashes[chosen][order]
    for start in range(0, len(order), SLICE):
        some = rows.take(pa.array(order[start : start + SLICE])).combine_chunks()
        (batch,) = some.to_batches()
        yield from _named(batch, names[start : start + SLICE])


def _named(batch: pa.RecordBatch, hashes: NDArray[np.uint64]) -> Iterator[tuple[str, dict[str, str]]]:
    for start in range(0, len(batch), SLICE):
        rows = batch.slice(start, SLICE).to_pylist()
        for row, hashed in zip(rows, hashes[start : start + SLICE].tolist(), strict=True):
            yield f"caption-{hashed:016x}", row
