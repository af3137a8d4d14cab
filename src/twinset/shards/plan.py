"""Parquet, and plans on disk: candidates, one row group a shard, written as a stream and read a shard at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.candidate import SPLIT, Candidate, arrow_schema, from_row, to_row
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse


def read_parquet(
    stream: BinaryIO,
    columns: Sequence[str] | None = None,
    row_group: int | None = None,
    checksums: bool = False,
    footer: pq.FileMetaData | None = None,
) -> pa.Table:
    """All columns or those named, of the whole file or of one row group, read in the calling thread alone.

    Threads of pyarrow (`use_threads`, `pre_buffer`) sometimes abort the interpreter when it ends (exit code 134).

    checksums: compare those of the pages. footer: as `read_footer` gave it.
    Raises `pyarrow.ArrowInvalid` for what is not Parquet, or damaged.
    """
    with _as_arrow_error():
        file = _opened(stream, metadata=footer, page_checksum_verification=checksums)
        if row_group is None:
            return file.read(columns=columns, use_threads=False)
        return file.read_row_group(row_group, columns=columns, use_threads=False)


def read_footer(stream: BinaryIO) -> pq.FileMetaData:
    """What a file says of its row groups, for those who read many of them; raises as `read_parquet`."""
    with _as_arrow_error():
        return pq.read_metadata(stream)


def parquet_columns(stream: BinaryIO) -> list[str]:
    """Names of the columns; raises as `read_parquet`."""
    with _as_arrow_error():
        return list(_opened(stream).schema_arrow.names)


def parquet_batches(stream: BinaryIO, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """As `read_parquet`, of a file that need not fit into memory; texts that are no UTF-8 are damage too."""
    with _as_arrow_error():
        for batch in _opened(stream).iter_batches(columns=list(columns), use_threads=False):
            batch.validate(full=True)
            yield batch


def _opened(stream: BinaryIO, **options: Any) -> pq.ParquetFile:
    file = pq.ParquetFile(stream, pre_buffer=False, **options)
    if len({*file.schema_arrow.names}) < len(file.schema_arrow.names):
        raise pa.ArrowInvalid("two columns have one name")
    return file


@contextmanager
def _as_arrow_error() -> Iterator[None]:
    """Much of what pyarrow finds wrong in a file it raises as OSError, without a number; here as `ArrowInvalid`."""
    try:
        yield
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise pa.ArrowInvalid(" ".join(str(error).split())) from error


SHARDS_A_FILE = 1000
# A worker's memory must hold a group. Sources of the papers have some hundred pairs a video; 200 steps make 19,900.
LARGEST_GROUP = 20_000

SHARD_SCHEMA = pa.schema(
    [("shard", pa.int64()), ("split", pa.string()), ("planned", pa.int64()), ("slice", pa.string())]
)


class PlannedShard(NamedTuple):
    """One shard of a plan. slice: digest of its candidates."""

    shard: int
    split: str
    planned: int
    slice: str


class PlanSummary(NamedTuple):
    """What a plan holds. digest: over the digests of all slices, in order."""

    digest: str
    planned: int
    shards: tuple[PlannedShard, ...]


def slice_digest(candidates: Iterable[Candidate]) -> str:
    """Digest of the candidates of one shard, in order."""
    return digest([to_row(candidate) for candidate in candidates])


def plan_digest(shards: Iterable[PlannedShard]) -> str:
    """Digest of a whole plan: over number, split and slice of every shard, in order."""
    hashed = hashlib.blake2b(digest_size=16)
    for shard in shards:
        hashed.update(canonical_json([shard.shard, shard.split, shard.slice]))
    return hashed.hexdigest()


def plan_file(shard: int) -> tuple[str, int]:
    """Name of the Parquet file that holds a shard's candidates, and the row group in it."""
    return f"{shard // SHARDS_A_FILE:05d}.parquet", shard % SHARDS_A_FILE


def shards_of(candidates: Iterator[Candidate], shard_size: int, origin: str = "the plan") -> Iterator[list[Candidate]]:
    """Cut a stream of candidates into shards of at least ``shard_size``, never splitting a group or mixing splits.

    origin: what messages name, such as the annotation file.
    Raises `WrongUse` when one group has more than `LARGEST_GROUP` candidates; no more of them are ever held.
    """
    open_shards: dict[str, list[Candidate]] = {}
    for (split, group), members in groupby(candidates, key=lambda candidate: (candidate.split, candidate.group)):
        pending = open_shards.setdefault(split, [])
        if len(pending) >= shard_size:
            yield pending
            pending = open_shards[split] = []
        whole = list(islice(members, LARGEST_GROUP + 1))
        if len(whole) > LARGEST_GROUP:
            raise WrongUse(
                f"{origin}: {group[:100]!r} has more than {LARGEST_GROUP:,} candidates, which one worker would have to "
                "hold at once; annotations of so many moments in one video or scene are broken: correct or remove them"
            )
        pending += whole
    yield from open_shards.values()


def write_plan(
    candidates: Iterator[Candidate], kind: type[Candidate], shard_size: int, folder: Path, origin: str = "the plan"
) -> PlanSummary:
    """Write a plan into a folder as a stream, one shard in memory; ``origin`` and errors are as of `shards_of`."""
    schema = arrow_schema(kind)
    summary: list[PlannedShard] = []
    numbered = enumerate(shards_of(candidates, shard_size, origin))
    for file, shards in groupby(numbered, key=lambda shard: plan_file(shard[0])[0]):
        with pq.ParquetWriter(folder / file, schema, compression="zstd", write_statistics=False) as writer:
            for number, shard in shards:
                rows = [to_row(candidate) for candidate in shard]
                writer.write_table(pa.Table.from_pylist(rows, schema), row_group_size=len(rows))
                summary.append(PlannedShard(number, shard[0].split, len(rows), digest(rows)))
    listed = pa.Table.from_pylist([shard._asdict() for shard in summary], SHARD_SCHEMA)
    pq.write_table(listed, folder / "shards.parquet")
    return PlanSummary(plan_digest(summary), sum(shard.planned for shard in summary), tuple(summary))


def read_shards(stream: BinaryIO, where: str) -> list[PlannedShard]:
    """The list of a plan's shards; raises `WrongUse` for what `write_plan` did not write. where: its path."""
    try:
        table = read_parquet(stream)
        if not table.schema.equals(SHARD_SCHEMA) or any(column.null_count for column in table.columns):
            raise ValueError("its columns are not those of a plan")
        shards = [PlannedShard(**row) for row in table.to_pylist()]
        if not all(shard.shard == at and re.fullmatch(SPLIT, shard.split) for at, shard in enumerate(shards)):
            raise ValueError("odd numbers or names of splits")
        return shards
    except (TypeError, ValueError, pa.ArrowException) as error:
        remedy = "remove the subset's _meta/stage.json and run the same build again"
        raise WrongUse(f"{where}: cannot be read ({error}); {remedy}") from error


def read_slice(
    stream: BinaryIO, row_group: int, kind: type[Candidate], footer: pq.FileMetaData | None = None
) -> list[Candidate]:
    """The candidates of one shard. footer: of the file, where it was read before."""
    rows: list[dict[str, Any]] = read_parquet(stream, row_group=row_group, footer=footer).to_pylist()
    return [from_row(kind, row) for row in rows]
