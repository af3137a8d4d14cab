"""What the tests of parsed captions share: parsing in small shards, and reading back all that came of it."""

from __future__ import annotations

from pathlib import Path

from generators.scene_graphs.parse import parse_captions
from generators.scene_graphs.record import Index

SHARD = 100


def contents(out: Path) -> dict[str, bytes]:
    """All files but logs."""
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.startswith("_meta/log/")}


def parse(captions: Path, out: Path, count: int = 1, shard_size: int = SHARD) -> Index:
    return parse_captions([captions], str(out), workers=count, shard_size=shard_size)
