"""Captions as diffusion models read them; from noise and captions to latents by classifier-free guidance."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import torch
from diffusers import UNet2DConditionModel
from torch.nn.functional import scaled_dot_product_attention

from twinset.models.diffusion.models import Parts, new_scheduler


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt, encoded.

    states: (1, tokens, channels) for cross-attention. pooled: (1, channels), SDXL's; None: the model reads none. cut:
    tokens of the prompt that the encoders did not read.
    """

    states: torch.Tensor
    pooled: torch.Tensor | None
    cut: int = 0


def embedded(encoders: Sequence[tuple[Any, Any]], captions: Sequence[str], cut: bool = False) -> list[torch.Tensor]:
    """Captions, padded to the encoders' length, as (rows, tokens, channels) for cross-attention; of SDXL also as its
    second encoder pools them, (rows, channels). Each encoder sees all captions in one batch.

    Args:
        encoders: tokenizer and text encoder, of SDXL twice.
        cut: whether captions that are too long are cut; else torch raises an error for them.
    """
    seen = []
    for tokenizer, encoder in encoders:
        length = tokenizer.model_max_length
        options = {"padding": "max_length", "max_length": length, "truncation": cut, "return_tensors": "pt"}
        ids = tokenizer(list(captions), **options)["input_ids"]
        seen.append(encoder(ids.to(encoder.device), output_hidden_states=True))
    if len(seen) == 1:
        return [seen[0].last_hidden_state]
    # SDXL (arXiv 2307.01952, section 2.1) takes the last layer but one of both, side by side.
    return [torch.cat([one.hidden_states[-2] for one in seen], dim=-1), seen[1].text_embeds]


def tokens_over(encoders: Sequence[tuple[Any, Any]], prompt: str) -> int:
    """How many tokens of a prompt, with its start and end, an encoder would not read; the largest number counts."""
    return max(max(0, len(tokenizer(prompt).input_ids) - int(tokenizer.model_max_length)) for tokenizer, _ in encoders)


@torch.inference_mode()
def encode(encoders: Sequence[tuple[Any, Any]], prompt: str) -> Text:
    """One prompt, alone in its pass: the same numbers whatever else is drawn. What is too long is cut at the end."""
    over = tokens_over(encoders, prompt)
    states, *pooled = embedded(encoders, [prompt], cut=True)
    return Text(states, pooled[0] if pooled else None, over)


def unconditional(encoders: Sequence[tuple[Any, Any]], zero: bool) -> Text:
    """What classifier-free guidance takes for no caption: zeros, as SDXL was trained with, or an empty caption."""
    empty = encode(encoders, "")
    if not zero:
        return empty
    return Text(torch.zeros_like(empty.states), None if empty.pooled is None else torch.zeros_like(empty.pooled))


class FusedSelfAttention:
    """The processor of self-attention: queries, keys and values in one multiplication."""

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None
    ) -> torch.Tensor:
        """hidden_states: (rows, pixels, channels)."""
        q, k, v = (_heads(attn, one) for one in attn.to_qkv(hidden_states).chunk(3, dim=-1))
        return _out(attn, scaled_dot_product_attention(q, k, v, scale=attn.scale))


class CaptionAttention:
    """The processor of cross-attention of one layer, with the keys and values of the captions that are drawn.

    A pass has n unconditional rows, then n rows with their captions. SDXL's unconditional embedding is zeros, and its
    keys and values have no bias: then keys and values are zeros, attention over them is zero, and the layer's output is
    the bias of its last projection, the same bits as by computing it. That half needs no queries either: 4 % of SDXL's
    work.

    keys, values: (rows, heads, tokens, channels of a head), of all rows after the first ``skipped`` ones, whose
    captions are zeros.
    """

    keys: torch.Tensor
    values: torch.Tensor
    skipped: int = 0

    def __call__(
        self, attn: Any, hidden_states: torch.Tensor, encoder_hidden_states: Any = None, attention_mask: Any = None
    ) -> torch.Tensor:
        """hidden_states: (rows, pixels, channels)."""
        q = _heads(attn, attn.to_q(hidden_states[self.skipped :]))
        out = _out(attn, scaled_dot_product_attention(q, self.keys, self.values, scale=attn.scale))
        if not self.skipped:
            return out
        bias = attn.to_out[0].bias
        known = out.new_zeros(()) if bias is None else bias
        return torch.cat([known.expand(self.skipped, *out.shape[1:]), out])


class CaptionLayers:
    """The cross-attention layers of a UNet, which this gives its processors."""

    def __init__(self, unet: UNet2DConditionModel) -> None:
        own = dict(unet.attn_processors)
        self._layers: list[tuple[Any, CaptionAttention]] = []
        for name, layer in unet.named_modules():
            if name.endswith(".attn1"):
                layer.fuse_projections()
                layer.to_q = layer.to_k = layer.to_v = None  # copied into to_qkv
                own[f"{name}.processor"] = FusedSelfAttention()
            elif name.endswith(".attn2"):
                own[f"{name}.processor"] = CaptionAttention()
                self._layers.append((layer, own[f"{name}.processor"]))
        unet.set_attn_processor(own)

    @property
    def skip_zeros(self) -> bool:
        """Whether captions that are zeros have keys and values that are zeros."""
        return all(layer.to_k.bias is None and layer.to_v.bias is None for layer, _ in self._layers)

    def remember(self, captions: Sequence[Text], rows: Sequence[int], skipped: int) -> None:
        """Compute keys and values of captions, each in a pass of its own, for all steps to come.

        Args:
            captions: that occur in the batch, each once.
            rows: which of them each row has, after the first ``skipped`` rows.
        """
        order = torch.tensor(rows, device=captions[0].states.device)
        for layer, processor in self._layers:
            keys, values = (
                torch.cat([_heads(layer, project(one.states)) for one in captions])[order]
                for project in (layer.to_k, layer.to_v)
            )
            processor.keys, processor.values, processor.skipped = keys, values, skipped


def _heads(attn: Any, projected: torch.Tensor) -> torch.Tensor:
    """(rows, tokens, channels) -> (rows, heads, tokens, channels of a head)."""
    rows, tokens, channels = projected.shape
    return projected.view(rows, tokens, attn.heads, channels // attn.heads).transpose(1, 2)


def _out(attn: Any, attended: torch.Tensor) -> torch.Tensor:
    """(rows, heads, pixels, channels of a head) -> (rows, pixels, channels), projected."""
    linear, dropout = attn.to_out
    out: torch.Tensor = dropout(linear(attended.transpose(1, 2).flatten(2)))
    return out


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
