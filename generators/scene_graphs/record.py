"""What is written beside captions and relations: the record of the plan, a receipt a shard, and the index."""

from __future__ import annotations

from typing import Any

from manifests.receipt import Model

SCHEMA_VERSION = 1  # raised with any change to the bytes below

RECORD = "_meta/stage.json"
SHARDS = "_meta/shards.parquet"
INDEX = "_meta/index.json"
BEGUN = "_meta/log/plan.json"  # the first file written: where it lies, the others are twinset's own


def captions_file(shard: int) -> str:
    """The captions of a shard, as they were read."""
    return f"captions/{shard:05d}.parquet"


def relations_file(shard: int) -> str:
    """The relations of a shard's captions; without a row when they have none."""
    return f"relations/{shard:05d}.parquet"


def receipt_file(shard: int) -> str:
    """The file whose presence says that a shard is done."""
    return f"_meta/receipts/{shard:05d}.json"


def log_file(shard: int) -> str:
    """Host, process and times of a shard's making."""
    return f"_meta/log/{shard:05d}.json"


class Place(Model):
    """What could not be used, and where it stands."""

    place: str
    reason: str


class PlanRecord(Model):
    """Written last of a plan. facts: all that decides the bytes of captions and relations; content: its digest.

    plan: digest over the captions of all shards. left_out: how many lines or rows could not be used, by reason;
    examples: the first of them.
    """

    schema_version: int = SCHEMA_VERSION
    facts: dict[str, Any]
    content: str
    plan: str
    captions: int
    shards: int
    left_out: dict[str, int]
    examples: list[Place]


class GraphReceipt(Model):
    """Written last of a shard. content: of its plan's record; slice: digest of its captions.

    without: how many captions have no relation. sha256, size: of the file of relations.
    """

    shard: int
    content: str
    slice: str
    captions: int
    without: int
    relations: int
    sha256: str
    size: int


class Index(Model):
    """Written when every shard is done. digest: over all receipts, for what is built on the relations."""

    schema_version: int = SCHEMA_VERSION
    digest: str
    content: str
    captions: int
    without: int
    relations: int
    shards: int
    left_out: dict[str, int]
    examples: list[Place]
