"""Feeding a ViT-B/32: twinset's training examples against open_clip's own training loader.

    python -m tests.benchmarks.bench_training_loader [--pairs N] [--rounds N]

Pairs of painted JPEGs, 640 × 480 at quality 90, are built into a dataset and exported for open_clip. Each way reads all
rows, decodes them, crops them at random to 224 × 224 as open_clip's default, and tokenizes the captions, by the clock
of one thread's CPU time:

* open_clip: `open_clip_train.data.get_wds_dataset(is_train=True)` on the exported tars, with
  `tar_file_expander(eof_value=None)`: with webdataset 0.2.96 and later it fails on any tar (``KeyError: 'fname'``);
* tars: `training.examples` on the same tars, with writing their index; built: on the dataset's own tars, which hold the
  same pictures.
"""

import functools
import glob
import json
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from PIL import Image

import twinset
from tests.benchmarks.measured import OURS, compare
from tests.options import options
from twinset.contracts.recipe import parse_recipe
from twinset.shards.export.formats import export
from twinset.shards.storage.store import Store
from twinset.training.examples.batches import Batches
from twinset.training.examples.example_set import open_examples
from twinset.training.examples.transforms import Transforms

MODEL, BATCH, SHARD = "ViT-B-32", 64, 128  # pairs of a shard
THEIRS = "open_clip's training loader"


def paint(folder: Path, number: int) -> str:
    """A picture with edges, gradients and grain, some 100 kB as JPEG."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).resize((640, 480), Image.Resampling.BICUBIC)
    grain = rng.normal(0, 6, (480, 640, 1))
    blocks = rng.integers(0, 2, (24, 32, 1)).repeat(20, 0).repeat(20, 1) * 40
    pixels = np.clip(np.asarray(coarse) + grain + blocks, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=90)
    return f"{number}.jpg"


def build(folder: Path, pairs: int) -> tuple[Path, Path]:
    media = folder / "media"
    media.mkdir()
    names = [paint(media, number) for number in range(min(2 * pairs, 200))]
    records = []
    for n in range(pairs):
        images = {f"image{side}": names[(2 * n + side) % len(names)] for side in (0, 1)}
        words = "with a few words about what stands beside what in it"
        captions = {f"caption{side}": f"a photo of picture {2 * n + side} {words}" for side in (0, 1)}
        records.append({"id": str(n), **images, **captions})
    (folder / "pairs.json").write_text(json.dumps(records))
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(media), "licence": "MIT"}
    recipe = {"name": "bench", "subsets": {"bench": {"source": source, "shard_size": SHARD}}}
    twinset.build(parse_recipe(recipe), str(folder / "out"), workers=1)
    export(Store(str(folder / "out")), ["bench"], "openclip", folder / "clip")
    return folder / "out", folder / "clip"


def open_clips_loader(exported: Path, tokenizer: Any) -> int:
    from open_clip_train import data  # type: ignore[import-untyped]
    from webdataset.tariterators import tar_file_expander

    data.tar_file_expander = functools.partial(tar_file_expander, eof_value=None)
    options = Namespace(
        train_data="::".join(sorted(glob.glob(f"{exported}/*.tar"))), train_num_samples=None, dataset_resampled=False,
        train_data_upsampling_factors=None, seed=0, batch_size=BATCH, workers=0, world_size=1,
    )  # fmt: skip
    crops = open_clip.transform.image_transform(224, is_train=True)
    loader = data.get_wds_dataset(options, crops, is_train=True, tokenizer=tokenizer)
    return sum(len(texts) for _, texts in loader.dataloader)


def ours(place: str, tokenizer: Any) -> int:
    with tempfile.TemporaryDirectory() as index:
        examples = open_examples([place], "pairs", index=Path(index))
    batches = Batches(examples, Transforms({"size": 224}), tokenizer, BATCH, 0, ("image", "text"), 0)
    return sum(len(batch.keys) for batch in batches.stream(0, batches.steps_per_epoch))


def main() -> None:
    given = options(__doc__, pairs=1024, rounds=3)
    torch.set_num_threads(1)
    tokenizer = open_clip.get_tokenizer(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        built, exported = build(Path(folder), given.pairs)
        for name, place in (("built", str(built)), ("tars", f"tars:{exported}")):
            results = compare(
                f"JPEGs to batches, {name}, CPU time",
                functools.partial(ours, place, tokenizer),
                {THEIRS: functools.partial(open_clips_loader, exported, tokenizer)},
                rounds=given.rounds,
                more=lambda seconds: f"{2 * given.pairs / seconds:.0f} images a CPU second",
            )
            assert results[OURS] == results[THEIRS], "only whole batches compare"


if __name__ == "__main__":
    main()
