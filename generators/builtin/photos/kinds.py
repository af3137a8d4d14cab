"""What a kind of thing is, and COCO's categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from generators.builtin.photos.sheet import Look, Sheet

#: COCO's panoptic categories that the photos have, by their supercategory, with their identifiers.
SUPERCATEGORIES: dict[str, dict[str, int]] = {
    "person": {"person": 1},
    "vehicle": {"bicycle": 2, "car": 3, "bus": 6, "truck": 8, "boat": 9},
    "outdoor": {"traffic light": 10, "fire hydrant": 11, "stop sign": 13, "bench": 15},
    "animal": {"bird": 16, "cat": 17, "dog": 18, "horse": 19, "sheep": 20, "cow": 21},
    "accessory": {"backpack": 27, "umbrella": 28, "suitcase": 33},
    "sports": {"sports ball": 37, "kite": 38, "surfboard": 42},
    "kitchen": {"bottle": 44, "cup": 47, "bowl": 51},
    "food": {"banana": 52, "apple": 53, "pizza": 59, "cake": 61},
    "furniture": {"chair": 62, "couch": 63, "potted plant": 64, "bed": 65},
    "electronic": {"tv": 72, "laptop": 73},
    "appliance": {"microwave": 78, "oven": 79, "sink": 81, "refrigerator": 82},
    "indoor": {"book": 84, "clock": 85, "vase": 86, "teddy bear": 88},
    "raw-material": {"cardboard": 100},
    "furniture-stuff": {"counter": 107, "light": 130, "cabinet-merged": 188, "table-merged": 189},
    "textile": {"curtain": 109, "pillow": 141, "towel": 168, "rug-merged": 200},
    "floor": {"floor-wood": 118, "floor-other-merged": 190},
    "plant": {"flower": 119, "tree-merged": 184, "grass-merged": 193},
    "building": {"house": 128, "building-other-merged": 197},
    "ground": {"road": 149, "sand": 154, "snow": 159, "pavement-merged": 191, "dirt-merged": 194},
    "water": {"sea": 155, "water-other": 178},
    "window": {"window-other": 181},
    "structural": {"fence-merged": 185},
    "sky": {"sky-other-merged": 187},
    "solid": {"mountain-merged": 192, "rock-merged": 198},
    "wall": {"wall-other-merged": 199},
}
CATEGORIES = {name: identifier for of in SUPERCATEGORIES.values() for name, identifier in of.items()}
FIRST_STUFF = 92  # categories from this one on are stuff, of which an image has one segment each

BASIC = ("red", "blue", "green", "yellow")
PAINT = ("red", "blue", "green", "yellow", "white")
BRIGHT = ("red", "blue", "green", "yellow", "orange")
GLAZE = ("red", "blue", "green", "yellow", "white", "orange")
PATTERNS = ("plain", "striped", "dotted")
SIZES = ("small", "large")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing.

    Args:
        paint: Paints it on a sheet whose origin is the middle of its foot.
        category: COCO's.
        choices: By attribute type, what it can look like; it always has one attribute of each type.
        top: How high above its foot things stand on it.
        flat: Whether it lies on the ground, so that what comes after may stand on it anywhere.
        shadow: Half axes of its shadow on the ground.
    """

    paint: Callable[[Sheet, Look], None]
    category: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    top: float = 0.0
    flat: bool = False
    shadow: tuple[float, float] | None = None
