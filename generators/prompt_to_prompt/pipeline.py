"""Prompt-to-prompt (arXiv 2208.01626, algorithm 1) on a text-to-image latent diffusion model, many pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import diffusers
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

from twinset.generators.prompt_to_prompt.alignment import Alignment, Edit, EditError, Schedule, align
from twinset.generators.prompt_to_prompt.attention import Injection, LocalBlend, cross_attention_sizes, injected
from twinset.models.diffusion.model import unscaled
from twinset.models.diffusion.models import load_parts, new_scheduler, scheduler_config
from twinset.models.diffusion.text import embedded

SchedulerName = Literal["ddim", "dpm-solver++"]
MAP_SIDE = 16  # the published code injects self-attention up to, and blends at, 16 x 16: a 32nd of 512 pixels
DECODED_AT_ONCE = 8  # images: an autoencoder needs more memory an image than the UNet


@dataclass(frozen=True)
class Made:
    """Pairs as drawn. images: (n, 2, height, width, 3) RGB, the source image and the edited image.

    finite: (n,), False where latents or pixels were infinite or not a number; such pixels are 0.
    masks: (n, height, width), where the words of `Edit.where` have their attention, everywhere for a pair without them;
        None: none had any.
    """

    images: NDArray[np.uint8]
    finite: NDArray[np.bool_]
    masks: NDArray[np.bool_] | None


class PromptToPromptPipeline(diffusers.DiffusionPipeline):  # type: ignore[misc]  # diffusers is untyped in parts
    """Draws pairs with a UNet2DConditionModel that has cross-attention: Stable Diffusion 1.x and 2.x, SDXL, small ones.

    Two text encoders make it SDXL's. Components are diffusers' own; the processors are the UNet's only during a call,
    and a call leaves nothing behind: its scheduler is its own, it draws no random numbers. One call at a time.

    Memory, beside the weights: 4 UNet rows a pair (2 without guidance), all attention fused, so that no layer holds its
    probabilities. In half precision the published code holds 4 rows x 8 heads x 4096 x 4096 x 2 bytes = 1 GiB at once
    for each 64 x 64 self-attention of Stable Diffusion; here such a layer holds its queries, keys, values and output,
    4 x 4 rows x 4096 x 320 x 2 bytes = 42 MB. Words to look for add 2 x 8 x 256 x 77 x 4 bytes = 1.3 MB a pair.
    At most 8 images are decoded at a time.
    """

    _optional_components = ("text_encoder_2", "tokenizer_2")

    def __init__(
        self,
        vae: diffusers.AutoencoderKL | diffusers.AutoencoderTiny,
        text_encoder: CLIPTextModel,
        tokenizer: CLIPTokenizer,
        unet: diffusers.UNet2DConditionModel,
        scheduler: diffusers.DDIMScheduler | diffusers.DPMSolverMultistepScheduler,
        text_encoder_2: CLIPTextModelWithProjection | None = None,
        tokenizer_2: CLIPTokenizer | None = None,
        force_zeros_for_empty_prompt: bool = False,
    ) -> None:
        super().__init__()
        self.register_modules(
            vae=vae,
            text_encoder=text_encoder,
            tokenizer=tokenizer,
            unet=unet,
            scheduler=scheduler,
            text_encoder_2=text_encoder_2,
            tokenizer_2=tokenizer_2,
        )
        self.register_to_config(force_zeros_for_empty_prompt=force_zeros_for_empty_prompt)

    @torch.inference_mode()
    def __call__(self, edits: Sequence[Edit], noise: torch.Tensor, *, steps: int, guidance: float) -> Made:
        """Draws one pair an edit, both images of a pair from one noise.

        noise: (n, channels, height, width) of the latents, standard normal, float32 on the CPU.
        steps: denoising steps. guidance: scale of classifier-free guidance; at 1 or less there is none.
        Local blend reads the cross-attention maps whose size is nearest to 16 x 16. Self-attention is injected in
        feature maps up to that size, and where they have up to 256 pixels.
        Raises EditError if a caption does not fit the model, torch.OutOfMemoryError if the batch does not.
        """
        n, _, height, width = noise.shape
        if len(edits) != n or noise.dtype != torch.float32:
            raise ValueError(f"{len(edits)} edits need noise of ({len(edits)}, c, h, w) float32, not {noise.shape}")
        device, dtype = self.unet.device, self.unet.dtype
        scheduler = type(self.scheduler).from_config(self.scheduler.config)
        scheduler.set_timesteps(steps, device=device)
        alignments = [self.align(edit) for edit in edits]
        schedule = Schedule(edits, alignments, len(scheduler.timesteps))
        sizes = cross_attention_sizes(self.unet, height, width)
        size = min(sizes, key=lambda size: abs(size[0] * size[1] - MAP_SIDE**2))
        located = any(edit.where is not None for edit in edits)
        blend = LocalBlend(edits, alignments, size, device) if located else None
        injection = Injection(n, max(size[0] * size[1], MAP_SIDE**2), blend)

        captions = [edit.captions[0] for edit in edits] + [edit.captions[1] for edit in edits]
        enlarged = 2 ** (len(self.vae.config.block_out_channels) - 1)
        conditions = self._conditions(captions, guidance > 1, (height * enlarged, width * enlarged))
        latents = torch.cat([noise, noise]).to(device) * scheduler.init_noise_sigma
        with injected(self.unet, injection):
            for index, timestep in enumerate(scheduler.timesteps):
                injection.step = schedule.step(index, device, dtype)
                rows = scheduler.scale_model_input(torch.cat([latents, latents]) if guidance > 1 else latents, timestep)
                predicted = self.unet(rows.to(dtype), timestep, **conditions).sample.float()
                if guidance > 1:
                    unconditional, conditional = predicted.chunk(2)
                    predicted = unconditional + guidance * (conditional - unconditional)
                latents = scheduler.step(predicted, timestep, latents).prev_sample
                if blend is not None:
                    latents = blend.blend(latents, index, schedule.steps)
        return self._decode(latents, blend)

    def align(self, edit: Edit) -> Alignment:
        """How an edit's captions are aligned for this model. Raises EditError if it cannot draw them: a caption is too
        long, or its two tokenizers cut it differently."""
        alignment = align(edit.captions, self.tokenizer)
        if self.tokenizer_2 is not None:
            other = align(edit.captions, self.tokenizer_2)
            for one, two in zip(alignment.captions, other.captions, strict=True):
                if one.offsets != two.offsets:
                    raise EditError(f"the model's two tokenizers cut {one.caption!r} differently: word it another way")
        return alignment

    def _conditions(self, captions: Sequence[str], guidance: bool, size: tuple[int, int]) -> dict[str, Any]:
        """The UNet's conditions, as its arguments; with guidance, n unconditional rows come first, then n captions.

        SDXL is also told that the image is ``size`` (height, width in pixels), originally too and uncropped.
        """
        embedded = self._embedded(captions)
        if guidance:
            if self.config.force_zeros_for_empty_prompt:  # what SDXL was trained to take for no caption
                empty = [torch.zeros_like(rows[:1]) for rows in embedded]
            else:
                empty = self._embedded([""])
            embedded = [torch.cat([one.expand_as(rows), rows]) for one, rows in zip(empty, embedded, strict=True)]
        states, *pooled = embedded
        if not pooled:
            return {"encoder_hidden_states": states}
        ids = torch.tensor([[*size, 0, 0, *size]], dtype=states.dtype, device=states.device).expand(len(states), -1)
        return {"encoder_hidden_states": states, "added_cond_kwargs": {"text_embeds": pooled[0], "time_ids": ids}}

    def _embedded(self, captions: Sequence[str]) -> list[torch.Tensor]:
        """As `embedded`, all captions in one batch."""
        both = ((self.tokenizer, self.text_encoder), (self.tokenizer_2, self.text_encoder_2))
        return embedded([(tokenizer, encoder) for tokenizer, encoder in both if encoder is not None], captions)

    def _decode(self, latents: torch.Tensor, blend: LocalBlend | None) -> Made:
        scaled = unscaled(self.vae, latents)
        rows = torch.split(scaled.to(self.vae.dtype), DECODED_AT_ONCE)
        decoded = [self.vae.decode(some).sample.float() for some in rows]
        pixels = torch.stack(torch.cat(decoded).chunk(2), 1)  # (n, 2, 3, height, width) in -1..1
        finite = pixels.isfinite().flatten(1).all(1) & torch.stack(latents.isfinite().chunk(2), 1).flatten(1).all(1)
        images = (
            (pixels.nan_to_num(-1.0, posinf=-1.0, neginf=-1.0) / 2 + 0.5).clamp(0, 1).mul(255).round().to(torch.uint8)
        )
        masks = None if blend is None else blend.masks((pixels.shape[3], pixels.shape[4])).cpu().numpy()
        return Made(images.permute(0, 1, 3, 4, 2).cpu().numpy(), finite.cpu().numpy(), masks)


def load_model(
    name: str, device: str | torch.device, dtype: torch.dtype | None = None, scheduler: SchedulerName | None = None
) -> PromptToPromptPipeline:
    """The pipeline of a model folder or a cached hub id: Stable Diffusion's, or SDXL's if it has two text encoders.

    dtype: as `load_parts`.
    scheduler: None: the model's own if it is DDIM or DPM-Solver++, else DDIM with the model's noise schedule.
    Raises ModelMissing and `WrongUse` as `load_parts` does.
    """
    parts = load_parts(name, device, dtype)
    own = str(scheduler_config(parts.folder).get("_class_name"))
    chosen = scheduler or ("dpm-solver++" if own == "DPMSolverMultistepScheduler" else "ddim")
    return PromptToPromptPipeline(
        vae=parts.vae,
        text_encoder=parts.text_encoder,
        tokenizer=parts.tokenizer,
        unet=parts.unet,
        scheduler=new_scheduler(parts.folder, chosen),
        text_encoder_2=parts.text_encoder_2,
        tokenizer_2=parts.tokenizer_2,
        force_zeros_for_empty_prompt=parts.zero_unconditional,
    )
