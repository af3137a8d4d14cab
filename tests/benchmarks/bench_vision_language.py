"""Groups of two images and two captions: an image encoded once for all its texts against a pass a cell.

    python -m tests.benchmarks.bench_vision_language [qwen2_vl llava idefics3]

The clock is CPU time of one thread. The networks are random; an image has 256 tokens or more, as for published ones.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from tests.benchmarks.measured import OURS, compare
from tests.models.visual_questions.tiny_vision_language import KINDS, LARGE, pictures, save
from twinset.models.encoders.contract import Running
from twinset.models.visual_questions.vision_language import VisionLanguageModel

PIXELS = {"qwen2_vl": 504}  # its tokens are of four patches
QUESTION = 'Does this figure show "{}" ? Please answer yes or no .'
TEXTS = [QUESTION.format(caption) for caption in ("a red wall without windows", "a cat on the mat")]
CELLS = "a pass a cell"


def a_pass_a_cell(model: Any, images: list[Image.Image]) -> list[Any]:
    with torch.inference_mode():
        return [model._whole(model._read([image], model.prompt(1, text))) for image in images for text in TEXTS]


def main() -> None:
    torch.set_num_threads(1)
    for kind in sys.argv[1:] or KINDS:
        size = (*LARGE[:2], PIXELS.get(kind, LARGE[2]))
        with tempfile.TemporaryDirectory() as folder:
            model = VisionLanguageModel(str(save(Path(folder) / kind, kind, size)), Running(threads=1))
            images = pictures(2, side=size[2])
            results = compare(
                f"yes or no about a pair by {kind}, CPU time",
                lambda model=model, images=images: [  # type: ignore[misc]
                    tokens for image in images for tokens in model.next_tokens([image], TEXTS)
                ],
                {CELLS: lambda model=model, images=images: a_pass_a_cell(model, images)},  # type: ignore[misc]
                rounds=4,
            )
        apart = max(float((a - b).abs().max()) for a, b in zip(results[OURS], results[CELLS], strict=True))
        assert apart < 1e-4, f"log-probabilities are {apart} apart"


if __name__ == "__main__":
    main()
