"""The relations of one shard of captions, published with a receipt or not at all."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from generators.scene_graphs.caption_plan import read_captions
from generators.scene_graphs.record import (
    RECORD,
    GraphReceipt,
    PlanRecord,
    log_file,
    receipt_file,
    relations_file,
)
from generators.scene_graphs.relations import Relation, SceneGraphParser
from manifests.canonical import sha256_of_file
from manifests.errors import BuildFailed
from manifests.plan import PlannedShard
from manifests.receipt import parsed
from shards.storage.store import Store
from stages.receipts import log_shard, publish_with_receipt

WORDS = ("subject", "predicate", "object", "subject_lemma", "predicate_lemma", "object_lemma")
SPANS = ("subject_start", "subject_end", "object_start", "object_end")
SCHEMA = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in ("caption_id", "image_id", *WORDS)]
    + [pa.field(name, pa.int32(), nullable=False) for name in SPANS]
)


def make_shard(store: Store, content: str, planned: PlannedShard, parser: SceneGraphParser) -> GraphReceipt:
    """Parse a shard's captions and publish relations, then receipt: the same bytes whoever does it.

    content: digest of the plan's record. Raises `BuildFailed` when the captions are not those that were planned, or
    were planned anew meanwhile.
    """
    began = time.time()
    captions = read_captions(store, planned)
    found = list(parser.relations(captions["caption"]))
    with store.spool() as spool:
        table = _table(captions["caption_id"], captions["image_id"], found)
        pq.write_table(table, spool / "relations", compression="zstd")
        sha256, size = sha256_of_file(spool / "relations")
        record = parsed(PlanRecord, store.read(RECORD)) if store.size(RECORD) is not None else None
        if record is None or record.content != content:
            raise BuildFailed(f"{store.root}: planned anew by another run meanwhile; run the command again")
        receipt = GraphReceipt(
            shard=planned.shard,
            content=content,
            slice=planned.slice,
            captions=len(found),
            without=sum(not relations for relations in found),
            relations=table.num_rows,
            sha256=sha256,
            size=size,
        )
        files = {relations_file(planned.shard): spool / "relations"}
        publish_with_receipt(store, files, receipt_file(planned.shard), receipt)
    log_shard(store, log_file(planned.shard), began)
    return receipt


def _table(caption_ids: Sequence[str], image_ids: Sequence[str], found: Sequence[Sequence[Relation]]) -> pa.Table:
    """A row a relation, in the order of captions and, within one, of `sng_parser`."""
    flat = [relation for relations in found for relation in relations]
    columns: list[list[str] | list[int]] = [
        [one for one, relations in zip(ids, found, strict=True) for _ in relations] for ids in (caption_ids, image_ids)
    ]
    columns += [[getattr(relation, name) for relation in flat] for name in WORDS]
    columns += [[relation.subject_span[end] for relation in flat] for end in (0, 1)]
    columns += [[relation.object_span[end] for relation in flat] for end in (0, 1)]
    return pa.table(columns, schema=SCHEMA)
