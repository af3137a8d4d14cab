"""Manifests of asset sources in the layout of Google Scanned Objects, as Kubric publishes them."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import WrongUse
from shards.kinds.samples import Source
from shards.media.media_folder import EscapesRoot, inside
from shards.storage.store import Store

REMEDY = (
    "name a manifest that can be read: a local mirror of Kubric's bucket (without `data_dir` the archives are looked"
    " for beside it), or s3://…, https://…, gs://… (which needs gcsfs)"
)


@dataclass(frozen=True, slots=True)
class AssetManifest:
    """A manifest that was read.

    source: its file. data: folder or URL of the archives; recorded: what their names are recorded with, the folder
    below the manifest's own or the URL. entries: by asset id.
    """

    source: Source
    data: str
    recorded: str
    entries: dict[str, dict[str, Any]]


class UnusableAsset(WrongUse):
    """An asset's archive is absent (size None) or holds nothing that can be shown. recorded: its name as a source."""

    def __init__(self, message: str, recorded: str, size: int | None) -> None:
        super().__init__(message)
        self.recorded = recorded
        self.size = size


def read_manifest(location: str) -> AssetManifest:
    """The manifest ``{"data_dir": …, "assets": {ID: …}}`` at a path or URL.

    An absent `data_dir` means the manifest's own folder, a relative one is taken from there; none but a URL leads out.
    Raises WrongUse, naming it and the remedy, when it is absent or damaged; OSError when a store cannot be reached for
    now.
    """
    folder, _, name = location.rpartition("/")
    folder = folder or "."
    try:
        text = Store(folder).read(name)
    except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
        raise unreadable(location, error) from error
    try:
        content = json.loads(text)
        entries: dict[str, dict[str, Any]] = dict(content["assets"].items())
        for asset, entry in entries.items():
            if "/" in asset or not isinstance(entry.get("kwargs", {}), dict):
                raise ValueError(f"entry {asset!r}")
            for file in (asset, str(entry.get("path") or asset)):
                inside(Path(), file)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EscapesRoot) as error:
        raise WrongUse(f"{location} is no manifest of Kubric's ({error}); {REMEDY}") from error
    data, recorded = _archives(location, folder, str(content.get("data_dir") or "."))
    return AssetManifest(Source(name, len(text), hashlib.sha256(text).hexdigest()), data, recorded, entries)


def _archives(location: str, folder: str, data: str) -> tuple[str, str]:
    """Where the archives lie, and what their names are recorded with."""
    if "://" in data:
        return data, f"{data.rstrip('/')}/"
    below = data if "://" in folder else os.path.relpath(os.path.join(folder, data), folder)
    try:
        below = inside(Path(), os.path.normpath(below)).as_posix()
    except EscapesRoot as error:
        raise WrongUse(
            f"{location}: data_dir: {data!r} is not below the manifest's folder; lay the manifest beside the archives "
            "and leave data_dir out"
        ) from error
    return (folder, "") if below == "." else (f"{folder}/{below}", f"{below}/")


def unreadable(what: str, error: Exception) -> WrongUse:
    """What to raise for a manifest or an archive that is not there."""
    why = str(error.__cause__ or (error.strerror if isinstance(error, OSError) else error))
    return WrongUse(f"{what} cannot be read: {why}; {REMEDY}")
