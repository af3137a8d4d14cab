"""The ground under a scene, its background and the light on it, sampled for each pair: its two images share them."""

import colorsys
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from twinset.generators.kubric_scenes.scene.look import Material
from twinset.generators.kubric_scenes.scene.panoramas import read_panorama
from twinset.generators.kubric_scenes.scene.parts import Colour, Ground, Sky, Vector, View, vector

WIDTH = 128  # pixels across in which the brightest place is looked for
LOWEST = math.radians(15)  # shadows of a lower lamp have no end


def lit_by_background(view: View, file: Path, wanted: float) -> View:
    """The view inside of a background, turned so that its brightest light comes from an azimuth (radians from +X).
    Raises `WrongUse`: the file cannot be read.
    """
    azimuth, height = brightest(file)
    # The background brings its own light, sky and ground; `sun` only says where it comes from.
    return replace(
        view,
        background=file,
        background_yaw=(azimuth - wanted) % (2 * math.pi),
        sun=sun_at(wanted, max(height, LOWEST)),
        sun_strength=0.0,
        sky=None,
        ground=None,
    )


def turned_with_sun(view: View, sun: View) -> View:
    """The second view, whose sun is that of the first one turned around Z; a background turns with its light."""
    turn = math.atan2(sun.sun[1], sun.sun[0]) - math.atan2(view.sun[1], view.sun[0])
    return replace(sun, background_yaw=(view.background_yaw - turn) % (2 * math.pi))


