"""Prompt-to-prompt (arXiv 2208.01626, algorithm 1) on a text-to-image latent diffusion model, many pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.prompt_to_prompt.attention import Injection, injected
from twinset.generators.prompt_to_prompt.edits import Alignment, Edit, EditError, Schedule, align
from twinset.models.diffusion.model import decode
from twinset.models.diffusion.models import Parts, load_parts, new_scheduler
from twinset.models.diffusion.text import encode, unconditional

SchedulerName = Literal["ddim", "dpm-solver++"]


@dataclass(frozen=True)
class DrawnPair:
    """A pair as drawn.

    images: the source image and the edited image, (height, width, 3). finite: False where latents or pixels were
    infinite or not a number; such pixels are black.
    """

    images: tuple[Pixels, Pixels]
    finite: bool


class PromptToPrompt:
    """Draws pairs with a UNet2DConditionModel that has cross-attention: Stable Diffusion 1.x and 2.x, SDXL, small ones.

    The processors are the UNet's only during a call, and a call leaves nothing behind: its scheduler is its own, it
    draws no random numbers. One call at a time.

    Memory, beside the weights: 4 UNet rows a pair (2 without guidance), all attention fused, so that no layer holds its
    probabilities. In half precision the published code holds 4 rows x 8 heads x 4096 x 4096 x 2 bytes = 1 GiB at once
    for each 64 x 64 self-attention of Stable Diffusion; here such a layer holds its queries, keys, values and output,
    4 x 4 rows x 4096 x 320 x 2 bytes = 42 MB.

    parts: the loaded model. scheduler: of diffusers, deterministic.
    """

    def __init__(self, parts: Parts, scheduler: Any) -> None:
        self.parts, self.scheduler = parts, scheduler

    @torch.inference_mode()
    def __call__(
        self, alignments: Sequence[Alignment], noise: torch.Tensor, *, steps: int, guidance: float
    ) -> list[DrawnPair]:
        """Draw one pair an edit, both images of a pair from one noise.

        Self-attention is injected in feature maps up to a 32nd of the picture's sides, and of up to 256 pixels.

        Args:
            alignments: n edits, as `align` gives them.
            noise: (n, channels, height, width) of the latents, standard normal, float32 on the CPU.
            steps: of denoising.
            guidance: scale of classifier-free guidance; at 1 or less there is none.

        Raises:
            torch.OutOfMemoryError: the batch does not fit.
        """
        n, _, height, width = noise.shape
        unet, guided = self.parts.unet, guidance > 1
        device, dtype = unet.device, unet.dtype
        scheduler = type(self.scheduler).from_config(self.scheduler.config)
        scheduler.set_timesteps(steps, device=device)
        schedule = Schedule(alignments, len(scheduler.timesteps))
        # The published code injects self-attention up to 16 x 16: a 32nd of the sides of its 512 x 512 pixels.
        most = max(16**2, height * width * self.parts.scale**2 // 32**2)
        injection = Injection(n, most)

        captions = [alignment.edit.captions[side] for side in (0, 1) for alignment in alignments]
        conditions = self._conditions(captions, guided, (height * self.parts.scale, width * self.parts.scale))
        latents = torch.cat([noise, noise]).to(device) * scheduler.init_noise_sigma
        with injected(unet, injection):
            for index, timestep in enumerate(scheduler.timesteps):
                injection.step = schedule.step(index, device, dtype)
                rows = scheduler.scale_model_input(torch.cat([latents, latents]) if guided else latents, timestep)
                predicted = unet(rows.to(dtype), timestep, **conditions).sample.float()
                if guided:
                    without, conditional = predicted.chunk(2)
                    predicted = without + guidance * (conditional - without)
                latents = scheduler.step(predicted, timestep, latents).prev_sample
        decoded = [decode(self.parts.vae, latent) for latent in latents]
        return [
            DrawnPair((source, edited), finite0 and finite1)
            for (source, finite0), (edited, finite1) in zip(decoded[:n], decoded[n:], strict=True)
        ]

    def align(self, edit: Edit) -> Alignment:
        """An edit aligned for this model.

        Raises:
            EditError: the model cannot draw it: a caption is too long, or its two tokenizers split it differently.
        """
        alignment, *second = (align(edit, tokenizer) for tokenizer, _ in self.parts.encoders)
        for tokens, tokens_2 in zip(alignment.captions, second[0].captions if second else (), strict=False):
            if tokens.offsets != tokens_2.offsets:
                raise EditError(f"the model's two tokenizers split {tokens.caption!r} differently: word it another way")
        return alignment

    def _conditions(self, captions: Sequence[str], guided: bool, size: tuple[int, int]) -> dict[str, Any]:
        """The UNet's conditions, as its arguments; with guidance, n unconditional rows come first, then n captions.

        SDXL is also told that the image is ``size`` (height, width in pixels), originally too and uncropped.
        """
        encoders = self.parts.encoders
        texts = [encode(encoders, caption) for caption in captions]
        if guided:
            texts = [unconditional(encoders, self.parts.zero_unconditional)] * len(texts) + texts
        states = torch.cat([text.states for text in texts])
        pooled = [text.pooled for text in texts if text.pooled is not None]
        if not pooled:
            return {"encoder_hidden_states": states}
        ids = torch.tensor([[*size, 0, 0, *size]], dtype=states.dtype, device=states.device).expand(len(states), -1)
        added = {"text_embeds": torch.cat(pooled), "time_ids": ids}
        return {"encoder_hidden_states": states, "added_cond_kwargs": added}


def load_model(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, scheduler: SchedulerName = "ddim"
) -> PromptToPrompt:
    """Prompt-to-prompt with a model folder or a cached hub id; arguments and errors as `load_parts`.

    scheduler: with the model's own noise schedule.
    """
    parts = load_parts(name, device, dtype)
    return PromptToPrompt(parts, new_scheduler(parts.folder, scheduler))
