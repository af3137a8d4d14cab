"""Captions cut into shards and written as Parquet, once, as a stream."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from generators.scene_graphs.caption_sources import CaptionSources
from generators.scene_graphs.captions import Caption, LeftOut
from generators.scene_graphs.record import SHARDS, captions_file
from manifests.canonical import digest
from manifests.errors import BuildFailed, WrongUse
from manifests.parquet import parquet_rows, read_parquet
from manifests.plan import SHARD_SCHEMA, PlannedShard, plan_digest
from shards.storage.store import Store

SCHEMA = pa.schema(
    [pa.field(n, pa.string(), nullable=False) for n in ("caption_id", "image_id", "caption", "image", "place")]
)
SPLIT = "all"  # captions are split when samples are made of them
EXAMPLES = 20
ID_BYTES = 8  # of the hash by which repeated ids are found: all that is held of a caption that was written


@dataclass(frozen=True, slots=True)
class CaptionPlan:
    """Shards of captions. left_out: what could not be used, by reason; examples: the first of it."""

    digest: str
    shards: tuple[PlannedShard, ...]
    left_out: dict[str, int]
    examples: tuple[LeftOut, ...]


def write_captions(sources: CaptionSources, spool: Path, shard_size: int) -> CaptionPlan:
    """Write captions, ``shard_size`` a file, and the list of shards into a folder, under the names they will have.

    Memory holds one shard and 8 bytes a caption. Raises `WrongUse` when nothing of a source can be read, or an id
    stands for two captions.
    """
    left_out: Counter[str] = Counter()
    examples: list[LeftOut] = []
    hashes = array("Q")

    def captions() -> Iterator[Caption]:
        for read in sources.read():
            if isinstance(read, Caption):
                hashes.append(_hash(read.caption_id))
                yield read
                continue
            left_out[read.reason] += 1
            if len(examples) < EXAMPLES:
                examples.append(read)

    for path in (captions_file(0), SHARDS):
        (spool / path).parent.mkdir()
    shards: list[PlannedShard] = []
    stream = captions()
    while shard := list(islice(stream, shard_size)):
        columns = [list(column) for column in zip(*(astuple(caption) for caption in shard), strict=True)]
        number = len(shards)
        pq.write_table(pa.table(columns, schema=SCHEMA), spool / captions_file(number), compression="zstd")
        shards.append(PlannedShard(number, SPLIT, len(shard), digest(columns)))
    _refuse_repeated_ids(sources, spool, hashes, len(shards))
    rows = [{"shard": s.shard, "split": s.split, "planned": s.planned, "slice": s.slice} for s in shards]
    pq.write_table(pa.Table.from_pylist(rows, SHARD_SCHEMA), spool / SHARDS)
    return CaptionPlan(plan_digest(shards), tuple(shards), dict(sorted(left_out.items())), tuple(examples))


def read_captions(store: Store, planned: PlannedShard) -> dict[str, list[str]]:
    """The captions of a shard, by column; raises `BuildFailed` when they are not those that were planned."""
    path = captions_file(planned.shard)
    remedy = "remove _meta/stage.json there and run the same command again"
    try:
        with store.open(path) as stream:
            columns: dict[str, list[str]] = read_parquet(stream, SCHEMA.names).to_pydict()
        found = digest(list(columns.values()))
    except (FileNotFoundError, pa.ArrowException, UnicodeDecodeError, TypeError) as error:
        raise BuildFailed(f"{store.root}/{path}: cannot be read ({error}); {remedy}") from error
    if found != planned.slice:
        raise BuildFailed(f"{store.root}/{path}: other captions than were planned; {remedy}")
    return columns


def _hash(caption_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(caption_id.encode(), digest_size=ID_BYTES).digest(), "big")


def _refuse_repeated_ids(sources: CaptionSources, spool: Path, hashes: array[int], shards: int) -> None:
    ordered = np.sort(np.frombuffer(hashes, dtype=np.uint64))
    suspects = {int(value) for value in ordered[1:][ordered[1:] == ordered[:-1]]}
    if not suspects:
        return
    met: dict[str, str] = {}  # equal hashes are no proof: what was written is read again
    for number in range(shards):
        with (spool / captions_file(number)).open("rb") as stream:
            for row in parquet_rows(stream, ("caption_id", "place")):
                if _hash(row["caption_id"]) not in suspects:
                    continue
                if before := met.get(row["caption_id"]):
                    raise WrongUse(
                        sources.where(f"caption id {row['caption_id'][:100]!r} stands twice, at {before} and ")
                        + f"{row['place']}; ids tell captions apart: correct or remove one"
                    )
                met[row["caption_id"]] = row["place"]
