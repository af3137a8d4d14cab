"""The words of the grammar: objects with the shapes that show them, colours, sizes, numbers and relations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from twinset_demo.canvas import Colour
from twinset_demo.procedural_assets import (
    cloth,
    curiosities,
    electronics,
    furniture,
    hardware,
    playthings,
    shoes,
    toys,
    vessels,
)
from twinset_demo.procedural_assets.model import Model, Paint
from twinset_demo.procedural_assets.paint import COLOURS as PAINTS

Size = Literal["", "small", "large"]
Relation = Literal["left", "right", "front", "behind", "on", "under", "beside", "far", "and"]

#: Colour words and what is painted. Black and brown are not so dark that shapes vanish.
COLOURS: dict[str, Colour] = {
    **{name: PAINTS[name] for name in ("red", "green", "blue", "yellow", "brown", "purple", "pink", "white")},
    "black": (34, 34, 36),
    "gray": PAINTS["grey"],
    "orange": (238, 112, 16),
    "golden": (246, 196, 70),
}
SYNONYMS = {"grey": "gray", "gold": "golden"}
SIZES: dict[str, Size] = {
    "large": "large",
    "big": "large",
    "huge": "large",
    "giant": "large",
    "small": "small",
    "little": "small",
    "tiny": "small",
}
NUMBERS = {"a": 1, "an": 1, "the": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6} | {
    str(number): number for number in range(1, 7)
}
#: The longest words that fit count.
RELATIONS: dict[str, Relation] = {
    "to the left of": "left",
    "on the left of": "left",
    "on the left side of": "left",
    "left of": "left",
    "to the right of": "right",
    "on the right of": "right",
    "on the right side of": "right",
    "right of": "right",
    "in front of": "front",
    "behind": "behind",
    "on top of": "on",
    "on the top of": "on",
    "on": "on",
    "above": "on",
    "under": "under",
    "underneath": "under",
    "beneath": "under",
    "below": "under",
    "next to": "beside",
    "beside": "beside",
    "near": "beside",
    "close to": "beside",
    "far away from": "far",
    "far from": "far",
    "away from": "far",
    "and": "and",
    "with": "and",
}
#: Words between an object and its relation that change nothing.
VERBS = frozenset(
    ("is", "are", "sits", "sit", "sitting", "stands", "stand", "standing", "lies", "lie", "lying", "rests")
)
VERBS |= {"rest", "resting", "placed", "located"}

HUE_REACH, LEAST_SATURATION = 28, 60  # of 256, of what is taken for a shade of a colour


@dataclass(frozen=True, slots=True)
class Noun:
    """One kind of object.

    names: its words in the singular; the first names its assets. build: makes it in a model, in a colour unless it is
    of one make. extent: its longest side, scene units. colour: of one that the caption gives no colour. colours: that
    it may be said to have; empty for all. dyed: the colour that it is built in,
    of which every shade is replaced. top: share of its width and depth that carries, 0 where nothing lies on it.
    lies: whether it is put on other objects. shelter: free height below it as a share of its longest side; 0 where
    nothing stands there. tall: its height, likewise. plural: of its names, where it is not the name and an "s".
    """

    names: tuple[str, ...]
    build: Callable[..., None]
    extent: float
    colour: str
    colours: tuple[str, ...] = ()
    dyed: Colour | None = None
    top: float = 0.0
    lies: bool = True
    shelter: float = 0.0
    tall: float = 1.0
    plural: tuple[str, ...] = ()

    def model(self, colour: str) -> Model:
        """The object in a colour."""
        model = Model()
        if self.colours or self.dyed is not None:
            self.build(model)
        else:
            self.build(model, COLOURS[colour])
        if self.dyed is not None and colour != self.colour:
            new = COLOURS[colour]
            model.surfaces = [(one, dyed(paint, self.dyed, new), finish) for one, paint, finish in model.surfaces]
        if colour == "golden":
            model.surfaces = [(surface, paint, "steel") for surface, paint, _ in model.surfaces]
        return model


def dyed(paint: Paint, own: Colour, new: Colour) -> Image.Image:
    """A paint in which every shade of a colour is one of another colour; the rest stays as it is."""
    picture = paint if isinstance(paint, Image.Image) else Image.new("RGB", (8, 8), paint)
    pixels = np.asarray(picture).astype(float)
    hsv = np.asarray(Image.fromarray(pixels.astype(np.uint8)).convert("HSV")).astype(float)
    hue, _, value = (float(one) for one in np.asarray(Image.new("RGB", (1, 1), own).convert("HSV"))[0, 0])
    apart = np.abs((hsv[..., 0] - hue + 128) % 256 - 128)
    shades = np.asarray(new) * (hsv[..., 2] / value)[..., None]
    changed = (apart < HUE_REACH) & (hsv[..., 1] > LEAST_SATURATION)
    return Image.fromarray(np.clip(np.rint(np.where(changed[..., None], shades, pixels)), 0, 255).astype(np.uint8))


def _hat(model: Model, colour: Colour) -> None:
    cloth.hat(model, colour, (236, 232, 224) if sum(colour) < 160 else (40, 38, 40))


NOUNS: tuple[Noun, ...] = (
    Noun(("mug", "cup", "coffee mug", "coffee cup"), vessels.mug, 0.7, "white", tall=0.8),
    Noun(("bowl",), vessels.bowl, 0.8, "blue", tall=0.45),
    Noun(("plate", "tray"), vessels.round_plate, 1.0, "white", tall=0.1, top=0.55),
    Noun(("napkin", "towel"), cloth.wash_towel, 1.0, "pink", tall=0.12, top=0.9),
    Noun(("vase",), vessels.vase, 1.0, "blue"),
    Noun(("bottle",), vessels.drinking_bottle, 1.0, "green"),
    Noun(("bucket",), vessels.bucket, 0.95, "red"),
    Noun(("teapot",), vessels.teapot, 0.95, "white"),
    Noun(("hat", "cap"), _hat, 0.95, "brown"),
    Noun(("shoe",), shoes.plain_shoe, 1.0, "red"),
    Noun(("ball",), playthings.ball, 0.65, "red"),
    Noun(("cube", "box", "block"), playthings.cube, 0.75, "yellow", top=0.95, plural=("cubes", "boxes", "blocks")),
    Noun(("balloon",), playthings.balloon, 1.0, "red", lies=False),
    Noun(("frisbee",), playthings.frisbee, 0.9, "yellow", tall=0.14, top=0.6),
    Noun(("car", "toy car"), playthings.car, 1.15, "red", tall=0.45),
    Noun(("truck", "toy truck"), playthings.truck, 1.2, "blue"),
    Noun(("boat", "ship", "toy boat"), playthings.boat, 1.2, "blue"),
    Noun(("drum",), playthings.drum, 0.85, "red", top=0.7),
    Noun(("barrel",), playthings.barrel, 0.9, "brown", top=0.7),
    Noun(("chair",), furniture.chair, 1.3, "brown", lies=False),
    Noun(("stool",), furniture.stool, 0.95, "brown", top=0.95, lies=False),
    Noun(("table", "desk"), furniture.table, 1.7, "brown", top=0.95, lies=False, shelter=0.42),
    Noun(("bench",), furniture.bench, 1.6, "green", lies=False, plural=("benches",)),
    Noun(("bed",), furniture.bed, 1.6, "blue", lies=False),
    Noun(("couch", "sofa"), toys.doll_sofa, 1.4, "purple", lies=False, plural=("couches", "sofas")),
    Noun(("refrigerator", "fridge"), toys.doll_refrigerator, 1.4, "white", top=0.9, lies=False),
    Noun(
        ("bus", "school bus"),
        toys.school_bus,
        1.2,
        "yellow",
        dyed=COLOURS["yellow"],
        top=0.7,
        plural=("buses", "school buses"),
    ),
    Noun(("turtle",), toys.turtle, 0.85, "green", dyed=COLOURS["green"]),
    Noun(("laptop", "computer"), electronics.laptop, 1.1, "black", ("black",)),
    Noun(("clock", "alarm clock"), hardware.alarm_clock, 0.85, "golden", ("golden",)),
    Noun(("basket",), cloth.basket, 0.95, "brown", dyed=(200, 160, 104)),
    Noun(("pumpkin",), playthings.pumpkin, 0.8, "orange", dyed=playthings.ORANGE),
    Noun(("cactus",), playthings.cactus, 1.1, "green", dyed=playthings.GREEN, plural=("cactuses",)),
    Noun(("snowman",), playthings.snowman, 1.25, "white", ("white",), lies=False, plural=("snowmen",)),
    Noun(("ladder",), curiosities.ladder, 1.6, "yellow", lies=False),
    Noun(("globe",), curiosities.globe, 1.0, "brown", ("blue",)),
    Noun(("lantern",), curiosities.lantern, 1.0, "red"),
    Noun(("treasure chest",), curiosities.treasure_chest, 1.0, "brown"),
    Noun(("penguin",), curiosities.penguin, 1.0, "black", ("black",)),
    Noun(("telescope",), curiosities.telescope, 1.3, "red", lies=False),
    Noun(("anvil",), curiosities.anvil, 1.0, "black", ("black",), top=0.4),
    Noun(("birdcage",), curiosities.birdcage, 1.1, "white"),
)
#: Every name in the singular, and in the plural, with its noun.
SINGULAR = {name: noun for noun in NOUNS for name in noun.names}
PLURAL = {many: noun for noun in NOUNS for many in (noun.plural or tuple(f"{name}s" for name in noun.names))} | {
    "cacti": SINGULAR["cactus"]
}
