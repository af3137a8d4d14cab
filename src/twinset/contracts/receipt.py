"""Receipts: the last file written of a shard or of a stage, and the only thing that says it is done."""

import json
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from twinset.contracts.candidate import SPLIT
from twinset.contracts.canonical import canonical_json


class Model(BaseModel):
    """A file that twinset wrote and reads back; what it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_bytes(self) -> bytes:
        """Canonical JSON and a newline: the same bytes for the same content."""
        return canonical_json(self.model_dump(mode="json")) + b"\n"


M = TypeVar("M", bound=Model)


def parsed(kind: type[M], content: bytes) -> M | None:
    """The file of a kind, or None when the bytes are not one of this version."""
    try:
        return kind.model_validate(json.loads(content))
    except (ValueError, RecursionError):
        return None


Count = Annotated[int, Field(ge=0, lt=1 << 63)]  # what a column of Parquet holds
Word = Annotated[str, Field(pattern=r"^[ -~]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]


class Made(Model):
    """What is known of a shard before its candidates are counted.

    content: digest of the stage. runtime: the runtime class, ``any`` without neural networks; requested_runtime: that
    before the micro-batch was halved because memory ran out, else empty. micro_batch: samples a forward pass, or 0.
    device: ``cpu`` or the GPU's model name where a network took part, else empty. slice: digest of the candidates.
    tar_sha256, tar_size: empty and 0 when nothing was kept. missing: media that could not be read, and their sizes
    (None: absent); the shard goes stale when these change. duplicates: keys taken out of the tar, and their twins.
    """

    shard: Count
    split: str = Field(pattern=SPLIT)
    content: Word
    runtime: Word
    requested_runtime: Word = ""
    micro_batch: Count = 0
    device: Word = ""
    slice: Word
    planned: Count
    tar_sha256: Word
    tar_size: Count
    missing: dict[str, int | None]
    duplicates: dict[str, str] = {}


class Receipt(Made):
    """What a finished shard holds."""

    kept: Count
    rejected: dict[str, Count]
    rows_sha256: Word
    rows_size: Count

    @property
    def machine(self) -> str:
        """The runtime class in which shards of one build must agree: one for which memory ran out does not differ."""
        return self.requested_runtime or self.runtime


def parse_receipt(content: bytes) -> Receipt | None:
    """The receipt, or None when the bytes are not those of one whose counts add up: then its shard is not done."""
    receipt = parsed(Receipt, content)
    if receipt is None or receipt.to_bytes() != content:
        return None
    return receipt if receipt.kept + sum(receipt.rejected.values()) == receipt.planned else None


class IndexRecord(Model):
    """Written last of a stage: what vouches for its index, and what later stages are bound to.

    content, plan: digests of the stage that the index was written for. digest: over all receipts. planned, kept:
    candidates; rows: of ``index.parquet``. files: sha256 and size by name, ``index.parquet`` among them.
    """

    schema_version: int = 1
    content: str
    plan: str
    digest: str
    planned: int
    kept: int
    rows: int
    files: dict[FileName, tuple[str, int]]

    @model_validator(mode="after")
    def _vouches_for_the_index(self) -> Self:
        if "index.parquet" not in self.files:
            raise ValueError("no index.parquet")
        return self
