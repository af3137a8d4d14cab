"""Pairs in a batch with fused attention against the published way, a pair at a time: goal >= 2 times as fast on a GPU.

    python tests/benchmarks/bench_prompt_to_prompt.py [--pairs N] [--latent N] [--steps N] [--repeats N] [--threads N]
                                                      [--tiny]

Stable Diffusion 1.4's architecture at its real widths with random weights (860 million parameters; half precision on a
GPU, where there is one), captions to images. The published way draws both captions of one pair with guidance, 4 rows
through the UNet, every layer's attention probabilities made, replaced and multiplied; text encoder, scheduler and
autoencoder are the same in both. The two alternate, so that other work on the machine slows both alike. Printed: pairs
a second (on the CPU, of its time: a busy machine's wall clock says nothing) and peak memory above the weights of each,
their ratios, and how far apart their images are. The defaults on the CPU are smaller: 2 pairs of 256 x 256 pixels in 2
steps; on a GPU 8 pairs of 512 x 512 in 50.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil
import torch
from measured import row
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.models.diffusion.tiny_models import CHANNELS_14, save_stable_diffusion  # noqa: E402
from twinset.generators.prompt_to_prompt import pipeline as prompt_to_prompt  # noqa: E402
from twinset.generators.prompt_to_prompt.attention import Injection  # noqa: E402
from twinset.generators.prompt_to_prompt.edits import Edit  # noqa: E402
from twinset.generators.prompt_to_prompt.pipeline import DrawnPair, PromptToPrompt  # noqa: E402
from twinset.generators.prompt_to_prompt.source import StableDiffusion  # noqa: E402
from twinset.models.diffusion.pipeline import OpenPipeline  # noqa: E402

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


class Peak:
    """The most memory used within ``with``, above that at its start, in bytes: the GPU's, or the process's sampled."""

    used = 0

    @contextmanager
    def measured(self, device: torch.device) -> Iterator[None]:
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            start = torch.cuda.memory_allocated(device)
            yield
            self.used = max(self.used, torch.cuda.max_memory_allocated(device) - start)
            return
        process, done = psutil.Process(), threading.Event()
        start = process.memory_info().rss

        def sample() -> None:
            while not done.wait(0.005):
                self.used = max(self.used, process.memory_info().rss - start)

        sampler = threading.Thread(target=sample)
        sampler.start()
        yield
        done.set()
        sampler.join()


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pairs, latent, steps = (8, 64, 50) if device.type == "cuda" else (2, 32, 2)
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=pairs, help="in the batch, and as many one by one")
    parser.add_argument("--latent", type=int, default=latent, help="side; pixels are 8 times as many")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--repeats", type=int, default=3 if device.type == "cuda" else 1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tiny", action="store_true", help="a tenth of the width, to try the benchmark itself")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        widths: Any = {} if options.tiny else {"channels": CHANNELS_14, "context": 768}
        given = {
            "model": str(save_stable_diffusion(Path(folder), **widths)),
            "licence": "MIT",
            "threads": options.threads,
        }
        given |= {
            "kind": "stable-diffusion",
            "device": "gpu" if device.type == "cuda" else "cpu",
            "steps": options.steps,
        }
        pipeline = PromptToPrompt(OpenPipeline(StableDiffusion.model_validate(given)))
    shape = (options.pairs, 4, options.latent, options.latent)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    alignments = [pipeline.align(EDITS[n % len(EDITS)]) for n in range(options.pairs)]

    def images_of(pairs: list[DrawnPair]) -> NDArray[np.uint8]:
        return np.array([pair.images for pair in pairs])

    def batched() -> NDArray[np.uint8]:
        return images_of(pipeline(alignments, noise))

    def one_by_one() -> NDArray[np.uint8]:
        with patch.object(prompt_to_prompt, "Injection", ExplicitInjection):
            drawn = [pipeline([alignment], noise[n : n + 1]) for n, alignment in enumerate(alignments)]
        return np.concatenate([images_of(pairs) for pairs in drawn])

    ways: dict[str, Callable[[], NDArray[np.uint8]]] = {"batched, fused": batched, "published way": one_by_one}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    peaks = {way: Peak() for way in ways}
    images: dict[str, NDArray[np.uint8]] = {}
    pipeline.opened.steps = 1
    for draw in ways.values():
        draw()  # kernels are chosen and memory is mapped once
    pipeline.opened.steps = options.steps
    for _ in range(options.repeats):
        for way, draw in ways.items():
            with peaks[way].measured(device):
                start = clock()
                images[way] = draw()  # ends on the CPU: the GPU is waited for
                seconds[way].append(clock() - start)

    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {options.threads} threads"
    print(f"{options.pairs} pairs of {8 * options.latent} x {8 * options.latent}, {options.steps} steps, {name}")
    of_core = "" if device.type == "cuda" else " of CPU time"
    for way in ways:
        rate = options.pairs / min(seconds[way])
        print(f"{way:15} {rate:8.4f} pairs/s{of_core}   peak {peaks[way].used / 2**30:6.2f} GiB above the weights")
    fused, published = (min(seconds[way]) for way in ways)
    memory = peaks["published way"].used / max(peaks["batched, fused"].used / options.pairs, 1)
    apart = np.abs(images["batched, fused"].astype(int) - images["published way"])
    side, network = 8 * options.latent, "a tenth of SD 1.4's UNet" if options.tiny else "SD 1.4's UNet"
    row(
        f"{network}, {options.pairs} pairs of {side} × {side}, {name}{of_core}",
        "the published way",
        [slow / fast for slow, fast in zip(seconds["published way"], seconds["batched, fused"], strict=True)],
        f"a pair in 1/{memory:.1f} of the memory",
    )
    print(f"ratio: {published / fused:.2f} times as fast; a pair in 1/{memory:.1f} of the memory")
    print(f"images apart: at most {apart.max()} of 255, {apart.mean():.3f} in the mean")


if __name__ == "__main__":
    main()
