"""Measure how much of what captions say the small model draws: ``python -m studies.small_diffusion.measure``.

The captions are such as training never saw, the pictures come from diffusers' own pipeline, and the judge is
`twinset_demo.small_world.checker`. The same arguments give the same numbers on one machine.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from diffusers import StableDiffusionPipeline
from numpy.typing import NDArray

from studies.small_diffusion.report import Cell, Share, options, write
from twinset.contracts.errors import WrongUse
from twinset_demo.small_diffusion.relations import Arrangement
from twinset_demo.small_diffusion.scenes import Scene, every_caption, is_held_out, sample_scene
from twinset_demo.small_world.checker import ATTRIBUTES, judge, read_picture, stated

S = TypeVar("S", Scene, Arrangement)

ON_SHEET = 60  # pictures


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, judge, print and write ``fidelity.json`` and ``fidelity.png``."""
    parser = options(__doc__, out="fidelity", batch=50)
    parser.add_argument("--prompts", type=int, default=500)
    given = parser.parse_args(arguments)
    scenes = held_out_scenes(given.prompts, given.seed)
    began = time.monotonic()
    pictures = draw(given.model, scenes, given.steps, given.guidance, given.seed, given.batch, given.device)
    seconds = time.monotonic() - began
    verdicts = [judge(read_picture(picture), scene) for picture, scene in zip(pictures, scenes, strict=True)]
    shares = fidelity(scenes, verdicts)
    for name, share in shares.items():
        print(f"{name:34} {share}")
    print(f"{len(scenes)} pictures in {seconds:.0f} s, {given.steps} steps, guidance {given.guidance}")
    cells = []
    for shown, scene, right in zip(pictures[:ON_SHEET], scenes, verdicts, strict=False):
        wrong = ", ".join(name for name, is_right in right.items() if not is_right)
        cells.append(Cell([shown], scene.caption(), f"not right: {wrong}" if wrong else "right", bool(wrong)))
    write(given, "fidelity", {"shares": shares}, cells, columns=10)


def held_out_scenes(number: int, seed: int) -> list[Scene]:
    """Scenes with captions that training never saw, no two alike; asking for more keeps the first ones.

    Raises:
        WrongUse: there are not so many.
    """
    held_out = sum(map(is_held_out, every_caption()))
    return sample_held_out(number, held_out, seed, sample_scene, lambda scene: is_held_out(scene.caption()))


def sample_held_out(
    number: int, most: int, seed: int, sample: Callable[[np.random.Generator], S], held_out: Callable[[S], bool]
) -> list[S]:
    """Scenes that were kept from training, no two with one caption; asking for more keeps the first ones.

    Args:
        most: how many captions were kept from it.
        sample: a scene, of those that training saw too.

    Raises:
        WrongUse: there are not so many.
    """
    if number > most:
        raise WrongUse(f"--prompts {number}: only {most} captions are kept from training; ask for fewer")
    rng = np.random.default_rng(seed)
    scenes: dict[str, S] = {}
    while len(scenes) < number:
        scene = sample(rng)
        if held_out(scene):
            scenes.setdefault(scene.caption(), scene)
    return list(scenes.values())


def draw(
    model: Path, scenes: Sequence[Scene | Arrangement], steps: int, guidance: float, seed: int, batch: int, device: str
) -> NDArray[np.uint8]:
    """(n, 64, 64, 3) RGB, one picture a scene. The noise of the n-th depends on the seed and n alone."""
    pipeline = StableDiffusionPipeline.from_pretrained(
        model, use_safetensors=True, local_files_only=True, safety_checker=None
    ).to(device, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    drawn = []
    for start in range(0, len(scenes), batch):
        captions = [scene.caption() for scene in scenes[start : start + batch]]
        noise = [torch.Generator().manual_seed(seed * 1_000_003 + start + n) for n in range(len(captions))]
        images = pipeline(
            captions, num_inference_steps=steps, guidance_scale=guidance, generator=noise, output_type="np"
        ).images
        drawn.append((images * 255).round().astype(np.uint8))
    return np.concatenate(drawn)


def fidelity(scenes: Sequence[Scene], verdicts: Sequence[dict[str, bool]]) -> dict[str, Share]:
    """Shares drawn right of each attribute: where the caption says it, and where it leaves it to habit (middle,
    medium size, before a wall, by day). Then of whole pictures: all that is said, and all that is settled."""
    judged = list(zip(scenes, verdicts, strict=True))
    shares: dict[str, Share] = {}
    for name in ATTRIBUTES:
        shares[name] = Share.count(right[name] for scene, right in judged if name in stated(scene))
        habit = Share.count(right[name] for scene, right in judged if name in right and name not in stated(scene))
        if habit.of:
            shares[f"{name}, left out of the caption"] = habit
    said = (all(right[name] for name in stated(scene)) for scene, right in judged)
    shares["all that the caption says"] = Share.count(said)
    shares["all, with what it leaves out"] = Share.count(all(right.values()) for _, right in judged)
    return shares


if __name__ == "__main__":
    main()
