"""From a picture to what a tower reads: open_clip's transforms, the random one as a function of given numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

if TYPE_CHECKING:
    from PIL.Image import Image

SCALE = (0.9, 1.0)  # share of the picture's area, open_clip's `AugmentationCfg`
RATIO = (3 / 4, 4 / 3)  # width over height of a crop, torchvision's `RandomResizedCrop`
TRIES = 10
NUMBERS = 4 * TRIES  # uniform numbers that a crop may use


class Transforms:
    """Pictures to pixels, and pixels to tensors.

    Args:
        preprocess: ``network.visual.preprocess_cfg`` of a model of open_clip (size, mean, std, interpolation,
            resize_mode).
        mode: "training" crops at random, as open_clip does by default. "evaluation" is open_clip's own evaluation
            transform, with which BiVLC's models were trained (bivlc, appendix E).
    """

    def __init__(self, preprocess: Mapping[str, Any], mode: Literal["training", "evaluation"] = "training") -> None:
        import open_clip  # type: ignore[import-untyped]
        from torchvision.transforms import Normalize, ToTensor  # type: ignore[import-untyped]

        if mode not in ("training", "evaluation"):
            raise WrongUse(f"transform {mode!r}: it is training or evaluation")
        self.mode = mode
        settings = open_clip.transform.PreprocessCfg(**preprocess)
        size = settings.size
        self.size: tuple[int, int] = (size, size) if isinstance(size, int) else (int(size[-2]), int(size[-1]))
        steps = open_clip.transform.image_transform_v2(settings, is_train=False).transforms
        self._evaluation = [one for one in steps if not isinstance(one, ToTensor | Normalize)]
        self._mean, self._std = (
            np.array(values, np.float32).reshape(1, 3, 1, 1) for values in (settings.mean, settings.std)
        )

    def pixels(self, picture: Image, numbers: NDArray[np.float64]) -> NDArray[np.uint8]:
        """A picture resized and cropped, (height, width, 3) uint8.

        Args:
            numbers: `NUMBERS` uniform random numbers in [0, 1) (`training.examples.ordering.augmentation_bits`);
                ignored in mode "evaluation".
        """
        from PIL.Image import Resampling

        if self.mode == "evaluation":
            for step in self._evaluation:
                picture = step(picture)
        else:
            left, top, width, height = crop_box(picture.width, picture.height, numbers)
            # open_clip crops, then resizes: `resize(box=…)` would let pixels beside the crop in.
            picture = picture.crop((left, top, left + width, top + height))
            picture = picture.resize((self.size[1], self.size[0]), Resampling.BICUBIC)
            picture = picture if picture.mode == "RGB" else picture.convert("RGB")  # which would copy every pixel
        return np.asarray(picture, np.uint8)

    def tensor(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """(n, height, width, 3) uint8 to (n, 3, height, width) float32: (x / 255 - mean) / std, each step rounded."""
        n, height, width, channels = pixels.shape
        planes = torch.empty((n, channels, height, width), dtype=torch.float32)
        for channel in range(channels):  # plane by plane: half the time of torch's own change of order
            np.copyto(planes.numpy()[:, channel], pixels[..., channel])
        return planes.div_(255).sub_(torch.from_numpy(self._mean)).div_(torch.from_numpy(self._std))


def crop_box(
    width: int, height: int, numbers: NDArray[np.float64], scale: tuple[float, float] = SCALE
) -> tuple[int, int, int, int]:
    """Left, top, width and height of a random crop, as torchvision's `RandomResizedCrop` samples it.

    An area is uniform in ``scale`` of the picture's, the logarithm of width / height uniform in that of `RATIO`. A
    crop that does not fit is sampled again; after `TRIES` the largest central crop of an allowed ratio is taken.

    Args:
        width, height: of the picture, in pixels.
        numbers: `NUMBERS` uniform random numbers in [0, 1), four for each try.
    """
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for area, ratio, top, left in numbers.reshape(TRIES, 4).tolist():
        target = width * height * (scale[0] + area * (scale[1] - scale[0]))
        aspect = math.exp(low + ratio * (high - low))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(left * (width - w + 1)), int(top * (height - h + 1)), w, h
    w, h = width, height
    if width / height < RATIO[0]:
        h = round(width / RATIO[0])
    elif width / height > RATIO[1]:
        w = round(height * RATIO[1])
    return (width - w) // 2, (height - h) // 2, w, h
