"""The built-in assets of EQ-Kubric: things that the project models itself, laid out as Google Scanned Objects are.

    manifest.json     what Kubric's AssetSource reads; archives lie beside it (no data_dir: the folder may be moved)
    ID.tar.gz         data.json, visual_geometry.obj + .mtl + texture.png, collision_geometry.obj, object.urdf

Ids are the caption vocabulary's names in kebab case. Z is up, things rest as they usually stand, with their front
towards -y (long things lie along x: toes, bonnet, spout and head point to -x). Units are metres.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generators.builtin.atomic_folder import atomic_folder
from generators.builtin.procedural_assets.archive import archive
from generators.builtin.procedural_assets.catalogue import catalogue
from manifests.errors import WrongUse
from manifests.locations import PROCEDURAL_VERSION, procedural_assets_folder

MANIFEST = "manifest.json"


def ids() -> list[str]:
    """The ids of all assets, in alphabetical order."""
    return list(catalogue())


def ensure() -> Path:
    """The folder of the assets, built first where this machine does not have it yet (some ten seconds).

    Raises:
        WrongUse: Files are missing from it; the message names the remedy.
    """
    folder = procedural_assets_folder()
    if not folder.is_dir():
        build(folder)
    for name in (MANIFEST, *(f"{asset}.tar.gz" for asset in ids())):
        if not (folder / name).is_file():
            raise WrongUse(f"{folder} lacks {name}; remove this folder, and the same command builds it again")
    return folder


def build(folder: Path) -> None:
    """Build all assets into ``folder``, which appears complete or not at all."""
    with atomic_folder(folder) as unfinished:
        entries: dict[str, Any] = {}
        for name, asset in catalogue().items():
            entries[name], packed = archive(name, name.replace("-", " "), asset.category, asset.model())
            (unfinished / f"{name}.tar.gz").write_bytes(packed)
        manifest = {"name": "procedural-assets", "version": str(PROCEDURAL_VERSION), "assets": entries}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
