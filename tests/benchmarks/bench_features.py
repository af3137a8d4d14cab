"""Scoring a benchmark that shares frames as EQ-AG does: twinset against encoding every pair.

    python tests/benchmarks/bench_features.py [--videos N] [--examples N] [--model NAME] [--gpu]

EQ-AG has 195,872 examples of 9,848 videos with some 24 annotated frames each: 20 examples a video here, of frames drawn
from 24, each frame with one caption of its relations. The model is a ViT-S/32 of open_clip with random weights. Each
way decodes, encodes and scores the same examples:

* every pair: the four images and captions of an example's four pairs, as the usual script for Winoground does;
* every example: its two images and two captions;
* twinset: each distinct image and caption once, from an empty cache, then again from the full one.

The clock is CPU time of one thread, which holds on a busy machine, or with ``--gpu`` the wall's. ``--examples 0``
leaves memory out. Printed: seconds, ratios of one run, the largest
difference of a score, and the peak of resident memory after ``--examples`` examples and after ten times as many.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measured import peak_mib, row

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

from twinset.evaluation.examples import Matching, Picture  # noqa: E402
from twinset.evaluation.features.pictures import decode  # noqa: E402
from twinset.evaluation.features.score_table import write_scores  # noqa: E402
from twinset.evaluation.features.similarities import ByFeatures  # noqa: E402
from twinset.evaluation.features.store import FeatureStore  # noqa: E402
from twinset.evaluation.scorers.kinds import open_model  # noqa: E402
from twinset.models.encoders.contract import DualEncoder, Floats, Running  # noqa: E402

FRAMES, EXAMPLES, BATCH = 24, 20, 32  # a video; examples a video; images a pass
SIZES = {
    "embed_dim": 256,
    "vision_cfg": {"image_size": 224, "layers": 12, "width": 384, "patch_size": 32, "head_width": 64},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 256, "heads": 4, "layers": 6},
}
CONTACTS = ("holding", "touching", "carrying", "wiping", "drinking from", "sitting on", "leaning on", "not contacting")
PLACES = ("in front of", "behind", "above", "beneath", "on the side of", "in")
OBJECTS = ("dish", "towel", "table", "book", "bag", "door", "phone", "chair", "blanket", "laptop", "cup", "shelf")


class Videos:
    """Frames as JPEG files of 480 × 270 in a folder, drawn when they are first asked for."""

    apart = False

    name, title, citation, metrics = "eq-ag-like", "EQ-AG-like", "none", ()

    def __init__(self, folder: Path, videos: int, size: tuple[int, int] = (480, 270)) -> None:
        self.folder, self.videos, self.size = folder, videos, size
        folder.mkdir()

    def examples(self) -> Iterator[Matching]:
        for video in range(self.videos):
            drawn = np.random.default_rng(video)
            slots = [[drawn.choice(words) for words in (CONTACTS, OBJECTS, PLACES)] for _ in range(FRAMES)]
            captions = [f"The person is {did} the {what} which is {where} him/her." for did, what, where in slots]
            for n in range(EXAMPLES):
                i, j = sorted(drawn.choice(FRAMES, 2, replace=False))
                yield Matching(
                    key=f"{video}-{n}",
                    subset="eq-ag",
                    group=str(video),
                    images=(self._frame(video, i), self._frame(video, j)),
                    captions=(captions[i], captions[j]),
                )

    def _frame(self, video: int, number: int) -> Picture:
        path = self.folder / f"{video}-{number}.jpg"
        if not path.is_file():
            drawn = np.random.default_rng((video, number))
            Image.fromarray(drawn.integers(0, 256, (9, 16, 3), np.uint8)).resize(self.size).save(path)
        return Picture(str(path), path.read_bytes)

    def digest(self) -> str:
        return "none"


class Colours(DualEncoder):
    """No network: memory is that of the machinery."""

    name = "colours"

    def digest(self) -> str:
        return "colours"

    def prepare(self, image: Image.Image) -> Floats:
        return np.asarray(image.resize((16, 16)), np.float32).transpose(2, 0, 1)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        return np.stack([one.reshape(-1)[:512] for one in prepared])

    def text_features(self, texts: Sequence[str]) -> Floats:
        return np.stack([np.resize(np.frombuffer(text.encode(), np.uint8), 512).astype(np.float32) for text in texts])


def every_pair(model: DualEncoder, examples: Sequence[Matching]) -> Floats:
    """Scores (examples, 2, 2), each pair's image and text encoded for it."""
    pairs = [(one.images[i], one.captions[j]) for one in examples for i in (0, 1) for j in (0, 1)]
    scores = []
    for start in range(0, len(pairs), BATCH):
        some = pairs[start : start + BATCH]
        images = model.encode_images([decode(picture.where, picture.read()) for picture, _ in some])
        scores.append((images * model.encode_texts([text for _, text in some])).sum(axis=1))
    return np.concatenate(scores).reshape(-1, 2, 2)