@lru_cache(256)
def brightest(file: Path) -> tuple[float, float]:
    """Azimuth from +X and height above the horizon of a panorama's brightest place in its upper half, radians."""
    grey = read_panorama(file).mean(axis=2)
    light = cv2.resize(grey, (WIDTH, WIDTH // 2), interpolation=cv2.INTER_AREA)[: WIDTH // 4]
    light = cv2.GaussianBlur(np.maximum(light, 0.0), (0, 0), 2.0)
    row, column = np.unravel_index(int(light.argmax()), light.shape)
    # Blender: the picture's middle is +X, its left quarter +Y.
    return math.pi * (1 - 2 * (float(column) + 0.5) / WIDTH), math.pi * (0.5 - (float(row) + 0.5) / (WIDTH // 2))


#: Of each material: hue and saturation of what it comes in, the range of its lightness (linear), and of its size.
#: Muted and of middle lightness, so that neither a black nor a white thing vanishes on it.
_TONES: dict[Material, tuple[tuple[tuple[float, float], ...], tuple[float, float], tuple[float, float]]] = {
    "gravel": (((30, 0.12), (25, 0.3), (210, 0.12), (45, 0.25)), (0.3, 0.48), (0.09, 0.18)),
    "wood": (((28, 0.6), (22, 0.65), (34, 0.45), (18, 0.6)), (0.25, 0.45), (0.45, 0.8)),
    "tiles": (((30, 0.18), (15, 0.5), (200, 0.2), (90, 0.1), (45, 0.3)), (0.32, 0.5), (0.7, 1.4)),
    "cloth": (((215, 0.35), (8, 0.4), (150, 0.25), (40, 0.35), (280, 0.2)), (0.3, 0.45), (0.6, 1.3)),
    "grass": (((95, 0.72), (86, 0.72), (77, 0.7)), (0.17, 0.27), (0.8, 2.0)),
}
#: Lightness of the dark parts and of the joints, as shares of that of the light ones.
_CONTRAST: dict[Material, tuple[float, float]] = {
    "gravel": (0.45, 1.3),
    "wood": (0.5, 0.25),
    "tiles": (0.75, 0.5),
    "cloth": (0.5, 1.5),
    "grass": (0.25, 0.85),
}
SHIFT = 20.0  # scene units by which patterns are moved at most

LIT = (3.7, 4.6)  # irradiance of the ground, W/m²: sun and sky together
SUNNY = (0.25, 0.7)  # share of the sun in it
SUN_ANGLES = (0.6, 14.0)  # degrees: sharp shadows to those of a bright cloud
SUN_HEIGHT = (33.0, 68.0)  # degrees
SUN_AZIMUTH = (-165.0, -15.0)  # degrees from +X: from the viewer's side, or things show their dark one
_WARM, _WHITE = np.array([1.0, 0.86, 0.68]), np.array([1.0, 0.97, 0.93])
_GREY = np.array([[0.95, 0.97, 1.0], [0.86, 0.88, 0.9]])  # zenith and horizon of a covered sky
_BLUE = np.array([[0.5, 0.66, 1.0], [0.9, 0.95, 1.0]])  # of a clear one


def sample_ground(materials: Sequence[Material], rng: np.random.Generator) -> Ground:
    """A ground of one of the materials."""
    material = materials[int(rng.integers(len(materials)))]
    tones, lightness, sizes = _TONES[material]
    hue, saturation = tones[int(rng.integers(len(tones)))]
    hue, saturation = hue + rng.uniform(-6, 6), saturation * rng.uniform(0.7, 1.1)
    light = rng.uniform(*lightness)
    dark, joint = (light * share for share in _CONTRAST[material])
    other = hue + (rng.uniform(-25, 25) if material in ("gravel", "grass", "cloth") else 0.0)
    return Ground(
        material=material,
        light=_colour(hue, saturation, light),
        dark=_colour(hue, saturation, dark),
        joint=_colour(other, saturation, min(joint, 0.75)),
        size=float(rng.uniform(*sizes)),
        turn=float(rng.uniform(0, 2 * math.pi)),
        shift=(float(rng.uniform(-SHIFT, SHIFT)), float(rng.uniform(-SHIFT, SHIFT))),
    )


def _colour(hue: float, saturation: float, lightness: float) -> Colour:
    """Linear RGB of a hue in degrees; its mean of channels is `lightness`."""
    rgb = np.array(colorsys.hsv_to_rgb(hue / 360 % 1, saturation, 1.0))
    return vector(np.clip(rgb * lightness / rgb.mean(), 0.0, 0.9))


def lit_by_sun_and_sky(view: View, rng: np.random.Generator) -> View:
    """The view under another sun, hard or soft, and a sky that is the bluer, the more of the light the sun gives."""
    azimuth, height = sample_azimuth(rng), math.radians(rng.uniform(*SUN_HEIGHT))
    angle = math.radians(math.exp(rng.uniform(*np.log(SUN_ANGLES))))
    lit, sunny = rng.uniform(*LIT), rng.uniform(*SUNNY)
    clear = (sunny - SUNNY[0]) / (SUNNY[1] - SUNNY[0])
    warm = (height - math.radians(SUN_HEIGHT[0])) / math.radians(SUN_HEIGHT[1] - SUN_HEIGHT[0])
    zenith, horizon = _GREY + clear * (_BLUE - _GREY)
    # Irradiance under an even sky is π times its radiance; the upper half of the sky weighs most.
    even = (1 - sunny) * lit / math.pi / float((0.6 * zenith + 0.4 * horizon).mean())
    return replace(
        view,
        sun=sun_at(azimuth, height),
        sun_strength=float(lit * sunny / math.sin(height)),
        sun_angle=angle,
        sun_colour=vector(_WARM + warm * (_WHITE - _WARM)),
        sky=Sky(vector(zenith * even), vector(horizon * even)),
    )


def sample_azimuth(rng: np.random.Generator) -> float:
    """Where light comes from around Z, radians from +X."""
    return math.radians(rng.uniform(*SUN_AZIMUTH))


def sun_at(azimuth: float, height: float) -> Vector:
    """The direction of a sun. azimuth: radians from +X; height: radians above the floor."""
    return math.cos(azimuth) * math.cos(height), math.sin(azimuth) * math.cos(height), math.sin(height)


def record(view: View) -> dict[str, Any]:
    """A view's ground and light, as they go into a sample's JSON."""
    ground = view.ground
    return {
        "ground": ground.material if ground is not None else "",
        "sun": [round(one, 3) for one in view.sun],
        "sun_strength": round(view.sun_strength, 3),
        "sun_angle": round(math.degrees(view.sun_angle), 2),
    }
