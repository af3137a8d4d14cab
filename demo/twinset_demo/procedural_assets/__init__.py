"""The built-in assets of EQ-Kubric: things that the project models itself, laid out as Google Scanned Objects are.

    manifest.json     what Kubric's AssetSource reads; archives lie beside it (no data_dir: the folder may be moved)
    ID.tar.gz         data.json, visual_geometry.obj + .mtl + texture.png, collision_geometry.obj, object.urdf

Ids are the caption vocabulary's names in kebab case. Z is up, things rest as they usually stand, with their front
towards -y (long things lie along x: toes, bonnet, spout and head point to -x). Units are metres.

`furniture`, `playthings` and `curiosities` are in no catalogue: `twinset_demo.kubric_grammar` paints them, and some
of the others, in the colours of its captions.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from twinset.shards.storage.whole_file import ensure_drawn
from twinset_demo.drawn import PROCEDURAL
from twinset_demo.in_processes import in_processes
from twinset_demo.procedural_assets import cloth, electronics, hardware, kitchen, shoes, toys, vessels
from twinset_demo.procedural_assets.archive import archive
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import COLOURS

MANIFEST = "manifest.json"
BLACK, WHITE, SILVER, BLUE = (30, 30, 32), COLOURS["white"], COLOURS["silver"], COLOURS["blue"]


class Asset(NamedTuple):
    """One asset: its category and the function that builds it in a model, with further arguments."""

    category: str
    build: Callable[..., None]
    arguments: tuple[Any, ...] = ()

    def model(self) -> Model:
        """The asset, built."""
        model = Model()
        self.build(model, *self.arguments)
        return model


#: Assets that differ in colour: the second part of their names, their category and the colours.
_COLOURED: tuple[tuple[str, str, Callable[..., None], str], ...] = (
    ("stripe-towel", "Towel", cloth.striped_towel, "blue red green"),
    ("square-saucer-plate", "Plate", vessels.square_plate, "green red yellow"),
    ("round-plate", "Plate", vessels.round_plate, "green brown blue"),
    ("plant-container", "Plant container", vessels.plant_container, "blue yellow red"),
    ("shoe", "Shoe", shoes.plain_shoe, "green pink yellow blue red"),
    ("drug-bottle", "Bottle", vessels.drug_bottle, "yellow red blue white"),
    ("bowl", "Bowl", vessels.bowl, "yellow brown blue white"),
    ("dog-bowl", "Bowl", vessels.dog_bowl, "grey pink"),
)
_ASSETS = {
    f"{colour}-{name}": Asset(category, build, (COLOURS[colour],))
    for name, category, build, colours in _COLOURED
    for colour in colours.split()
} | {
    "grey-wash-towel": Asset("Towel", cloth.wash_towel, (COLOURS["grey"],)),
    "pink-damask-bath-towel": Asset("Towel", cloth.bath_towel, (COLOURS["pink"],)),
    "black-hat": Asset("Hat", cloth.hat, (BLACK, (96, 96, 100))),
    "grey-hat": Asset("Hat", cloth.hat, ((138, 140, 144), (40, 40, 44))),
    "brown-hat": Asset("Hat", cloth.hat, ((122, 74, 36), (48, 28, 14))),
    "metallic-mobile-device-storage": Asset("Storage", electronics.device_rack, (SILVER, (70, 72, 76), "steel")),
    "white-mobile-device-storage": Asset("Storage", electronics.device_rack, (WHITE, (206, 206, 204))),
    "blue-and-white-mobile-device-storage": Asset("Storage", electronics.device_rack, (BLUE, WHITE)),
    "brown-shoe": Asset("Shoe", shoes.dark_shoe, ((118, 66, 30),)),
    "black-shoe": Asset("Shoe", shoes.dark_shoe, (BLACK,)),
    "white-running-shoe": Asset("Shoe", shoes.running_shoe, (WHITE, (150, 154, 160))),
    "purple-running-shoe": Asset("Shoe", shoes.running_shoe, (COLOURS["purple"], (230, 225, 240))),
    "black-boot": Asset("Shoe", shoes.boot, ((36, 35, 36),)),
    "black-sneaker": Asset("Shoe", shoes.sneaker, ((30, 30, 33),)),
    "white-canvas-shoe": Asset("Shoe", shoes.canvas_shoe, ((232, 230, 222),)),
    "purple-bottle": Asset("Bottle", vessels.drinking_bottle, (COLOURS["purple"],)),
    "blue-plastic-dog-bowl": Asset("Bowl", vessels.dog_bowl, (BLUE, "gloss")),
    "white-ramekin-porcelain": Asset("Crockery", vessels.ramekin),
    "white-porcelain-teapot": Asset("Crockery", vessels.teapot),
    "red-coffee-mug": Asset("Crockery", vessels.mug, (COLOURS["red"],)),
    "white-gaming-mouse": Asset("Electronics", electronics.mouse),
    "black-keyboard": Asset("Electronics", electronics.keyboard),
    "black-laptop": Asset("Electronics", electronics.laptop),
    "black-and-red-gameboy": Asset("Electronics", electronics.handheld_game),
    "white-gift-box-with-red-straps": Asset("Box", hardware.gift_box),
    "red-scissors": Asset("Tool", hardware.scissors),
    "black-and-yellow-hammer": Asset("Tool", hardware.hammer),
    "vintage-metal-alarm-clock": Asset("Clock", hardware.alarm_clock),
    "black-frypan": Asset("Kitchen", kitchen.frying_pan),
    "stainless-steel-toaster": Asset("Kitchen", kitchen.toaster),
    "stainless-steel-milk-frother": Asset("Kitchen", kitchen.milk_frother),
    "black-power-pressure-cooker": Asset("Kitchen", kitchen.pressure_cooker),
    "fabric-basket": Asset("Basket", cloth.basket),
    "school-bus-toy": Asset("Toy", toys.school_bus),
    "green-turtle-toy": Asset("Toy", toys.turtle),
    "purple-doll-house-wooden-sofa": Asset("Toy", toys.doll_sofa),
    "green-doll-house-wooden-refrigerator": Asset("Toy", toys.doll_refrigerator),
}


def catalogue() -> dict[str, Asset]:
    """Every asset by id, in alphabetical order: members of Figure 14's sets, and its list of objects and subjects."""
    return dict(sorted(_ASSETS.items()))


def ids() -> list[str]:
    """The ids of all assets, in alphabetical order."""
    return list(catalogue())


def ensure() -> Path:
    """The folder of the assets, built first where this machine does not have it yet (some ten seconds)."""
    return ensure_drawn(PROCEDURAL)


def files() -> list[str]:
    """Names of all files of the folder."""
    return [MANIFEST, *(f"{asset}.tar.gz" for asset in ids())]


def build(folder: Path) -> None:
    """Build all assets into an empty folder."""
    entries: dict[str, Any] = {}
    assets = catalogue()
    for name, (entry, packed) in zip(assets, in_processes(_archive, assets.items()), strict=True):
        entries[name] = entry
        (folder / f"{name}.tar.gz").write_bytes(packed)
    manifest = {"name": PROCEDURAL.name, "version": str(PROCEDURAL.version), "assets": entries}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def _archive(named: tuple[str, Asset]) -> tuple[dict[str, Any], bytes]:
    name, asset = named
    return archive(name, name.replace("-", " "), asset.category, asset.model())
