"""Feeding a ViT-B/32: twinset's training examples against open_clip's own training loader, and both against the step.

    python tests/benchmarks/bench_training_loader.py [--pairs N] [--runs N] [--images DIR]

Pairs of JPEGs are built into a dataset and exported for open_clip; pictures are painted, 640 × 480 at quality 90, or
photographs of a folder. Each way then reads all rows, decodes them, crops them at random to 224 × 224 as open_clip's
default, and tokenizes the captions:

* open_clip: `open_clip_train.data.get_wds_dataset(is_train=True)` on the exported tars, with
  `tar_file_expander(eof_value=None)`: with webdataset 0.2.96 and later it fails on any tar (``KeyError: 'fname'``);
* tars: `training.examples` on the same tars, with writing their index; built: on the dataset's own tars, which hold the
  same pictures.

Runs take turns, so that other work on the machine slows all alike, and medians are compared. Without workers the clock
is CPU time of one thread, which holds on a busy machine; with two workers it is the wall's. The step is forward,
InfoNCE, backward and AdamW of open_clip's ViT-B-32 in float32 with one thread. Printed: images a second, and ratios.
"""

import argparse
import functools
import glob
import json
import os
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measured import row

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import open_clip  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

from twinset.contracts.recipe import parse_recipe  # noqa: E402
from twinset.shards.export.formats import export  # noqa: E402
from twinset.shards.storage.store import Store  # noqa: E402
from twinset.stages.build import build_here  # noqa: E402
from twinset.training.examples.batches import Batches  # noqa: E402
from twinset.training.examples.example_set import open_examples  # noqa: E402
from twinset.training.examples.transforms import Transforms  # noqa: E402

MODEL, BATCH, STEP_BATCH = "ViT-B-32", 64, 32
SHARD = 125  # pairs


def paint(folder: Path, number: int) -> str:
    """A picture with edges, gradients and grain, some 100 kB as JPEG."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).resize((640, 480), Image.Resampling.BICUBIC)
    grain = rng.normal(0, 6, (480, 640, 1))
    blocks = rng.integers(0, 2, (24, 32, 1)).repeat(20, 0).repeat(20, 1) * 40
    pixels = np.clip(np.asarray(coarse) + grain + blocks, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=90)
    return f"{number}.jpg"


def build(folder: Path, pairs: int, photographs: Path | None) -> tuple[Path, Path]:
    """A dataset of pairs, and its export."""
    media = photographs or folder / "media"
    media.mkdir(exist_ok=True)
    names = sorted(path.name for path in photographs.glob("*.jpg")) if photographs else []
    names = names or [paint(media, number) for number in range(min(2 * pairs, 200))]
    records = [
        {
            "id": str(n),
            "image0": names[2 * n % len(names)],
            "image1": names[(2 * n + 1) % len(names)],
            "caption0": f"a photo of picture {2 * n} with a few words about what stands beside what in it",
            "caption1": f"a photo of picture {2 * n + 1} with a few words about what stands beside what in it",
        }
        for n in range(pairs)
    ]
    (folder / "pairs.json").write_text(json.dumps(records))
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(media), "licence": "MIT"}
    recipe = {"name": "bench", "subsets": {"bench": {"source": source, "shard_size": SHARD}}}
    build_here(parse_recipe(recipe), str(folder / "out"), 1)
    export(Store(str(folder / "out")), ["bench"], "openclip", folder / "clip")
    return folder / "out", folder / "clip"


def open_clips_loader(exported: Path, tokenizer: Any, workers: int) -> int:
    """Rows that open_clip's training loader gives in one epoch."""
    from open_clip_train import data  # type: ignore[import-untyped]
    from webdataset.tariterators import tar_file_expander

    data.tar_file_expander = functools.partial(tar_file_expander, eof_value=None)
    options = Namespace(
        train_data="::".join(sorted(glob.glob(f"{exported}/*.tar"))), train_num_samples=None, dataset_resampled=False,
        train_data_upsampling_factors=None, seed=0, batch_size=BATCH, workers=workers, world_size=1,
    )  # fmt: skip
    crops = open_clip.transform.image_transform(224, is_train=True)
    loader = data.get_wds_dataset(options, crops, is_train=True, tokenizer=tokenizer)
    return sum(len(texts) for _, texts in loader.dataloader)


def ours(place: str, tokenizer: Any, workers: int) -> int:
    """Rows that twinset gives in one epoch, with opening its index."""
    with tempfile.TemporaryDirectory() as index:
        examples = open_examples([place], "pairs", index=Path(index))
    batches = Batches(examples, Transforms({"size": 224}), tokenizer, BATCH, 0, ("image", "text"), workers)
    return sum(len(batch.keys) for batch in batches.stream(0, batches.steps_per_epoch))


def step_rate(steps: int) -> float:
    """Images a CPU second of a training step of ViT-B/32 with random weights."""
    torch.manual_seed(0)
    model = open_clip.create_model(MODEL)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    images, texts = torch.randn(STEP_BATCH, 3, 224, 224), torch.randint(49408, (STEP_BATCH, 77))
    taken = []
    for _ in range(steps + 1):
        began = time.process_time()
        found, said, scale = model(images, texts)
        logits, same = scale * found @ said.T, torch.arange(STEP_BATCH)
        loss = torch.nn.functional.cross_entropy(logits, same) + torch.nn.functional.cross_entropy(logits.T, same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken.append(time.process_time() - began)
    return STEP_BATCH / statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--images", type=Path, help="photographs, *.jpg; without it pictures are painted")
    parser.add_argument("--steps", type=int, default=3, help="of ViT-B/32, whose median counts; 0 leaves it out")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = open_clip.get_tokenizer(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        built, exported = build(Path(folder), given.pairs, given.images)
        ways: dict[str, Callable[[int], int]] = {
            "open_clip": lambda workers: open_clips_loader(exported, tokenizer, workers),
            "built": lambda workers: ours(str(built), tokenizer, workers),
            "tars": lambda workers: ours(f"tars:{exported}", tokenizer, workers),
        }
        rates: dict[tuple[str, int], list[float]] = {}
        for workers, clock in ((0, time.process_time), (2, time.perf_counter)):
            for _ in range(given.runs):
                for name, read in ways.items():
                    began = clock()
                    rates.setdefault((name, workers), []).append(read(workers) / (clock() - began))
    medians = {which: statistics.median(some) for which, some in rates.items()}
    for (name, workers), rate in medians.items():
        clock_name = "CPU second" if workers == 0 else "second"
        ratio = rate / medians["open_clip", workers]
        print(f"{name:10} {workers} workers  {rate:7.1f} images a {clock_name}, {ratio:.2f} of open_clip's loader")
    for name in ("built", "tars"):
        row(
            f"JPEGs to batches, {name}, CPU time",
            "open_clip's loader",
            [one / two for one, two in zip(rates[name, 0], rates["open_clip", 0], strict=True)],
        )
    if given.steps:
        step = step_rate(given.steps)
        fed = medians["built", 0] / step
        print(f"a step of {MODEL}: {step:.1f} images a CPU second; one core reads for {fed:.0f} cores that train")


if __name__ == "__main__":
    main()