def every_example(model: DualEncoder, examples: Sequence[Matching]) -> Floats:
    """Scores (examples, 2, 2), each example's images and texts encoded once."""
    scores = []
    for start in range(0, len(examples), BATCH // 2):
        some = examples[start : start + BATCH // 2]
        images = model.encode_images([decode(p.where, p.read()) for one in some for p in one.images])
        texts = model.encode_texts([text for one in some for text in one.captions])
        scores.append(images.reshape(-1, 2, images.shape[1]) @ texts.reshape(-1, 2, texts.shape[1]).transpose(0, 2, 1))
    return np.concatenate(scores)


def shared(model: DualEncoder, benchmark: Videos, folder: Path) -> Floats:
    """Scores (examples, 2, 2) by twinset."""
    store = FeatureStore(folder / "cache", model.digest())
    similarities = ByFeatures(model, store, BATCH)
    write_scores(benchmark, similarities, folder / "scores.parquet", {})
    table = pq.read_table(folder / "scores.parquet")
    return np.stack([table[name].to_numpy() for name in ("s00", "s01", "s10", "s11")], axis=1).reshape(-1, 2, 2)


def timed(what: str, work: Any, gpu: bool) -> tuple[float, Floats]:
    clock = time.perf_counter if gpu else time.process_time  # features end on the CPU: the GPU is waited for
    began = clock()
    found = work()
    seconds = clock() - began
    print(f"{what:28} {seconds:8.1f} s", flush=True)
    return seconds, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=16)
    parser.add_argument("--examples", type=int, default=2000, help="of the measurement of memory")
    parser.add_argument("--model", help="of open_clip, with random weights, instead of a ViT-S/32")
    parser.add_argument("--gpu", action="store_true", help="on the first CUDA device")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for count in (asked.examples, 10 * asked.examples) if asked.examples else ():
            shared(Colours(), Videos(folder / f"small-{count}", count // EXAMPLES, (64, 36)), folder / str(count))
            peak = peak_mib()
            print(f"peak of memory after {count:,} examples: {peak:.0f} MB", flush=True)
        (folder / "vit.json").write_text(json.dumps(SIZES))
        running = Running("gpu" if asked.gpu else "cpu", batch=BATCH, threads=1)
        model = open_model(f"random:{asked.model or folder / 'vit.json'}", running)
        assert isinstance(model, DualEncoder)
        benchmark = Videos(folder / "frames", asked.videos)
        examples = list(benchmark.examples())
        frames = len({picture.where for one in examples for picture in one.images})
        texts = len({text for one in examples for text in one.captions})
        print(f"{len(examples)} examples, {frames} frames ({2 * len(examples) / frames:.2f} uses), {texts} captions")
        every_example(model, examples[:16])  # warm
        pairs, expected = timed("every pair", lambda: every_pair(model, examples), asked.gpu)
        each, _ = timed("every example", lambda: every_example(model, examples), asked.gpu)
        ours, scores = timed("twinset, empty cache", lambda: shared(model, benchmark, folder), asked.gpu)
        again, _ = timed("twinset, full cache", lambda: shared(model, benchmark, folder), asked.gpu)
        print(f"against every pair {pairs / ours:.2f} x, against every example {each / ours:.2f} x")
        where = torch.cuda.get_device_name() if asked.gpu else "one thread"
        row(
            f"{len(examples)} examples that share frames, {asked.model or 'ViT-S/32'}, {where}",
            "encoding every pair",
            [pairs / ours],
            f"against every example {each / ours:.2f} ×; from the cache {pairs / again:.0f} ×",
        )
        print(f"again from the cache {pairs / again:.0f} x; largest difference {np.abs(scores - expected).max():.1e}")


if __name__ == "__main__":
    main()
