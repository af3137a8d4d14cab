"""Takes a picture of the small world apart by colour: its frame, its place and time, and the pixels of objects."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import FLOOR, FRAME, FRAME_WOOD, GROUND, HORIZON, SIZE, SKY, WALL
from twinset_demo.small_diffusion.scenes import COLOURS, PLACES, TIMES

Picture = NDArray[np.float32]
Mask = NDArray[np.bool_]

#: Distances in CIELAB (CIE76; about 2 is just visible). The nearest two grounds under one sky are 14 apart.
BACKGROUND_DISTANCE = 9.0
WOOD_DISTANCE = 22.0
#: Grey levels that a pixel may lie beside the line from background to object colour, on which soft edges lie.
BESIDE = 55.0
INDOORS = "wall"  # instead of a time
SOFTNESS = 0.6  # sigma in pixels of the smoothing under which objects are found
_PALETTE = np.asarray(list(COLOURS.values()), np.float32)


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What a picture shows behind its objects; None: nothing that the painter draws.

    time: "" by day and before a wall. window: rows and columns inside the frame, if there is one. shares:
    (colours, 64, 64), how much of each pixel an object of each of COLOURS covers, 0..1. objects: (64, 64) pixels of
    which one covers half or more.
    """

    style: str | None
    place: str | None
    time: str | None
    window: tuple[slice, slice]
    shares: Picture
    objects: Mask


def read_backdrop(pixels: Pixels) -> Backdrop:
    """Style, place, time and objects' pixels of a picture, (64, 64, 3) uint8 RGB."""
    style = _style(pixels)
    edge = FRAME if style == "painting" else 0
    window = (slice(edge, SIZE - edge), slice(edge, SIZE - edge))
    inside = np.zeros((SIZE, SIZE), np.bool_)
    inside[window] = True
    # Wide areas bear more smoothing than objects do, and need it: noise of equal grey levels tells most in the dark.
    fine, wide = _smooth(pixels, window, SOFTNESS), _smooth(pixels, window, 1.5)

    rows = np.arange(SIZE)[:, None]
    above, below = inside & (rows < HORIZON - 4), inside & (rows > HORIZON + 4)
    sky_name, sky = _nearest(wide, above, _skies())
    ground_name, ground = _nearest(wide, below, _grounds(sky_name))
    before_sky, before_ground = _shares(fine, sky) * inside, _shares(fine, ground) * inside
    # About the horizon a pixel may show sky or ground: an object is what is neither.
    shares = np.where(above, before_sky, np.where(below, before_ground, np.minimum(before_sky, before_ground)))
    objects = shares.max(0) >= 0.5
    free = inside & ~grown(objects | ~inside, 3)
    sky_fits, ground_fits = _fits(wide, free & above, sky), _fits(wide, free & below, ground)
    place = ground_name if ground_fits and (sky_fits or ground_name) else None  # indoors, the wall is half the place
    time = sky_name.removeprefix(INDOORS) if sky_fits else None
    return Backdrop(style, place, time, window, shares, objects)


def nearest_colour(colours: Picture) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Index into COLOURS and distance of the colour of an object that is nearest to each of (n, 3) colours."""
    apart = np.linalg.norm(_lab(colours)[:, None] - _lab(_PALETTE), axis=2)
    return apart.argmin(1), apart.min(1)


def object_mask(pixels: Pixels, dilate: int = 2) -> Mask:
    """(64, 64) pixels where objects are, ``dilate`` pixels wider on each side for soft edges."""
    return grown(read_backdrop(pixels).objects, dilate)


def _style(pixels: Pixels) -> str | None:
    """Painting: all four sides are of wood; photo: none is."""
    sides = [pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:]]
    means = np.asarray([np.median(side.reshape(-1, 3), axis=0) for side in sides], np.float32)
    wooden = np.linalg.norm(_lab(means) - _lab(np.asarray([FRAME_WOOD], np.float32)), axis=1) < WOOD_DISTANCE
    return "painting" if wooden.all() else None if wooden.any() else "photo"


def _smooth(pixels: Pixels, window: tuple[slice, slice], sigma: float) -> Picture:
    """Smoothed inside the window only, so that the frame's colours stay out of it."""
    smooth = pixels.astype(np.float32)
    smooth[window] = cv2.GaussianBlur(smooth[window], (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    return smooth


def _skies() -> dict[str, Picture]:
    """(64, 1, 3) colours of each row, by time; the wall's for indoors."""
    down = np.clip(np.arange(SIZE, dtype=np.float32) / np.float32(HORIZON), 0, 1)[:, None, None]
    skies = {INDOORS: _even(WALL)}
    for time in TIMES:
        above, below, _, _ = SKY[time]
        skies[time] = _even(above) * (1 - down) + _even(below) * down
    return skies


def _grounds(sky: str) -> dict[str, Picture]:
    """The same for what can lie under a sky, by place."""
    if sky == INDOORS:
        return {"": _even(FLOOR)}
    _, _, tint, share = SKY[sky]
    return {place: _even(GROUND[place]) * (1 - share) + _even(tint) * share for place in PLACES[1:]}


def _even(colour: tuple[float, float, float]) -> Picture:
    return np.broadcast_to(np.asarray(colour, np.float32), (SIZE, 1, 3))


def _nearest(picture: Picture, seen: Mask, choices: dict[str, Picture]) -> tuple[str, Picture]:
    """The choice nearest to these pixels. Objects cover up to 41 % of sky or ground: the nearest third decides."""
    name = min(choices, key=lambda name: np.percentile(_apart(picture, choices[name])[seen], 33))
    return name, choices[name]


def _fits(picture: Picture, seen: Mask, colours: Picture) -> bool:
    """Whether most of what no object covers has these colours; the rest is for clouds, stars and the sun."""
    return bool(seen.any() and np.percentile(_apart(picture, colours)[seen], 70) < BACKGROUND_DISTANCE)


def _apart(picture: Picture, colours: Picture) -> Picture:
    """(64, 64) distances of a picture from the colours of each row."""
    return np.asarray(np.linalg.norm(_lab(picture) - _lab(colours), axis=2), np.float32)


def _shares(picture: Picture, behind: Picture) -> Picture:
    """(colours, 64, 64) how much of each pixel an object of each of COLOURS covers, 0..1.

    A pixel p at an edge mixes background b and object colour c: p = b + share (c - b), so that

        share = (p - b) · (c - b) / |c - b|²

    What lies far beside the line from b to c is something else.
    """
    offset, lines = picture - behind, _PALETTE[:, None, None] - behind
    shares = (offset * lines).sum(3) / (lines * lines).sum(3)
    beside = np.linalg.norm(offset - shares[..., None] * lines, axis=3)
    return np.where(beside < BESIDE, shares.clip(0, 1), np.float32(0))


def grown(mask: Mask, by: int) -> Mask:
    """The mask, wider by some pixels on each side."""
    return cv2.dilate(mask.astype(np.uint8), np.ones((2 * by + 1, 2 * by + 1), np.uint8)).astype(np.bool_)


def eroded(mask: Mask) -> Mask:
    """The mask without its outermost pixels."""
    return cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)


def _lab(colours: Picture) -> Picture:
    """CIELAB of sRGB colours of any shape (..., 3), 0..255."""
    flat = np.ascontiguousarray(colours, np.float32).reshape(1, -1, 3) / 255
    return np.asarray(cv2.cvtColor(flat, cv2.COLOR_RGB2LAB), np.float32).reshape(colours.shape)
