"""The files that a source's samples are made from: where they are looked for, by whatever finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from manifests.source_settings import Source
from shards.kinds.names import PAIR, kind_of_source
from shards.media.image_folder import ImageFolder
from shards.media.media_folder import MediaFolder


class Media(Protocol):
    """Where the files of a source are looked for: for samples, for whether what was missing has appeared, for audit."""

    root: Path

    def size(self, name: str) -> int | None:
        """Bytes of what a name stands for now; None when it is not there."""
        ...

    def sha256(self, name: str) -> tuple[str, int] | None:
        """sha256 (hexadecimal) and size in bytes of what a name stands for now; None when it is not there."""
        ...


def media_of(source: Source) -> Media | None:
    """The folder of the files that a source's samples are made from; None where they are not on this machine."""
    if source.media_root is None:
        return None
    return (MediaFolder if kind_of_source(source.kind) is PAIR else ImageFolder)(source.media_root)
