"""libfacedetection, the opt-in second face detector: finds small, tilted, dark and profile faces that dlib misses.

A convolutional network whose weights are compiled into the package ``yuface`` (code and weights: 3-clause BSD; wheels
for x86-64 with AVX). It runs in float32 on the CPU and chooses no kernels by the machine, so its scores belong to no
runtime class. They were the same with 1, 2 and 4 threads.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels

PACKAGE = "yuface"
#: The network expects faces of about 10 to 300 pixels. Frames are resized to these longer sides, and the best score of
#: all counts: the larger shows small faces, the smaller faces that fill the frame. Chosen on clips and photographs.
SIDES = (480, 1280)
LOWEST_SCORE = 0.2  # the network reports no finds below


def check_installed(setting: str) -> None:
    """Raise `WrongUse` where the package, or what is compiled in it, is missing.

    Args:
        setting: key path of the setting that asks for it, such as ``subsets.eq-youcook2.filters.0.detectors``.
    """
    if not _compiled():
        raise WrongUse(
            f"{setting}: the package {PACKAGE}, which holds the second face detector, is not installed; "
            "pip install 'twinset[faces]' with Python 3.11, or write detectors: published"
        )


def weights(setting: str) -> dict[str, str]:
    """sha256 of the compiled files of the package, which hold code and weights, by file name."""
    check_installed(setting)
    return {f"{PACKAGE}/{path.name}": sha256_of_file(path)[0] for path in _compiled()}


def best_score(pixels: Pixels) -> float:
    """The detector's confidence in its best find, 0 to 1; 0 where it finds nothing.

    Args:
        pixels: RGB, (height, width, 3).
    """
    import cv2

    detect, best = _detector(), 0
    for side in SIDES:
        scale = side / max(pixels.shape[:2])
        size = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
        way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        # The network reads BGR. It ignores strides: any other layout in memory would silently be another picture.
        resized = np.ascontiguousarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=way)[:, :, ::-1])
        best = max(best, int(detect(resized)[:, 0].max(initial=0)))
    return best / 100  # whole percents


@cache
def _detector() -> Any:
    """The finds in a BGR picture: int16 rows that begin with the confidence in percent; loaded once a process."""
    check_installed("filter faces: detectors")
    try:
        from yuface.yuface import detect  # the package's own wrapper warns of every picture above 960 pixels
    except ImportError as error:  # also of a library that it needs
        raise WrongUse(
            f"filter faces: detectors: the package {PACKAGE} cannot be loaded ({error}); "
            f"pip install --force-reinstall {PACKAGE}, or write detectors: published"
        ) from error
    return detect


def _compiled() -> list[Path]:
    """The compiled files of the package; none where it is not installed, or its folder is empty."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        return []
    found = [path for path in Path(package.origin).parent.iterdir() if {".so", ".pyd", ".dll"} & {*path.suffixes}]
    return sorted(found)
