"""Transforms against open_clip's and torchvision's own on the same pictures."""

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.functional import InterpolationMode, resized_crop

from twinset.contracts.errors import WrongUse
from twinset.training.examples.ordering import augmentation_bits
from twinset.training.examples.transforms import NUMBERS, RATIO, SCALE, Transforms, crop_box


def picture(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(width).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def numbers(key: str) -> np.ndarray:
    return augmentation_bits(0, 0, key, 0, "image", NUMBERS)


def read(transforms: Transforms, shown: Image.Image, key: str) -> np.ndarray:
    """A picture as a tower reads it, (3, height, width) float32."""
    return transforms.tensor(transforms.pixels(shown, numbers(key))[None].copy())[0].numpy()


@pytest.mark.parametrize("settings", [{"size": 64}, {"size": 48, "resize_mode": "squash", "interpolation": "bilinear"}])
@pytest.mark.parametrize("size", [(97, 131), (200, 80), (64, 64)])
def test_evaluation_is_open_clips_own_to_the_last_bit(settings: dict[str, object], size: tuple[int, int]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), is_train=False)
    ours = read(Transforms(settings, "evaluation"), picture(*size), "a")
    assert np.array_equal(ours, theirs(picture(*size)).numpy())


@pytest.mark.parametrize("size", [(97, 131), (640, 480), (33, 30)])
def test_training_is_open_clips_own_to_the_last_bit_for_the_same_crop(size: tuple[int, int]) -> None:
    left, top, width, height = crop_box(*size, numbers("b"))
    cropped = resized_crop(picture(*size), top, left, height, width, [64, 64], InterpolationMode.BICUBIC)
    after = open_clip.transform.image_transform(64, is_train=True).transforms[1:]
    for step in after:
        cropped = step(cropped)
    assert np.array_equal(read(Transforms({"size": 64}), picture(*size), "b"), cropped.numpy())


@pytest.mark.parametrize("size", [(400, 300), (100, 300), (300, 100)])
def test_crops_are_spread_as_torchvisions(size: tuple[int, int]) -> None:
    drawn = np.array([crop_box(*size, numbers(f"{size}-{number}")) for number in range(2000)])
    torch.manual_seed(0)
    theirs = [RandomResizedCrop.get_params(Image.new("L", size), list(SCALE), list(RATIO)) for _ in range(2000)]
    theirs = np.array([(left, top, width, height) for top, left, height, width in theirs])
    # Means of 2,000 samples: standard errors are below 0.02 of the spread, and differences of two means below 0.1.
    spread = theirs.std(0) + 0.5
    assert np.all(np.abs(drawn.mean(0) - theirs.mean(0)) < 0.15 * spread)
    assert np.all(np.abs(drawn.std(0) - theirs.std(0)) < 0.15 * spread)


def test_an_unknown_transform_is_refused() -> None:
    with pytest.raises(WrongUse, match="training or evaluation"):
        Transforms({"size": 32}, "test")  # type: ignore[arg-type]
