"""How much faster groups of two images and two captions are scored when an image is encoded once for all its texts.

    python tests/benchmarks/bench_vision_language.py [qwen2_vl llava idefics3]

The clock is CPU time of one thread. Prints, for each architecture, seconds of one pass a cell, seconds as twinset
scores, their ratio, and the greatest difference of a log-probability. The networks are random; an image has 256 tokens
or more, as for published ones.
"""

import sys
import tempfile
import time
from pathlib import Path

import torch
from measured import row

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.models.visual_questions.tiny_vision_language import KINDS, LARGE, pictures, save
from twinset.models.encoders.contract import Running
from twinset.models.visual_questions.vision_language import VisionLanguageModel

GROUPS = 4
PIXELS = {"qwen2_vl": 504}  # its tokens are of four patches
QUESTION = 'Does this figure show "{}" ? Please answer yes or no .'
CAPTIONS = ("a red wall without windows", "a cat on the mat")


def measured(kind: str, groups: int = GROUPS) -> tuple[float, float, float]:
    """Seconds of a group by one pass a cell, by twinset, and the greatest difference."""
    size = (*LARGE[:2], PIXELS.get(kind, LARGE[2]))
    with tempfile.TemporaryDirectory() as folder:
        model = VisionLanguageModel(str(save(Path(folder) / kind, kind, size)), Running(threads=1))
        shown, texts = pictures(2 * groups, side=size[2]), [QUESTION.format(one) for one in CAPTIONS]
        model.next_tokens(shown[:1], texts)  # once before: it also sees that sharing changes nothing
        alone, together, worst = [], [], 0.0
        for image in shown:  # by turns, so that what else the machine does is in both; the least of each counts
            start = time.process_time()
            shared = model.next_tokens([image], texts)
            between = time.process_time()
            with torch.inference_mode():
                cells = [model._whole(model._read([image], model.prompt(1, text))) for text in texts]
            alone.append(time.process_time() - between)
            together.append(between - start)
            worst = max(worst, *(float((one - other).abs().max()) for one, other in zip(shared, cells, strict=True)))
        return 2 * min(alone), 2 * min(together), worst


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or KINDS:
        alone, together, difference = measured(name)
        ratio = alone / together
        row(f"yes or no about a pair by {name}, CPU time", "a pass a cell", [ratio])
        print(f"{name}: {alone:.2f} s a pass a cell, {together:.2f} s shared: {ratio:.2f} x, apart {difference:.1e}")
