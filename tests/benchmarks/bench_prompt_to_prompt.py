"""Pairs in a batch with fused attention against the published way, a pair at a time.

    python -m tests.benchmarks.bench_prompt_to_prompt [--pairs N] [--latent N] [--steps N] [--rounds N] [--tiny]

Stable Diffusion 1.4's architecture at its real widths with random weights (860 million parameters; half precision on a
GPU, where there is one), captions to images. The published way draws both captions of one pair with guidance, 4 rows
through the UNet, every layer's attention probabilities made, replaced and multiplied; text encoder, scheduler and
autoencoder are the same in both. On the CPU 2 pairs of 256 x 256 pixels in 2 steps by the clock of its time; on a GPU
8 pairs of 512 x 512 in 50.
"""

import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from tests.benchmarks.measured import OURS, compare
from tests.models.diffusion.tiny_models import CHANNELS_14, save_stable_diffusion
from tests.options import options
from twinset.generators.prompt_to_prompt import pipeline as prompt_to_prompt
from twinset.generators.prompt_to_prompt.attention import Injection
from twinset.generators.prompt_to_prompt.edits import Edit
from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt
from twinset.generators.prompt_to_prompt.source import StableDiffusion
from twinset.models.diffusion.pipeline import OpenPipeline

SIZE = {"pairs": 2, "latent": 32, "steps": 2, "rounds": 1}  # latent: side; pixels are 8 times as many
SIZE_ON_A_GPU = {"pairs": 8, "latent": 64, "steps": 50, "rounds": 3}
PUBLISHED = "the published way, pair by pair"
EDITS = [
    Edit(("a photo of a cat", "a photo of a dog")),
    Edit(("a squirrel eating a burger", "a lion eating a burger")),
    Edit(("a photo of a cat", "a photo of a cat in the winter")),
    Edit(("a red square", "a blue square")),
]


class ExplicitInjection(Injection):
    """The published way: every layer makes the probabilities of all rows and heads, then replaces the edited ones."""

    def self_attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        probabilities = (q @ k.transpose(-1, -2) * scale).softmax(-1)
        if self.step.self_attention is not None and q.shape[2] <= self.max_self_tokens:
            probabilities[-1] = probabilities[-2]
        return probabilities @ v

    def cross_attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        probabilities = (q @ k.transpose(-1, -2) * scale).softmax(-1)
        if self.step.source is not None:
            own = 0 if self.step.edited is None else probabilities[-1] * self.step.edited[0]
            probabilities[-1] = probabilities[-2] @ self.step.source[0] + own
        return probabilities @ v


def main() -> None:
    gpu = torch.cuda.is_available()
    given = options(__doc__, **(SIZE_ON_A_GPU if gpu else SIZE), tiny=False)
    with tempfile.TemporaryDirectory() as folder:
        widths: Any = {} if given.tiny else {"channels": CHANNELS_14, "context": 768}
        model = str(save_stable_diffusion(Path(folder), **widths))
        settings = {"kind": "stable-diffusion", "model": model, "licence": "MIT", "steps": given.steps}
        settings["device"] = "gpu" if gpu else "cpu"
        pipeline = PromptToPrompt(OpenPipeline(StableDiffusion.model_validate(settings)))
    shape = (given.pairs, 4, given.latent, given.latent)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    alignments = [pipeline.align(EDITS[n % len(EDITS)]) for n in range(given.pairs)]

    def one_by_one() -> Any:
        with patch.object(prompt_to_prompt, "Injection", ExplicitInjection):
            drawn = [pipeline([alignment], noise[n : n + 1])[0] for n, alignment in enumerate(alignments)]
        return np.array([pair.images for pair in drawn])

    def batched() -> Any:
        return np.array([pair.images for pair in pipeline(alignments, noise)])

    pipeline.opened.steps = 1
    for draw in (batched, one_by_one):
        draw()  # kernels are chosen and memory is mapped once
    pipeline.opened.steps = given.steps
    side, network = 8 * given.latent, "a tenth of SD 1.4's UNet" if given.tiny else "SD 1.4's UNet"
    where = torch.cuda.get_device_name() if gpu else "CPU time"
    results = compare(
        f"{network}, {given.pairs} pairs of {side} × {side}, {given.steps} steps, {where}",
        batched,
        {PUBLISHED: one_by_one},
        rounds=given.rounds,
        clock=time.perf_counter if gpu else time.process_time,  # images end on the CPU: the GPU is waited for
        more=lambda seconds: f"{given.pairs / seconds:.3g} pairs/s",
        warm=False,
    )
    apart = np.abs(results[OURS].astype(int) - results[PUBLISHED])
    print(f"images apart: at most {apart.max()} of 255, {apart.mean():.3f} in the mean")


if __name__ == "__main__":
    main()
