"""From a picture to what a tower reads: open_clip's own transforms, whose random numbers a seed decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image


class Transforms:
    """Pictures to pixels, and pixels to tensors.

    Args:
        preprocess: ``network.visual.preprocess_cfg`` of a model of open_clip (size, mean, std, interpolation,
            resize_mode).
        mode: "training" crops at random, as open_clip does by default: 90 to 100 % of the area. "evaluation" is
            open_clip's evaluation transform, with which BiVLC's models were trained (bivlc, appendix E).
    """

    def __init__(self, preprocess: Mapping[str, Any], mode: Literal["training", "evaluation"] = "training") -> None:
        from open_clip.transform import PreprocessCfg, image_transform_v2  # type: ignore[import-untyped]
        from torchvision.transforms import Normalize, ToTensor  # type: ignore[import-untyped]

        steps = image_transform_v2(PreprocessCfg(**preprocess), is_train=mode == "training").transforms
        self._of_pictures = [step for step in steps if not isinstance(step, ToTensor | Normalize)]
        self._normalise = next(step for step in steps if isinstance(step, Normalize))

    def pixels(self, picture: Image, seed: int) -> NDArray[np.uint8]:
        """A picture resized and cropped, (height, width, 3) uint8: a quarter of float32 on its way between processes.

        seed: decides the crop (`training.examples.ordering.augmentation_seed`).
        """
        with torch.random.fork_rng(devices=()):  # afterwards it goes on as if nothing had been drawn
            torch.default_generator.manual_seed(seed)
            for step in self._of_pictures:
                picture = step(picture)
        return np.asarray(picture, np.uint8)

    def tensor(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """(n, height, width, 3) uint8 to (n, 3, height, width) float32: (x / 255 - mean) / std."""
        planes = torch.from_numpy(pixels).permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        normalised: torch.Tensor = self._normalise(planes.div_(255))
        return normalised


def random_crop(picture: Image, seed: int) -> Image:
    """A picture cropped as in training, without a change of its size."""
    from torchvision.transforms import RandomResizedCrop

    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        top, left, height, width = RandomResizedCrop.get_params(picture, [0.9, 1.0], [3 / 4, 4 / 3])
    return picture.crop((left, top, left + width, top + height))
