"""The kinds of things in the stills: how each is drawn, what it can look like and which COCO category it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from generators.builtin.photos import creatures, furniture, outdoors, small_things, vehicles
from generators.builtin.photos.sheet import Look, Sheet

#: COCO's panoptic categories that the stills have, by their supercategory, with their identifiers.
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


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing.

    draw: draws it on a sheet whose origin is its foot. category: COCO's. choices: by attribute type, what it can look
    like; it always has one attribute of each type. top: how high above its foot things stand on it. flat: whether it
    lies on the ground, so that what comes after may stand on it anywhere.
    """

    draw: Callable[[Sheet, Look], None]
    category: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    top: float = 0.0
    flat: bool = False


_PAINT = ("red", "blue", "green", "yellow", "white")
_BRIGHT = ("red", "blue", "green", "yellow", "orange")
_GLAZE = ("red", "blue", "green", "yellow", "white", "orange")
_CLOTH = ("plain", "striped", "dotted")
_SIZES = ("small", "large")

KINDS: dict[str, Kind] = {
    "car": Kind(vehicles.car, "car", {"color": _PAINT}),
    "bus": Kind(vehicles.bus, "bus", {"color": ("red", "blue", "yellow", "green")}),
    "truck": Kind(vehicles.truck, "truck", {"color": ("red", "blue", "green", "yellow")}),
    "bicycle": Kind(vehicles.bicycle, "bicycle", {"color": ("red", "blue", "green", "yellow", "black")}),
    "boat": Kind(vehicles.boat, "boat", {"color": ("red", "blue", "green", "white"), "size": _SIZES}),
    "man": Kind(creatures.man, "person", {"color": ("red", "blue", "green", "yellow", "white")}),
    "woman": Kind(creatures.woman, "person", {"color": ("red", "blue", "green", "yellow", "pink")}),
    "dog": Kind(creatures.dog, "dog", {"color": ("brown", "black", "white", "gray"), "size": _SIZES}),
    "cat": Kind(creatures.cat, "cat", {"color": ("orange", "black", "white", "gray")}),
    "bird": Kind(creatures.bird, "bird", {"color": ("white", "black", "blue", "red", "yellow")}),
    "horse": Kind(creatures.horse, "horse", {"color": ("brown", "black", "white")}),
    "cow": Kind(creatures.cow, "cow", {"color": ("white", "brown", "black")}),
    "sheep": Kind(creatures.sheep, "sheep", {"color": ("white",)}),
    "teddy bear": Kind(creatures.teddy_bear, "teddy bear", {"color": ("brown", "pink", "white"), "size": _SIZES}),
    "tree": Kind(outdoors.tree, "tree-merged", {"color": ("green", "yellow"), "size": _SIZES}),
    "bench": Kind(outdoors.bench, "bench", {"material": ("wooden", "metal")}, top=17),
    "traffic light": Kind(outdoors.traffic_light, "traffic light", {"color": ("red", "green", "yellow")}),
    "stop sign": Kind(outdoors.stop_sign, "stop sign", {"color": ("red",)}),
    "fire hydrant": Kind(outdoors.fire_hydrant, "fire hydrant", {"color": ("red", "yellow")}),
    "umbrella": Kind(
        outdoors.umbrella, "umbrella", {"color": _BRIGHT, "pattern": _CLOTH, "state": ("open", "open", "closed")}
    ),
    "kite": Kind(outdoors.kite, "kite", {"color": _BRIGHT, "pattern": _CLOTH}),
    "surfboard": Kind(outdoors.surfboard, "surfboard", {"color": ("red", "blue", "yellow", "green")}),
    "towel": Kind(
        outdoors.towel, "towel", {"color": ("red", "blue", "green", "yellow", "pink"), "pattern": _CLOTH}, flat=True
    ),
    "flowers": Kind(outdoors.flower, "flower", {"color": ("red", "yellow", "pink", "white", "purple")}),
    "rock": Kind(outdoors.rock, "rock-merged", {"color": ("gray", "brown"), "size": _SIZES}),
    "house": Kind(outdoors.house, "house", {"color": ("white", "yellow", "red", "blue")}, top=84),
    "fence": Kind(outdoors.fence, "fence-merged", {"color": ("white", "brown")}),
    "ball": Kind(outdoors.ball, "sports ball", {"color": _GLAZE, "pattern": _CLOTH, "size": _SIZES}),
    "backpack": Kind(outdoors.backpack, "backpack", {"color": ("red", "blue", "green", "black", "yellow")}),
    "suitcase": Kind(outdoors.suitcase, "suitcase", {"color": ("red", "blue", "green", "black", "brown")}),
    "couch": Kind(
        furniture.couch, "couch", {"color": ("red", "blue", "green", "gray"), "pattern": ("plain", "striped")}, top=37
    ),
    "chair": Kind(
        furniture.chair,
        "chair",
        {"color": ("red", "blue", "green", "white", "black"), "material": ("wooden", "metal")},
        top=33,
    ),
    "table": Kind(furniture.table, "table-merged", {"material": ("wooden",)}, top=52),
    "bed": Kind(furniture.bed, "bed", {"color": ("red", "blue", "green", "yellow"), "pattern": _CLOTH}, top=26),
    "pillow": Kind(furniture.pillow, "pillow", {"color": _GLAZE, "pattern": _CLOTH}),
    "television": Kind(furniture.tv, "tv", {"color": ("black",)}),
    "lamp": Kind(furniture.lamp, "light", {"color": ("yellow", "red", "white", "blue", "green")}),
    "rug": Kind(
        furniture.rug,
        "rug-merged",
        {"color": ("red", "blue", "green", "yellow"), "pattern": _CLOTH, "shape": ("round", "rectangular")},
        flat=True,
    ),
    "curtain": Kind(furniture.curtain, "curtain", {"color": ("red", "blue", "green", "yellow"), "pattern": _CLOTH}),
    "window": Kind(furniture.window, "window-other", {"shape": ("rectangular", "round")}),
    "clock": Kind(
        furniture.clock, "clock", {"color": ("red", "blue", "black", "green", "brown"), "shape": ("round", "square")}
    ),
    "refrigerator": Kind(furniture.refrigerator, "refrigerator", {"color": ("white", "red", "blue", "gray")}),
    "oven": Kind(furniture.oven, "oven", {"color": ("white", "red", "gray", "black")}),
    "microwave": Kind(furniture.microwave, "microwave", {"color": ("white", "red", "black", "gray")}),
    "sink": Kind(furniture.sink, "sink", {"material": ("metal",)}),
    "cup": Kind(small_things.cup, "cup", {"color": _GLAZE, "pattern": _CLOTH}),
    "bowl": Kind(small_things.bowl, "bowl", {"color": _GLAZE, "pattern": _CLOTH}),
    "bottle": Kind(small_things.bottle, "bottle", {"color": ("green", "brown", "blue", "yellow", "red")}),
    "vase": Kind(small_things.vase, "vase", {"color": _GLAZE, "pattern": _CLOTH}),
    "plant": Kind(small_things.potted_plant, "potted plant", {"size": _SIZES}),
    "book": Kind(small_things.book, "book", {"color": ("red", "blue", "green", "yellow"), "state": ("open", "closed")}),
    "apple": Kind(small_things.apple, "apple", {"color": ("red", "green", "yellow")}),
    "banana": Kind(small_things.banana, "banana", {"color": ("yellow", "green")}),
    "cake": Kind(small_things.cake, "cake", {"color": ("pink", "white", "brown")}),
    "laptop": Kind(small_things.laptop, "laptop", {"color": ("gray", "black", "white")}),
    "pizza": Kind(small_things.pizza, "pizza"),
    "box": Kind(small_things.box, "cardboard", {"color": ("brown",)}),
}
