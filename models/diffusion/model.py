"""A loaded latent diffusion model as the settings ask for it: from prompt and noise to pixels."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import model_name
from twinset.models.device import GPU, round_alike
from twinset.models.diffusion.decoding import decode, resized
from twinset.models.diffusion.denoising import Denoiser
from twinset.models.diffusion.model_files import model_digest, weight_files
from twinset.models.diffusion.models import be_quiet, load_parts, scheduler_config
from twinset.models.diffusion.schedulers import own_scheduler
from twinset.models.diffusion.settings import DiffusionImages
from twinset.models.diffusion.text import Text, encode
from twinset.shards.kinds.samples import Pixels


class Model:
    """A model in memory.

    files: the weights that draw, the UNet's first. digest: of all that it draws with. scheduler: name of the sampler.
    resolution: side of an image as it is drawn. latents: (channels, height, width) of its noise. resizes: whether
    images are kept at another size.

    Raises:
        WrongUse: files of the model, or settings, do not fit.
    """

    def __init__(self, settings: DiffusionImages) -> None:
        be_quiet()
        round_alike(settings.threads)
        self._settings, name = settings, model_name(settings.model)
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
