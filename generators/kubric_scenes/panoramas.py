"""HDRI panoramas for backgrounds, none trusted: read, measured, and turned to the light that a scene asks for."""

import math
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.geometry import View, sun_at

MOST_PIXELS = 16384 * 8192  # decoded 2 GB, of which Cycles holds a copy; a frame shows less of finer ones than it has
HEADER = 1 << 16  # bytes in which a Radiance file must say its size
WIDTH = 128  # pixels across in which the brightest place is looked for
LOWEST = math.radians(15)  # shadows of a lower lamp have no end
_RADIANCE = re.compile(rb"\n\n[-+][XY] +(\d{1,9}) +[-+][XY] +(\d{1,9})\n")


def read_panorama(file: Path) -> NDArray[np.float32]:
    """(height, width, 3), linear RGB, at least 0, of an OpenEXR (.exr) or Radiance file (.hdr).

    Raises:
        WrongUse: it is neither, is damaged, too large, or gives no light.
    """
    try:
        pixels = _read_exr(file) if file.suffix.lower() == ".exr" else _read_radiance(file)
    except (RuntimeError, KeyError, ValueError, TypeError, OSError, cv2.error) as error:
        raise WrongUse(f"{file} cannot be read ({error}); give HDRI files (.hdr, .exr) that can be read") from error
    pixels = np.maximum(pixels[..., :3], 0.0, dtype=np.float32)
    if not 0 < pixels.mean(dtype=np.float64) < math.inf:  # likewise false of what is not a number
        raise WrongUse(f"{file} gives no light, or holds pixels that are not numbers; give another HDRI file")
    return np.ascontiguousarray(pixels)


def _read_exr(file: Path) -> NDArray[np.float32]:
    import OpenEXR

    (left, top), (right, bottom) = OpenEXR.File(str(file), header_only=True).header()["dataWindow"]
    _check_size(int(right) - int(left) + 1, int(bottom) - int(top) + 1)
    channels = OpenEXR.File(str(file)).channels()
    merged = [channels[name].pixels for name in ("RGB", "RGBA") if name in channels]
    return np.asarray(merged[0] if merged else np.stack([channels[name].pixels for name in "RGB"], axis=2), np.float32)


def _read_radiance(file: Path) -> NDArray[np.float32]:
    content = file.read_bytes()
    # OpenCV would try twenty formats, and understands more headers than this one.
    size = _RADIANCE.search(content[:HEADER])
    if not content.startswith(b"#?") or size is None:
        raise ValueError("it is no Radiance file")
    _check_size(int(size[2]), int(size[1]))
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None or pixels.ndim != 3:
        raise ValueError("it is damaged")
    return np.asarray(pixels[..., ::-1], np.float32)


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width:,} × {height:,} pixels, more than 16,384 × 8,192; make it smaller")


def lit_by_background(view: View, file: Path, azimuth: float) -> View:
    """The view inside of a background, turned so that its brightest light comes from an azimuth (radians from +X).

    Raises:
        WrongUse: the file cannot be read.
    """
    own, height = brightest(file)
    # The background brings its own light, sky and ground; `sun` only says where it comes from.
    return replace(
        view,
        background=file,
        background_yaw=(own - azimuth) % (2 * math.pi),
        sun=sun_at(azimuth, max(height, LOWEST)),
        sun_strength=0.0,
    )


@lru_cache(256)
def brightest(file: Path) -> tuple[float, float]:
    """Azimuth from +X and height above the horizon of a panorama's brightest place in its upper half, radians."""
    grey = read_panorama(file).mean(axis=2)
    light = cv2.resize(grey, (WIDTH, WIDTH // 2), interpolation=cv2.INTER_AREA)[: WIDTH // 4]
    light = cv2.GaussianBlur(light, (0, 0), 2.0)
    row, column = np.unravel_index(int(light.argmax()), light.shape)
    # Blender: the picture's middle is +X, its left quarter +Y.
    return math.pi * (1 - 2 * (float(column) + 0.5) / WIDTH), math.pi * (0.5 - (float(row) + 0.5) / (WIDTH // 2))


def light_of(panorama: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of a panorama, by channel: the irradiance of level ground under it, and the mean radiance of its lower half."""
    rows = cv2.resize(panorama, (128, 64), interpolation=cv2.INTER_AREA).mean(axis=1).astype(np.float64)
    height = math.pi / 2 - (np.arange(len(rows)) + 0.5) / len(rows) * math.pi  # radians above the horizon
    # E = ∫ L sin h cos h dh dφ over the upper half; a row's L is a mean over φ.
    weight = np.where(height > 0, np.sin(height) * np.cos(height), 0.0) * math.pi / len(rows) * 2 * math.pi
    below = np.where(height < 0, np.cos(height), 0.0)
    return weight @ rows, below @ rows / below.sum()
