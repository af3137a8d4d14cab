"""A built subset of small pairs of two kinds, and stages that ask about them."""

import json
from pathlib import Path
from typing import Any

from PIL import Image

import twinset
from twinset.contracts.recipe import Recipe, parse_recipe

PAIRS, SAMPLE = 60, 6


def recipe_of(folder: Path, **settings: Any) -> Recipe:
    """A subset of pairs, and a stage that asks people about a sample of them."""
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    asking = {"kind": "human-baseline", "pairs": "mine", "sample": SAMPLE, **settings}
    subsets = {"mine": {"source": source, "shard_size": PAIRS, "encoding": {"format": "png"}}}
    return parse_recipe({"name": "asked", "stages": {"human-baseline": {"source": asking}}, "subsets": subsets})


def write_pairs(folder: Path, count: int) -> Path:
    """Annotations of pairs ``p0``, ``p1`` …, with their images beside them."""
    records = []
    for n in range(count):
        for side in (0, 1):
            Image.new("RGB", (8, 8), (n, 90 * side, 40)).save(folder / f"{n}-{side}.png")
        names = {f"image{side}": f"{n}-{side}.png" for side in (0, 1)}
        records.append({"id": f"p{n}", **names, "caption0": f"left {n}", "caption1": f"right {n}"})
    (folder / "pairs.json").write_text(json.dumps(records))
    return folder / "pairs.json"


def build_pairs(folder: Path) -> Path:
    """The subset, built. Returns OUT."""
    write_pairs(folder, PAIRS)
    twinset.build(recipe_of(folder), str(folder / "out"))
    return folder / "out"
