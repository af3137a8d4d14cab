"""A loaded latent diffusion model as the settings ask for it: from prompt and noise to pixels."""

from collections.abc import Sequence
from threading import Event
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels
from twinset.models.device import GPU, round_alike
from twinset.models.diffusion.model_files import model_digest, weight_files
from twinset.models.diffusion.models import be_quiet, load_parts, own_scheduler, scheduler_config
from twinset.models.diffusion.settings import DiffusionImages
from twinset.models.diffusion.text import Denoiser, Text, encode

Resampling = Literal["bicubic", "lanczos", "box"]


class Model:
    """A model in memory.

    files: the weights that draw, the UNet's first. digest: of all that it draws with. scheduler: name of the sampler.
    resolution: side of an image as it is drawn. latents: (channels, height, width) of its noise. resizes: whether
    images are kept at another size. Raises `WrongUse`: files of the model, or settings, do not fit.
    """

    def __init__(self, settings: DiffusionImages) -> None:
        be_quiet()
        round_alike(settings.threads)
        self._settings, name = settings, settings.model
        dtype = None if settings.precision == "auto" else getattr(torch, settings.precision)
        self._parts = load_parts(name, "cpu" if settings.device == "cpu" else GPU, dtype, settings.unet)
        folder, scale, unet = self._parts.folder, self._parts.scale, self._parts.unet.config
        self.scheduler = own_scheduler(folder) if settings.scheduler == "own" else settings.scheduler
        self.resolution = settings.resolution or unet.sample_size * scale
        if self.resolution % scale:
            raise WrongUse(f"engine.resolution must be a multiple of {scale} for {settings.model}")
        if settings.steps > (most := scheduler_config(folder).get("num_train_timesteps", 1000)):
            raise WrongUse(f"engine.steps must be at most {most} for {settings.model}")
        self.latents = (unet.in_channels, self.resolution // scale, self.resolution // scale)
        self.resizes = settings.output_resolution not in (None, self.resolution)
        self.precision = str(self._parts.unet.dtype).removeprefix("torch.")
        self.files, self.digest = weight_files(name, settings.unet), model_digest(name, settings.unet)
        self._parts.vae.to(memory_format=torch.channels_last)  # convolutions are faster, and round otherwise
        self._denoiser = Denoiser(self._parts, self.scheduler, settings.compiled)

    def encode(self, prompt: str) -> Text:
        """A prompt as the text encoders read it."""
        return encode(self._parts.encoders, prompt)

    def denoise(self, noise: NDArray[np.float32], texts: Sequence[Text], stopped: Event) -> torch.Tensor:
        """Latents of n images; noise: (n, *self.latents). Raises `Stopped` once ``stopped`` is set."""
        settings = self._settings
        return self._denoiser(torch.from_numpy(noise), texts, settings.steps, settings.guidance, stopped)

    def decode(self, latents: torch.Tensor) -> tuple[Pixels, bool]:
        """One image at its final size, and whether all its numbers were finite."""
        pixels, finite = decode(self._parts.vae, latents)
        return resized(pixels, self._settings.output_resolution, self._settings.resampling), finite


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
