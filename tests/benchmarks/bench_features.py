"""Scoring a benchmark that shares frames as EQ-AG does: twinset against encoding every pair.

    python -m tests.benchmarks.bench_features [--videos N] [--model NAME] [--gpu]

EQ-AG has 195,872 examples of 9,848 videos with some 24 annotated frames each: 20 examples a video here, of frames drawn
from 24, each frame with one caption of its relations. The model is a ViT-S/32 of open_clip with random weights. Each
way decodes, encodes and scores the same examples:

* every pair: the four images and captions of an example's four pairs, as the usual script for Winoground does;
* twinset: each distinct image and caption once, from an empty cache.

The clock is CPU time of one thread, or with ``--gpu`` the wall's.
"""

import itertools
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image

from tests.benchmarks.measured import OURS, compare
from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.options import options
from twinset.evaluation.examples import Matching, Picture
from twinset.evaluation.features.pictures import decode
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Floats, Running

FRAMES, EXAMPLES, BATCH = 24, 20, 32  # a video; examples a video; images a pass
PAIRS = "every image–text pair encoded by itself"
SIZES = {
    "embed_dim": 256,
    "vision_cfg": {"image_size": 224, "layers": 12, "width": 384, "patch_size": 32, "head_width": 64},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 256, "heads": 4, "layers": 6},
}
CONTACTS = ("holding", "touching", "carrying", "wiping", "drinking from", "sitting on", "leaning on", "not contacting")
PLACES = ("in front of", "behind", "above", "beneath", "on the side of", "in")
OBJECTS = ("dish", "towel", "table", "book", "bag", "door", "phone", "chair", "blanket", "laptop", "cup", "shelf")


def eq_ag_like(folder: Path, videos: int) -> list[Matching]:
    """Examples whose frames are JPEG files of 480 × 270 in a folder."""
    examples = []
    for video in range(videos):
        drawn, pictures, captions = np.random.default_rng(video), [], []
        for number in range(FRAMES):
            path = folder / f"{video}-{number}.jpg"
            Image.fromarray(drawn.integers(0, 256, (9, 16, 3), np.uint8)).resize((480, 270)).save(path)
            pictures.append(Picture(str(path), path.read_bytes))
            contact, name, place = (drawn.choice(words) for words in (CONTACTS, OBJECTS, PLACES))
            captions.append(f"The person is {contact} the {name} which is {place} him/her.")
        for n in range(EXAMPLES):
            i, j = sorted(drawn.choice(FRAMES, 2, replace=False))
            images, texts = (pictures[i], pictures[j]), (captions[i], captions[j])
            examples.append(
                Matching(key=f"{video}-{n}", subset="eq-ag", group=str(video), images=images, captions=texts)
            )
    return examples


def every_pair(model: DualEncoder, examples: Sequence[Matching]) -> Floats:
    """Scores (examples, 2, 2), each pair's image and text encoded for it."""
    pairs = [(example.images[i], example.captions[j]) for example in examples for i in (0, 1) for j in (0, 1)]
    scores = []
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        images = model.encode_images([decode(picture.where, picture.read()) for picture, _ in batch])
        scores.append((images * model.encode_texts([text for _, text in batch])).sum(axis=1))
    return np.concatenate(scores).reshape(-1, 2, 2)


def shared(model: DualEncoder, examples: Sequence[Matching], folder: Path) -> Floats:
    similarities = ByFeatures(model, FeatureStore(folder / "cache", model.digest()), BATCH)
    write_scores(SmallBenchmark(lambda: examples), similarities, folder / "scores.parquet", {})
    table = pq.read_table(folder / "scores.parquet")
    return np.stack([table[name].to_numpy() for name in ("s00", "s01", "s10", "s11")], axis=1).reshape(-1, 2, 2)


def main() -> None:
    given = options(__doc__, videos=16, model="", gpu=False)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        folder, caches = Path(made), itertools.count()
        (folder / "vit.json").write_text(json.dumps(SIZES))
        running = Running("gpu" if given.gpu else "cpu", batch=BATCH, threads=1)
        model = open_model(f"random:{given.model or folder / 'vit.json'}", running)
        assert isinstance(model, DualEncoder)
        examples = eq_ag_like(folder, given.videos)
        every_pair(model, examples[:8])  # kernels are chosen and memory is mapped once
        where = torch.cuda.get_device_name() if given.gpu else "one thread"
        results = compare(
            f"{len(examples)} examples that share frames, {given.model or 'ViT-S/32'}, {where}",
            lambda: shared(model, examples, folder / f"run-{next(caches)}"),
            {PAIRS: lambda: every_pair(model, examples)},
            rounds=1,
            clock=time.perf_counter if given.gpu else time.process_time,  # features end on the CPU
            more=lambda seconds: f"{len(examples) / seconds:.3g} examples/s",
            warm=False,
        )
    assert np.abs(results[OURS] - results[PAIRS]).max() < 0.01


if __name__ == "__main__":
    main()
