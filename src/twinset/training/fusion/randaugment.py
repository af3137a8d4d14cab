"""FIBER's random changes of training images, ALBEF's before it: crop, mirror, RandAugment (Cubuk et al. 2020).

Released as ``albef_transform_randaug`` (microsoft/FIBER, transforms/transform.py and randaug.py): crops of 50 to 100 %
of the area, mirrored in half of the cases, then two of ten operations, each applied in half of the cases and at level 7
of 10. It has OpenCV's operations; here they are Pillow's, which those copy, and bilinear in all of rotation, shear and
translation. A mirrored image of a caption with left and right is wrong, as there.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps
from PIL.Image import Resampling, Transform

from twinset.training.examples.transforms import NUMBERS, crop_box

AREA, OPERATIONS, LEVEL = (0.5, 1.0), 2, 7 / 10
RANDAUGMENT = NUMBERS + 1 + 3 * OPERATIONS  # uniform numbers that a picture needs
ENHANCED = LEVEL * 1.8 + 0.1
SHEARED, SHIFTED, ROTATED = LEVEL * 0.3, LEVEL * 10, LEVEL * 30  # a share, pixels, degrees
GREY = (128, 128, 128)


def _moved(picture: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return picture.transform(picture.size, Transform.AFFINE, matrix, Resampling.BILINEAR, fillcolor=GREY)


#: By name, of a picture and a sign.
CHANGES: dict[str, Callable[[Image.Image, int], Image.Image]] = {
    "Identity": lambda picture, sign: picture,
    "AutoContrast": lambda picture, sign: ImageOps.autocontrast(picture),
    "Equalize": lambda picture, sign: ImageOps.equalize(picture),
    "Brightness": lambda picture, sign: ImageEnhance.Brightness(picture).enhance(ENHANCED),
    "Sharpness": lambda picture, sign: ImageEnhance.Sharpness(picture).enhance(ENHANCED),
    "ShearX": lambda picture, sign: _moved(picture, (1, sign * SHEARED, 0, 0, 1, 0)),
    "ShearY": lambda picture, sign: _moved(picture, (1, 0, 0, sign * SHEARED, 1, 0)),
    "TranslateX": lambda picture, sign: _moved(picture, (1, 0, sign * SHIFTED, 0, 1, 0)),
    "TranslateY": lambda picture, sign: _moved(picture, (1, 0, 0, 0, 1, sign * SHIFTED)),
    "Rotate": lambda picture, sign: picture.rotate(sign * ROTATED, Resampling.BILINEAR, fillcolor=GREY),
}


def randaugmented(picture: Image.Image, numbers: NDArray[np.float64], size: tuple[int, int] | None) -> Image.Image:
    """A picture cropped, mirrored and changed.

    Args:
        picture: RGB.
        numbers: `RANDAUGMENT` uniform random numbers in [0, 1).
        size: width and height that the model reads, which the crop is resized to before it is changed; None: its own.
    """
    left, top, width, height = crop_box(picture.width, picture.height, numbers[:NUMBERS], AREA)
    picture = picture.crop((left, top, left + width, top + height))
    if size is not None:
        picture = picture.resize(size, Resampling.BICUBIC)
    mirror, *rest = numbers[NUMBERS:].tolist()
    if mirror < 0.5:
        picture = ImageOps.mirror(picture)
    names = [*CHANGES]
    for which, applied, sign in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if applied < 0.5:
            picture = CHANGES[names[int(which * len(names))]](picture, 1 if sign < 0.5 else -1)
    return picture
