"""Measures how much of what captions say the small model draws: ``python -m evaluation.small_diffusion.measure``.

The captions are such as training never saw, the pictures come from diffusers' own pipeline, and the judge is
`evaluation.small_diffusion.checker`. The same arguments give the same numbers on one machine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import diffusers
import numpy as np
import torch
import transformers
from diffusers import StableDiffusionPipeline
from numpy.typing import NDArray

from evaluation.small_diffusion.checker import ATTRIBUTES, judge, read_picture, stated
from evaluation.small_diffusion.picture_sheet import Cell, picture_sheet
from evaluation.small_diffusion.shares import Share
from generators.builtin.small_diffusion.scenes import Scene, draw_scene, every_caption, is_held_out
from generators.edited_pairs.source import StableDiffusion
from manifests.errors import WrongUse
from manifests.locations import SMALL, small_model_folder

#: What a recipe that names the small model gets: the reports are of what builds draw with.
SHIPPED = StableDiffusion.model_validate({"kind": "stable-diffusion", "model": SMALL})
BATCH = 50
ON_SHEET = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, judge, print and write ``fidelity.json`` and ``fidelity.png``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=small_model_folder(), help="folder in diffusers' layout")
    parser.add_argument("--out", type=Path, default=Path("fidelity"), help="folder for the report and the pictures")
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--steps", type=int, default=SHIPPED.steps)
    parser.add_argument("--guidance", type=float, default=SHIPPED.guidance)
    parser.add_argument("--seed", type=int, default=0, help="of captions and noise")
    parser.add_argument("--batch", type=int, default=BATCH, help="pictures drawn at once")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = parser.parse_args(arguments)

    quiet()
    scenes = held_out_scenes(asked.prompts, asked.seed)
    began = time.monotonic()
    pictures = draw(asked.model, scenes, asked.steps, asked.guidance, asked.seed, asked.batch, asked.device)
    seconds = time.monotonic() - began
    verdicts = [judge(read_picture(picture), scene) for picture, scene in zip(pictures, scenes, strict=True)]
    shares = fidelity(scenes, verdicts)
    for name, share in shares.items():
        print(f"{name:34} {share}")
    print(f"{len(scenes)} pictures in {seconds:.0f} s, {asked.steps} steps, guidance {asked.guidance}")

    asked.out.mkdir(parents=True, exist_ok=True)
    settings = {name: getattr(asked, name) for name in ("prompts", "steps", "guidance", "seed", "batch", "device")}
    report = {"settings": settings, "shares": {name: share.as_json() for name, share in shares.items()}}
    (asked.out / "fidelity.json").write_text(json.dumps(report, indent=2) + "\n")
    sheet = picture_sheet(list(_cells(pictures, scenes, verdicts))[:ON_SHEET], columns=10)
    (asked.out / "fidelity.png").write_bytes(sheet)


def quiet() -> None:
    """Reports are short: no progress of loading, no remarks on configurations."""
    for library in (diffusers.utils.logging, transformers.utils.logging):
        library.set_verbosity_error()
        library.disable_progress_bar()


def held_out_scenes(number: int, seed: int) -> list[Scene]:
    """Scenes with captions that training never saw, no two alike; asking for more keeps the first ones.

    Raises `WrongUse` when there are not so many.
    """
    held_out = sum(map(is_held_out, every_caption()))
    if number > held_out:
        raise WrongUse(f"--prompts {number}: only {held_out} captions are kept from training; ask for fewer")
    rng = np.random.default_rng(seed)
    scenes: dict[str, Scene] = {}
    while len(scenes) < number:
        scene = draw_scene(rng)
        if is_held_out(scene.caption()):
            scenes.setdefault(scene.caption(), scene)
    return list(scenes.values())


def draw(
    model: Path, scenes: Sequence[Scene], steps: int, guidance: float, seed: int, batch: int, device: str
) -> NDArray[np.uint8]:
    """(n, 64, 64, 3) RGB, one picture a scene. The noise of the n-th depends on the seed and n alone."""
    pipeline = StableDiffusionPipeline.from_pretrained(
        model, use_safetensors=True, local_files_only=True, safety_checker=None
    ).to(device, torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    drawn = []
    for start in range(0, len(scenes), batch):
        some = scenes[start : start + batch]
        noise = [torch.Generator().manual_seed(seed * 1_000_003 + start + n) for n in range(len(some))]
        captions = [scene.caption() for scene in some]
        images = pipeline(
            captions, num_inference_steps=steps, guidance_scale=guidance, generator=noise, output_type="np"
        ).images
        drawn.append((images * 255).round().astype(np.uint8))
    return np.concatenate(drawn)


def fidelity(scenes: Sequence[Scene], verdicts: Sequence[dict[str, bool]]) -> dict[str, Share]:
    """Shares drawn right: of each attribute where the caption says it, where it is left to the world's habit (middle,
    medium size, before a wall, by day), and of pictures in which all is right that is said, and all that is settled."""
    judged = list(zip(scenes, verdicts, strict=True))
    shares: dict[str, Share] = {}
    for name in ATTRIBUTES:
        shares[name] = Share.count(right[name] for scene, right in judged if name in stated(scene))
        habit = Share.count(right[name] for scene, right in judged if name in right and name not in stated(scene))
        if habit.of:
            shares[f"{name}, left out of the caption"] = habit
    shares["all that the caption says"] = Share.count(
        all(right[name] for name in stated(scene)) for scene, right in judged
    )
    shares["all, with what it leaves out"] = Share.count(all(right.values()) for _, right in judged)
    return shares


def _cells(pictures: NDArray[np.uint8], scenes: Sequence[Scene], verdicts: Sequence[dict[str, bool]]) -> Iterator[Cell]:
    for picture, scene, right in zip(pictures, scenes, verdicts, strict=True):
        wrong = [name for name, is_right in right.items() if not is_right]
        yield Cell([picture], scene.caption(), "not right: " + ", ".join(wrong) if wrong else "right", bool(wrong))


if __name__ == "__main__":
    main()
