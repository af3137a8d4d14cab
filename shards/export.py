"""Exports of a finished dataset to the file formats of others."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from manifests.errors import WrongUse
from shards.export_eqben import export_eqben
from shards.export_openclip import export_openclip
from shards.store import Store

FORMATS: Mapping[str, Callable[[Store, Sequence[str], Path], int]] = {
    "eqben": export_eqben,
    "openclip": export_openclip,
}


def export(store: Store, subsets: Sequence[str], format: str, to: Path) -> int:
    """Write the subsets into the folder ``to`` in one of `FORMATS`; returns the number of pairs.

    All is written into a sibling of ``to`` that takes its name at the end: there is a whole export or none. Raises
    WrongUse when the format is unknown, ``to`` exists and is not an empty folder, or there is nothing to export.
    """
    if format not in FORMATS:
        raise WrongUse(f"--format {format!r}: choose one of {', '.join(FORMATS)}")
    to = Path(os.path.abspath(to))
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise WrongUse(f"{to}: exists and is not an empty folder; name another --to, or remove it")
    to.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    try:
        pairs = FORMATS[format](store, subsets, unfinished)
        if not pairs:
            raise WrongUse(
                f"{store.root}: no finished shard of {', '.join(subsets)} keeps a pair; twinset status {store.root} "
                "says what is still to be built, and what rejected the rest"
            )
        unfinished.chmod(0o755)
        if to.exists():
            to.rmdir()
        unfinished.rename(to)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return pairs
