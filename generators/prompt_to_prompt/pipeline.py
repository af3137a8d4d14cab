"""Prompt-to-prompt (arXiv 2208.01626, algorithm 1) on a text-to-image latent diffusion model, many pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from twinset.contracts.kinds.samples import Pixels
from twinset.generators.prompt_to_prompt.attention import Injection, injected
from twinset.generators.prompt_to_prompt.edits import Alignment, Edit, EditError, Schedule, align
from twinset.models.diffusion.pipeline import OpenPipeline


@dataclass(frozen=True)
class DrawnPair:
    """A pair as drawn.

    images: the source image and the edited image, (height, width, 3). finite: False where numbers of the network were
    not; pixels that are no number are black.
    """

    images: tuple[Pixels, Pixels]
    finite: bool


class PromptToPrompt:
    """Draws pairs with a pipeline whose UNet has cross-attention: Stable Diffusion 1.x and 2.x, SDXL, small ones.

    The processors are the UNet's only during a call, which draws no random numbers. One call at a time.

    Memory, beside the weights: 4 UNet rows a pair (2 without guidance), all attention fused, so that no layer holds its
    probabilities. In half precision the published code holds 4 rows x 8 heads x 4096 x 4096 x 2 bytes = 1 GiB at once
    for each 64 x 64 self-attention of Stable Diffusion; here such a layer holds its queries, keys, values and output,
    4 x 4 rows x 4096 x 320 x 2 bytes = 42 MB.

    opened: the loaded model, with a deterministic sampler.
    """

    def __init__(self, opened: OpenPipeline) -> None:
        self.opened = opened

    def __call__(self, alignments: Sequence[Alignment], noise: torch.Tensor) -> list[DrawnPair]:
        """Draw one pair an edit, both images of a pair from one noise.

        Self-attention is injected in feature maps up to a 32nd of the picture's sides, and of up to 256 pixels.

        Args:
            alignments: n edits, as `align` gives them.
            noise: (n, channels, height, width) of the latents, standard normal, float32 on the CPU.

        Raises:
            torch.OutOfMemoryError: the batch does not fit.
        """
        n, unet = len(alignments), self.opened.denoiser
        height, width = (side * self.opened.pipeline.vae_scale_factor for side in noise.shape[2:])
        # The published code injects self-attention up to 16 x 16: a 32nd of the sides of its 512 x 512 pixels.
        injection = Injection(n, max(16**2, height * width // 32**2))
        schedule = Schedule(alignments, self.opened.steps)

        def begin(step: int) -> None:
            injection.step = schedule.step(step, unet.device, unet.dtype)

        def step_ends(_: Any, step: int, __: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            begin(step + 1)
            return tensors

        begin(0)
        latents = torch.cat([noise, noise]).to(unet.dtype)
        captions = [alignment.edit.captions[side] for side in (0, 1) for alignment in alignments]
        size = {"height": height, "width": width}
        with injected(unet, injection):
            drawn = self.opened(captions, latents=latents, callback_on_step_end=step_ends, **size)
        return [
            DrawnPair((source, edited), finite0 and finite1)
            for (source, finite0), (edited, finite1) in zip(drawn[:n], drawn[n:], strict=True)
        ]

    def align(self, edit: Edit) -> Alignment:
        """An edit aligned for this model. Raises EditError where it cannot be drawn: a caption is too long or holds a
        mark of a tokenizer, or two tokenizers split it differently.
        """
        if mark := self.opened.steers(" ".join(edit.captions)):
            raise EditError(f"a caption holds {mark}, which the model takes for a mark of its own: remove it")
        alignment, *second = (align(edit, tokenizer) for tokenizer in self.opened.tokenizers)
        for tokens, tokens_2 in zip(alignment.captions, second[0].captions if second else (), strict=False):
            if tokens.offsets != tokens_2.offsets:
                raise EditError(f"the model's two tokenizers split {tokens.caption!r} differently: word it another way")
        return alignment
