"""The record of a finished stage: what vouches for its index, and what later stages are bound to."""

from __future__ import annotations

from manifests.receipt import Model


class IndexRecord(Model):
    """Written last of a stage.

    content, plan: digests of the stage that the index was written for. digest: over all receipts, the same for the same
    shards. planned, kept: candidates; rows: of ``index.parquet``. files: sha256 and size by name of the files that it
    vouches for, ``index.parquet`` among them.
    """

    schema_version: int = 1
    content: str
    plan: str
    digest: str
    planned: int
    kept: int
    rows: int
    files: dict[str, tuple[str, int]]
