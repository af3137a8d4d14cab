"""A local file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``, which takes its place when the block ends without an error.

    The name is this process's own, so that two writers of one file disturb each other no more than one after the other.
    Folders above it are made. What the block left is removed if it fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        with beside.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text whole, as UTF-8; half a surrogate pair becomes ``?``."""
    with whole_file(path) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))
