"""Where the media files of a source are looked for, whatever kind of folder they lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Media(Protocol):
    """Finds files by the names that annotations use: for samples, for missing files that appear later, for audits."""

    root: Path

    def size(self, name: str) -> int | None:
        """Bytes of what a name stands for now; None when it is not there."""
        ...

    def sha256(self, name: str) -> tuple[str, int] | None:
        """sha256 (hexadecimal) and size in bytes of what a name stands for now; None when it is not there."""
        ...
