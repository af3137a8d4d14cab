"""A small recipe of a user, installed packages, and Python as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]


def write_recipe(folder: Path, pairs: int = 6, shard_size: int = 2, **subset: Any) -> Path:
    """Write a recipe of pairs of one-coloured pictures, with its inputs beside it. subset: more of its settings."""
    (folder / "images").mkdir(parents=True)
    records = []
    for number in range(pairs):
        for side in (0, 1):
            picture = Image.new("RGB", (24, 16), (40 * number % 256, 200 * side, 90 + number // 32))
            picture.save(folder / f"images/{number}-{side}.png")
        pictures = {f"image{side}": f"{number}-{side}.png" for side in (0, 1)}
        captions = {f"caption{side}": f"picture {number} is shade {side}" for side in (0, 1)}
        records.append({"id": str(number), **pictures, **captions})
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    source = {"kind": "image-pairs", "annotations": "pairs.jsonl", "media": "images", "licence": "CC0-1.0"}
    stage = {"source": source, "shard_size": shard_size, **subset}
    (folder / "recipe.yaml").write_text(yaml.safe_dump({"name": "shades", "subsets": {"pairs": stage}}))
    return folder / "recipe.yaml"


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-6000:]}{done.stderr[-3000:]}"
    return done.stdout


def run_python(folder: Path, *arguments: str, source: Path = ROOT / "src") -> str:
    """What a command of this Python prints, with twinset and what is installed below ``folder`` at hand."""
    places = os.pathsep.join((str(folder / "installed"), str(source)))
    # Safe: the current folder may hold modules too, and must not come before what is installed.
    environment = {**os.environ, "PYTHONPATH": places, "PYTHONSAFEPATH": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return run([sys.executable, *arguments], folder, environment)


def install(folder: Path, package: str) -> None:
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", "installed")
    run_python(folder, "-m", "pip", "install", *options, package)


def write_package(folder: Path, name: str, points: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
    """Write what an installed package leaves on the import path. points: entry points by group and name."""
    meta = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    meta.mkdir(parents=True)
    (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, places in points.items():
        lines += [f"[{group}]", *(f"{kind} = {place}" for kind, place in places.items())]
    (meta / "entry_points.txt").write_text("\n".join(lines) + "\n")
