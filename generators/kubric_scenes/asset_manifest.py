"""Manifests of asset sources in the layout of Google Scanned Objects, as Kubric publishes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import WrongUse
from shards.media import EscapesRoot, inside
from shards.samples import Source
from shards.store import Store

REMEDY = (
    "name a manifest that can be read: a local mirror of Kubric's bucket (without `data_dir` the archives are looked"
    " for beside it), or s3://…, https://…, gs://… (which needs gcsfs)"
)


@dataclass(frozen=True, slots=True)
class AssetManifest:
    """A manifest that was read. source: its file; data: folder or URL of the archives; entries: by asset id."""

    source: Source
    data: str
    entries: dict[str, Any]


def read_manifest(location: str) -> AssetManifest:
    """The manifest ``{"data_dir": …, "assets": {ID: …}}`` at a path or URL.

    A relative or absent `data_dir` is taken from the manifest's own folder. Raises WrongUse, naming it and the remedy,
    when it is absent or damaged; OSError when a store cannot be reached for now.
    """
    folder, _, name = location.rpartition("/")
    folder = folder or "."
    try:
        text = Store(folder).read(name)
    except (WrongUse, FileNotFoundError, NotADirectoryError) as error:
        raise unreadable(location, error) from error
    try:
        content = json.loads(text)
        entries: dict[str, Any] = dict(content["assets"].items())
        for asset, entry in entries.items():
            if "/" in asset or not isinstance(entry, dict):
                raise ValueError(f"entry {asset!r}")
            inside(Path(), asset)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, EscapesRoot) as error:
        raise WrongUse(f"{location} is no manifest of Kubric's ({error}); {REMEDY}") from error
    data = str(content.get("data_dir") or ".")
    data = data if "://" in data or data.startswith("/") else f"{folder}/{data}"
    return AssetManifest(Source(name, len(text), hashlib.sha256(text).hexdigest()), data, entries)


def unreadable(what: str, error: Exception) -> WrongUse:
    """What to raise for a manifest or an archive that is not there."""
    why = str(error.__cause__ or (error.strerror if isinstance(error, OSError) else error))
    return WrongUse(f"{what} cannot be read: {why}; {REMEDY}")
