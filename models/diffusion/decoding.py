"""From latents to pixels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from PIL import Image

from twinset.shards.kinds.samples import Pixels

Resampling = Literal["bicubic", "lanczos", "box"]


def unscaled(vae: Any, latents: torch.Tensor) -> torch.Tensor:
    """Latents (n, channels, height, width) as the autoencoder reads them: without the scale that the UNet sees."""
    config = vae.config
    mean = torch.tensor(getattr(config, "latents_mean", None) or 0.0, device=latents.device).view(-1, 1, 1)
    std = torch.tensor(getattr(config, "latents_std", None) or 1.0, device=latents.device).view(-1, 1, 1)
    scaled: torch.Tensor = latents * std / config.scaling_factor + mean
    return scaled + (getattr(config, "shift_factor", None) or 0.0)


@torch.inference_mode()
def decode(vae: Any, latents: torch.Tensor) -> tuple[Pixels, bool]:
    """One image (height, width, 3), and whether all its numbers were finite; other pixels are black.

    One at a time: decoding 1024 x 1024 pixels in float32 holds feature maps of 256 channels, 1 GiB each. Tiles would
    need less, but the autoencoder normalises and attends over the whole image: they give another picture.

    Args:
        latents: (channels, height, width), float32.
    """
    pixels = vae.decode(unscaled(vae, latents[None]).to(vae.dtype)).sample[0].float()
    finite = bool(pixels.isfinite().all() & latents.isfinite().all())
    pixels = pixels.nan_to_num(-1.0, posinf=-1.0, neginf=-1.0)  # in -1..1
    levels = (pixels / 2 + 0.5).clamp(0, 1).mul(255).round().to(torch.uint8)
    return levels.permute(1, 2, 0).cpu().numpy(), finite


def resized(pixels: Pixels, side: int | None, resampling: Resampling) -> Pixels:
    """A square image at another size, by Pillow's filter of that name; None: as it is."""
    if side is None or pixels.shape[:2] == (side, side):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling[resampling.upper()]))
