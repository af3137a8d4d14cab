"""Furniture in one colour: chair, stool, table, bench and bed, of painted wood."""

from twinset_demo.canvas import Colour, shade
from twinset_demo.procedural_assets.model import Model
from twinset_demo.procedural_assets.paint import WHITE
from twinset_demo.procedural_assets.surface import lathe, rounded
from twinset_demo.procedural_assets.toys import wood


def _legs(model: Model, colour: Colour, x: float, y: float, height: float, thick: float) -> None:
    """Four square legs at (±x, ±y)."""
    for side in (-x, x):
        for end in (-y, y):
            model.add_box((thick, thick, height), (side, end, 0), colour, radius=thick / 6, solid=True)


def chair(model: Model, colour: Colour) -> None:
    """A kitchen chair: four legs, seat, two posts with three slats."""
    paint, dark = wood(colour), shade(colour, 0.8)
    _legs(model, dark, 7.6, 7.6, 17.0, 2.0)
    model.add_box((19.0, 18.5, 2.4), (0, 0, 16.6), paint, radius=0.8, solid=True)
    for x in (-8.0, 8.0):
        model.add_box((2.2, 2.0, 21.0), (x, 8.0, 18.0), colour, radius=0.6)
    for z in (24.0, 29.0, 34.5):
        model.add_box((15.0, 1.4, 3.4), (0, 8.0, z), paint, radius=0.5)
    model.collide_box((-9.2, 9.2), (7.0, 9.0), (18.0, 39.0))


def stool(model: Model, colour: Colour) -> None:
    """A round stool on three legs that spread."""
    legs = lathe(rounded([(0, 0), (1.1, 0), (1.4, 17.5), (0, 17.5)], 0.3), 14)
    for turned in (90, 210, 330):
        leg = legs.turned("y", -12).moved(9.6, 0, 0.3).turned("z", turned)
        model.add(leg, shade(colour, 0.8), solid=True)
    seat = rounded([(0, 16.8), (9.6, 16.8), (10.4, 17.6), (10.4, 19.2), (9.6, 20.0), (0, 20.0)], 0.6)
    model.add(lathe(seat, 48), wood(colour), "satin", solid=True)
    model.add(lathe([(6.6, 7.6), (7.2, 7.9), (7.2, 8.8), (6.6, 9.1)], 40), shade(colour, 0.8))


def table(model: Model, colour: Colour) -> None:
    """A table: four square legs, a frame and a top that sticks out."""
    _legs(model, shade(colour, 0.8), 19.0, 11.0, 22.0, 3.0)
    model.add_box((38.0, 22.0, 3.2), (0, 0, 18.6), shade(colour, 0.85), radius=0.4)
    model.add_box((46.0, 30.0, 2.4), (0, 0, 21.8), wood(colour), radius=0.8, solid=True)


def bench(model: Model, colour: Colour) -> None:
    """A garden bench: two side frames, three boards to sit on, two to lean against."""
    paint, dark = wood(colour), shade(colour, 0.75)
    for x in (-20.0, 20.0):
        for y, tall in ((-6.5, 16.0), (6.5, 31.0)):
            model.add_box((2.4, 2.4, tall), (x, y, 0), dark, radius=0.5, solid=True)
        model.add_box((2.4, 15.0, 2.2), (x, 0, 20.5), dark, radius=0.5)
        model.add_box((2.2, 2.2, 6.0), (x, -6.5, 15.0), dark, radius=0.5)
    for y in (-5.4, 0.0, 5.4):
        model.add_box((44.0, 4.6, 1.8), (0, y, 14.4), paint, radius=0.4)
    for z in (20.5, 26.5):
        model.add_box((44.0, 1.6, 4.6), (0, 6.8, z), paint, radius=0.4)
    model.collide_box((-22.0, 22.0), (-7.6, 7.6), (14.4, 16.2))
    model.collide_box((-22.0, 22.0), (6.0, 7.6), (16.2, 31.0))


def bed(model: Model, colour: Colour) -> None:
    """A single bed: frame with two end boards, mattress, pillow, and a blanket in the colour of the frame."""
    dark = shade(colour, 0.8)
    for x, tall in ((-22.0, 18.0), (22.0, 12.0)):
        model.add_box((2.2, 24.0, tall), (x, 0, 0), wood(dark), radius=0.8, solid=True)
    model.add_box((43.0, 22.0, 4.0), (0, 0, 3.4), dark, radius=0.5)
    model.add_box((42.0, 22.4, 4.6), (0, 0, 7.0), WHITE, "cloth", 1.6)
    model.add_box((28.0, 23.6, 5.4), (6.6, 0, 7.0), colour, "cloth", 1.8)
    model.add_box((8.0, 15.0, 3.2), (-15.4, 0, 11.2), WHITE, "cloth", 1.5)
    model.collide_box((-22.0, 22.0), (-11.8, 11.8), (3.4, 12.4))
