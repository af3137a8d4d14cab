"""Which colour pixels have, by the names of the grammar."""

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.contracts.kinds.samples import Pixels

#: Hues in degrees that a name covers; orange, brown and golden differ in lightness and saturation as well.
HUES = {
    "red": (342.0, 374.0),
    "orange": (12.0, 36.0),
    "golden": (24.0, 62.0),
    "yellow": (40.0, 68.0),
    "green": (80.0, 170.0),
    "blue": (195.0, 255.0),
    "purple": (255.0, 312.0),
    "pink": (315.0, 368.0),
    "brown": (6.0, 44.0),
}


def of_colour(pixels: Pixels, name: str) -> NDArray[np.bool_]:
    """Which of (n, 3) uint8 sRGB pixels may be said to have a colour.

    The classes overlap where people disagree: dark orange is brown, and a golden thing is yellow in places.
    """
    converted = cv2.cvtColor(pixels.reshape(-1, 1, 3), cv2.COLOR_RGB2HSV_FULL).reshape(-1, 3).astype(np.float32)
    hue, saturation, value = converted[:, 0] * (360 / 255), converted[:, 1] / 255, converted[:, 2] / 255
    if name == "white":
        return np.asarray((saturation < 0.22) & (value > 0.55))
    if name == "gray":
        return np.asarray((saturation < 0.22) & (value > 0.2) & (value < 0.72))
    if name == "black":
        return np.asarray((value < 0.32) & ((saturation < 0.4) | (value < 0.18)))
    low, high = HUES[name]
    inside = ((hue >= low) & (hue <= high)) | (hue + 360 <= high)
    strong = saturation > 0.3
    if name == "pink":
        return np.asarray(inside & (saturation > 0.15) & (saturation < 0.72) & (value > 0.5))
    if name == "red":
        return np.asarray(inside & (saturation > 0.6) & (value > 0.16))
    if name == "brown":
        return np.asarray(inside & strong & (value < 0.62) & (value > 0.08))
    if name == "orange":
        return np.asarray(inside & (saturation > 0.6) & (value > 0.5))
    if name == "golden":
        return np.asarray(inside & strong & (value > 0.45))
    return np.asarray(inside & strong & (value > 0.14))
