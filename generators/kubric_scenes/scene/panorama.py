"""Where the light of a background picture comes from, so that its shadows are known before anything is rendered."""

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.scene.parts import View
from twinset.generators.kubric_scenes.scene.surroundings import sun_at
from twinset.manifests.errors import WrongUse

WIDTH = 128  # pixels across in which the brightest place is looked for
LOWEST = math.radians(15)  # shadows of a lower lamp have no end


def lit_by_background(view: View, file: Path, wanted: float) -> View:
    """The view inside of a background, turned so that its brightest light comes from an azimuth (radians from +X).

    Raises:
        WrongUse: The file cannot be read.
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
    light = cv2.resize(_read(file).mean(axis=2), (WIDTH, WIDTH // 2), interpolation=cv2.INTER_AREA)[: WIDTH // 4]
    light = cv2.GaussianBlur(np.maximum(light, 0.0), (0, 0), 2.0)
    row, column = np.unravel_index(int(light.argmax()), light.shape)
    # Blender: the picture's middle is +X, its left quarter +Y.
    return math.pi * (1 - 2 * (float(column) + 0.5) / WIDTH), math.pi * (0.5 - (float(row) + 0.5) / (WIDTH // 2))


def _read(file: Path) -> NDArray[np.float32]:
    """(height, width, 3), linear."""
    pixels = None
    if file.suffix.lower() == ".exr":
        import OpenEXR

        try:
            channels = OpenEXR.File(str(file)).channels()
            merged = [channels[name].pixels[..., :3] for name in ("RGB", "RGBA") if name in channels]
            pixels = merged[0] if merged else np.stack([channels[name].pixels for name in "RGB"], axis=2)
        except (RuntimeError, KeyError, ValueError, OSError):
            pixels = None
    elif file.is_file():
        pixels = cv2.imread(str(file), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.ndim != 3 or not np.isfinite(pixels).all():
        raise WrongUse(f"{file} is damaged; give HDRI files (.hdr, .exr) that can be read")
    return np.ascontiguousarray(pixels[..., :3], dtype=np.float32)
