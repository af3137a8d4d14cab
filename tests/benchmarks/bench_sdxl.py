"""Images by SDXL through the engine against the published script.

    python -m tests.benchmarks.bench_sdxl [--prompts N] [--images N] [--resolution N] [--steps N] [--rounds N]
                                          [--micro-batch N] [--fused] [--compiled]

SDXL's architecture with random weights; on a GPU at its real widths in half precision (its text encoders have fewer
layers), on the CPU at a fifth of them by the clock of one thread's time. The published script calls diffusers' pipeline
with one prompt at a time and several images of it, then resizes and encodes; the engine does the same in micro-batches,
with diffusers' own means of speed where they are asked for.
"""

import io
import tempfile
import time
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from diffusers import StableDiffusionXLPipeline
from PIL import Image

from tests.benchmarks.measured import OURS, compare
from tests.models.diffusion.tiny_models import REAL_XL, save_sdxl
from tests.options import options
from twinset.models.diffusion.settings import DiffusersImages
from twinset.models.image_engine import Drawn, Request

PROMPTS = ["a photo of a cat on a red square", "a squirrel eating soup in the winter", "a green circle", "a lion"]
SIZE = {"prompts": 2, "resolution": 256, "steps": 3, "rounds": 3}
SIZE_ON_A_GPU = {"prompts": 4, "resolution": 1024, "steps": 50, "rounds": 2}
FIFTH: dict[str, Any] = {
    **{"channels": (64, 128, 256), "heads": (1, 2, 4), "texts": (160, 256), "pooled": 256, "sizes": 52},
    **{"vae": (32, 64, 128, 128), "groups": (32, 32)},
}


def encoded(images: Iterable[Image.Image]) -> list[bytes]:
    jpegs = []
    for image in images:
        stream = io.BytesIO()
        image.save(stream, "JPEG")
        jpegs.append(stream.getvalue())
    return jpegs


def main() -> None:
    gpu = torch.cuda.is_available()
    size = SIZE_ON_A_GPU if gpu else SIZE
    given = options(__doc__, **size, images=4, micro_batch=4, fused=False, compiled=False)
    torch.set_num_threads(1)
    prompts = list(islice(cycle(PROMPTS), given.prompts))
    side, half, count = given.resolution, given.resolution // 2, given.prompts * given.images
    settings = {name: getattr(given, name) for name in ("steps", "resolution", "micro_batch", "fused", "compiled")}
    settings |= {"kind": "diffusers", "licence": "MIT", "output_resolution": half, "threads": 1}
    settings["device"] = "gpu" if gpu else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        model = save_sdxl(Path(folder), REAL_XL if gpu else FIFTH, gpu)
        painter = DiffusersImages.model_validate({**settings, "model": str(model)}).open()
        dtype = torch.float16 if gpu else torch.float32
        pipeline: Any = StableDiffusionXLPipeline.from_pretrained(model, torch_dtype=dtype, variant="fp16")
        pipeline.to("cuda" if gpu else "cpu").set_progress_bar_config(disable=True)

        def engine(texts: list[str]) -> list[bytes]:
            requests = [Request(f"{text} {n}", text, text, n) for text in texts for n in range(given.images)]
            drawn = (result for result in painter.draw(requests) if isinstance(result, Drawn))
            return encoded(Image.fromarray(result.pixels) for result in drawn)

        def script(texts: list[str]) -> list[bytes]:
            sizes: Any = {"height": side, "width": side, "num_images_per_prompt": given.images}
            sizes |= {"num_inference_steps": given.steps, "guidance_scale": 5.0}
            return encoded(image.resize((half, half)) for text in texts for image in pipeline(text, **sizes).images)

        for draw in (engine, script):
            draw(prompts[:1])  # kernels are chosen and memory is mapped once
        where = torch.cuda.get_device_name() if gpu else "CPU time of one thread, a fifth of SDXL's width"
        results = compare(
            f"{count} images of {side} × {side}, {given.steps} steps, {where}",
            lambda: engine(prompts),
            {"the published script": lambda: script(prompts)},
            rounds=given.rounds,
            clock=time.perf_counter if gpu else time.process_time,  # images end on the CPU: the GPU is waited for
            more=lambda seconds: f"{count / seconds:.3g} images/s",
            warm=False,
        )
    assert len(results[OURS]) == count


if __name__ == "__main__":
    main()
