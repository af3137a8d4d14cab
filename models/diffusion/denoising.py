"""From noise and captions to latents: classifier-free guidance with a UNet that is prepared once."""

from collections.abc import Sequence
from threading import Event
from typing import Any

import torch

from twinset.models.diffusion.attention import CaptionLayers
from twinset.models.diffusion.models import Parts, new_scheduler
from twinset.models.diffusion.text import Text, unconditional


class Stopped(Exception):
    """Nobody waits for these latents any more."""


class Denoiser:
    """The UNet of a model, which this changes: channels last, fused projections, processors for known captions.

    scheduler: name of the sampler (`models.diffusion.models.SCHEDULERS`). compiled: whether its transformer
    blocks are compiled, which takes a minute, and rounds otherwise than without. One pass at a time.
    """

    def __init__(self, parts: Parts, scheduler: str, compiled: bool = False) -> None:
        self._unet, self._folder, self._scheduler = parts.unet, parts.folder, scheduler
        new_scheduler(self._folder, scheduler)  # raises before any work where they do not fit
        self._unet.to(memory_format=torch.channels_last)  # convolutions are faster, and round otherwise
        self._layers = CaptionLayers(self._unet)
        self._zero = parts.zero_unconditional
        self._unconditional = unconditional(parts.encoders, self._zero)
        self._scale = parts.scale
        if compiled:
            self._unet.compile_repeated_blocks(fullgraph=True)

    @torch.inference_mode()
    def __call__(
        self, noise: torch.Tensor, texts: Sequence[Text], steps: int, guidance: float, stopped: Event | None = None
    ) -> torch.Tensor:
        """Latents of n images, float32.

        Args:
            noise: (n, channels, height, width), standard normal, float32 on the CPU.
            texts: of each image; images of one text share one object.
            guidance: scale of classifier-free guidance; at 1 or less there is none.
            stopped: checked after each step.

        Raises:
            Stopped: ``stopped`` was set.
        """
        scheduler = new_scheduler(self._folder, self._scheduler)
        scheduler.set_timesteps(steps, device=self._unet.device)
        guided = guidance > 1
        added = self._condition(texts, guided, (noise.shape[2] * self._scale, noise.shape[3] * self._scale))
        latents: torch.Tensor = noise.to(self._unet.device) * scheduler.init_noise_sigma
        for timestep in scheduler.timesteps:
            if stopped is not None and stopped.is_set():
                raise Stopped
            rows = scheduler.scale_model_input(torch.cat([latents, latents]) if guided else latents, timestep)
            rows = rows.to(self._unet.dtype).contiguous(memory_format=torch.channels_last)
            predicted = self._unet(rows, timestep, encoder_hidden_states=None, added_cond_kwargs=added).sample.float()
            if guided:
                without, with_caption = predicted.chunk(2)
                predicted = without + guidance * (with_caption - without)
            latents = scheduler.step(predicted, timestep, latents).prev_sample
        return latents

    def _condition(self, texts: Sequence[Text], guided: bool, size: tuple[int, int]) -> dict[str, Any] | None:
        """Give the cross-attention its captions; the rest is SDXL's further conditioning.

        SDXL is told that the image is ``size`` (height, width in pixels), originally too and uncropped.
        """
        n, captions = len(texts), list({id(one): one for one in texts}.values())
        places = {id(one): at for at, one in enumerate(captions)}
        rows = [places[id(one)] for one in texts]
        skipped = n if guided and self._zero and self._layers.skip_zeros else 0
        if guided and not skipped:
            rows, captions = [*[len(captions)] * n, *rows], [*captions, self._unconditional]
        self._layers.remember(captions, rows, skipped)
        if texts[0].pooled is None:
            return None
        each = [*([self._unconditional] * n if guided else ()), *texts]
        pooled = torch.cat([one.pooled for one in each if one.pooled is not None])
        ids = torch.tensor([[*size, 0, 0, *size]], dtype=pooled.dtype, device=pooled.device).expand(len(pooled), -1)
        return {"text_embeds": pooled, "time_ids": ids}
