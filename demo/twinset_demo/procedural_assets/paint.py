"""Pictures that are wrapped around things: fabrics, weaves, stripes and lettering, painted with Pillow."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from twinset_demo.canvas import Colour

COLOURS: dict[str, Colour] = {
    "red": (196, 22, 28),
    "green": (30, 140, 50),
    "blue": (28, 70, 190),
    "yellow": (246, 200, 20),
    "brown": (104, 60, 28),
    "purple": (112, 40, 160),
    "pink": (240, 120, 165),
    "grey": (128, 130, 134),
    "white": (238, 238, 236),
    "silver": (196, 198, 202),
}
RED, YELLOW, WHITE, SILVER = (COLOURS[name] for name in ("red", "yellow", "white", "silver"))
OFF_WHITE, BLACK = (226, 222, 210), (22, 22, 24)
STEEL = (214, 216, 220)


def canvas(width: int, height: int, colour: Colour) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """An empty picture of one colour and its pen; y runs downwards."""
    picture = Image.new("RGB", (width, height), colour)
    return picture, ImageDraw.Draw(picture)


def grain(picture: Image.Image, amount: float, seed: int = 0, stretch: tuple[int, int] = (1, 1)) -> Image.Image:
    """A picture with brightness noise of standard deviation ``amount`` (levels), in patches of ``stretch`` pixels."""
    pixels = np.asarray(picture, float)
    height, width = pixels.shape[:2]
    coarse = np.random.default_rng(seed).normal(0, amount, (height // stretch[1] + 1, width // stretch[0] + 1))
    noise = coarse.repeat(stretch[1], axis=0).repeat(stretch[0], axis=1)[:height, :width]
    return Image.fromarray(np.clip(np.rint(pixels + noise[..., None]), 0, 255).astype(np.uint8))


def brushed(colour: Colour, bands: int = 5) -> Image.Image:
    """Brushed metal: fine lines along u, and upright bands of light that an even sky would not give it."""
    width = 256
    wave = np.arange(width) * 2 * np.pi / width
    light = 0.84 + 0.1 * np.cos(bands * wave) + 0.06 * np.cos((2 * bands + 1) * wave + 1)
    pixels = np.asarray(colour) * np.broadcast_to(light[None, :, None], (96, width, 1))
    return grain(Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8)), 5, 7, (width, 1))


def woven(picture: Image.Image, period: int, depth: float) -> Image.Image:
    """A picture seen through a plain weave: threads of ``period`` pixels go over and under each other."""
    pixels = np.asarray(picture, float)
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    over = (x // period + y // period) % 2
    across, along = np.sin(np.pi * ((x % period) + 0.5) / period), np.sin(np.pi * ((y % period) + 0.5) / period)
    light = 1 - depth * (1 - np.where(over, across, along))
    return Image.fromarray(np.clip(np.rint(pixels * light[..., None]), 0, 255).astype(np.uint8))


def lettering(pen: ImageDraw.ImageDraw, where: tuple[float, float], text: str, size: float, colour: Colour) -> None:
    """Text centred at a place, ``size`` pixels high, in Pillow's own font."""
    pen.text(where, text, fill=colour, font=ImageFont.load_default(size), anchor="mm")
