"""Which assets there are: the name that a caption uses, in kebab case, its category and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from generators.builtin.procedural_assets import (
    bottles,
    cloth,
    computers,
    crockery,
    electronics,
    hardware,
    kitchen,
    shoes,
    toys,
)
from generators.builtin.procedural_assets.model import Colour, Model
from generators.builtin.procedural_assets.paint import (
    BLUE,
    BROWN,
    GREEN,
    GREY,
    PINK,
    PURPLE,
    RED,
    SILVER,
    STEEL_DARK,
    WHITE,
    YELLOW,
    shade,
)

Build = Callable[[], Model]


def catalogue() -> dict[str, tuple[str, Build]]:
    """Every asset: id → (category, builder), in alphabetical order."""
    return dict(sorted({**dict(_attribute_sets()), **dict(_general())}.items()))


def _attribute_sets() -> Iterator[tuple[str, tuple[str, Build]]]:
    """The members of Figure 14's sets, which differ in colour or kind."""
    colours: dict[str, Colour] = {
        "blue": BLUE,
        "red": RED,
        "green": GREEN,
        "yellow": YELLOW,
        "brown": BROWN,
        "white": WHITE,
    }
    for name in ("blue", "red", "green"):
        yield f"{name}-stripe-towel", ("Towel", partial(striped_towel, colours[name]))
    yield "grey-wash-towel", ("Towel", partial(wash_towel, GREY))
    for name, felt, band in (
        ("black", (30, 30, 32), (96, 96, 100)),
        ("grey", (138, 140, 144), (40, 40, 44)),
        ("brown", (122, 74, 36), (48, 28, 14)),
    ):
        yield f"{name}-hat", ("Hat", partial(cloth.hat, felt, band))
    for name in ("green", "red", "yellow"):
        yield f"{name}-square-saucer-plate", ("Plate", partial(crockery.square_plate, colours[name]))
    for name in ("green", "brown", "blue"):
        yield f"{name}-round-plate", ("Plate", partial(crockery.round_plate, colours[name]))
    for name in ("blue", "yellow", "red"):
        yield f"{name}-plant-container", ("Plant container", partial(crockery.plant_container, colours[name]))
    yield "metallic-mobile-device-storage", ("Storage", partial(electronics.device_rack, SILVER, STEEL_DARK, "steel"))
    yield "white-mobile-device-storage", ("Storage", partial(electronics.device_rack, WHITE, (206, 206, 204)))
    yield "blue-and-white-mobile-device-storage", ("Storage", partial(electronics.device_rack, BLUE, WHITE))
    yield "brown-shoe", ("Shoe", partial(shoes.dark_shoe, (118, 66, 30)))
    yield "black-shoe", ("Shoe", partial(shoes.dark_shoe, (30, 30, 32)))
    for name, colour in (("green", GREEN), ("pink", PINK), ("yellow", YELLOW), ("blue", BLUE), ("red", RED)):
        yield f"{name}-shoe", ("Shoe", partial(shoes.plain_shoe, colour))
    yield "white-running-shoe", ("Shoe", partial(shoes.running_shoe, WHITE, (150, 154, 160)))
    yield "purple-running-shoe", ("Shoe", partial(shoes.running_shoe, PURPLE, (230, 225, 240)))
    for name in ("yellow", "red", "blue"):
        yield f"{name}-drug-bottle", ("Bottle", partial(bottles.drug_bottle, colours[name]))
    yield "purple-bottle", ("Bottle", partial(bottles.drinking_bottle, PURPLE))
    for name in ("yellow", "brown", "blue", "white"):
        yield f"{name}-bowl", ("Bowl", partial(crockery.bowl, colours[name]))
    yield "grey-dog-bowl", ("Bowl", partial(crockery.dog_bowl, GREY))
    yield "pink-dog-bowl", ("Bowl", partial(crockery.dog_bowl, PINK))
    yield "blue-plastic-dog-bowl", ("Bowl", partial(crockery.dog_bowl, BLUE, "gloss"))


def _general() -> Iterator[tuple[str, tuple[str, Build]]]:
    """Figure 14's list of objects and subjects."""
    yield "pink-damask-bath-towel", ("Towel", bath_towel)
    yield "white-ramekin-porcelain", ("Crockery", crockery.ramekin)
    yield "white-porcelain-teapot", ("Crockery", crockery.teapot)
    yield "red-coffee-mug", ("Crockery", partial(crockery.mug, RED))
    yield "white-gaming-mouse", ("Electronics", computers.mouse)
    yield "black-keyboard", ("Electronics", computers.keyboard)
    yield "black-laptop", ("Electronics", computers.laptop)
    yield "black-and-red-gameboy", ("Electronics", electronics.handheld_game)
    yield "black-boot", ("Shoe", partial(shoes.boot, (36, 35, 36)))
    yield "black-sneaker", ("Shoe", partial(shoes.sneaker, (30, 30, 33)))
    yield "white-canvas-shoe", ("Shoe", partial(shoes.canvas_shoe, (232, 230, 222)))
    yield "white-gift-box-with-red-straps", ("Box", hardware.gift_box)
    yield "red-scissors", ("Tool", hardware.scissors)
    yield "black-and-yellow-hammer", ("Tool", hardware.hammer)
    yield "vintage-metal-alarm-clock", ("Clock", hardware.alarm_clock)
    yield "black-frypan", ("Kitchen", kitchen.frying_pan)
    yield "stainless-steel-toaster", ("Kitchen", kitchen.toaster)
    yield "stainless-steel-milk-frother", ("Kitchen", kitchen.milk_frother)
    yield "black-power-pressure-cooker", ("Kitchen", kitchen.pressure_cooker)
    yield "white-drug-bottle", ("Bottle", partial(bottles.drug_bottle, WHITE))
    yield "fabric-basket", ("Basket", cloth.basket)
    yield "school-bus-toy", ("Toy", toys.school_bus)
    yield "green-turtle-toy", ("Toy", toys.turtle)
    yield "purple-doll-house-wooden-sofa", ("Toy", toys.doll_sofa)
    yield "green-doll-house-wooden-refrigerator", ("Toy", toys.doll_refrigerator)


def striped_towel(colour: Colour) -> Model:
    """A striped dish towel."""
    return cloth.towel(cloth.striped_cloth(colour), cloth.WHITE_TERRY)


def wash_towel(colour: Colour) -> Model:
    """A plain, thicker wash towel."""
    return cloth.towel(cloth.plain_cloth(colour), shade(colour, 0.9), 1.2)


def bath_towel() -> Model:
    """A thick pink towel with a damask pattern."""
    return cloth.towel(cloth.damask_cloth(PINK), shade(PINK, 0.9), 1.5)
