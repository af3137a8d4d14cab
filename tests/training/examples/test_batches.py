"""Batches are a function of the step; what cannot be read is replaced and named.

Similar images of the examples of a run: read from a table, and mixed into batches.
"""

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.generators.finished_stage import write_index
from tests.made_datasets import MadeDataset
from tests.training.examples.conftest import tokenize
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage import layout
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import train_clip
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.neighbours import image_numbers, open_image_neighbours
from twinset.training.examples.ordering import order
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.names import ABSENT

ROLES = ("image", "text", "negative_text")


def open_batches(made: MadeDataset, crops: Transforms, batch: int = 4, **settings: Any) -> Batches:
    examples = open_examples([f"{made.root}:eq-ag"], "pairs")
    return Batches(examples, crops, tokenize, batch, seed=7, roles=ROLES, **settings)


def content(batch: Batch) -> tuple[Any, ...]:
    """All that a batch holds, to compare it."""
    tensors = {**batch.images, **batch.texts}
    values = {role: tensor.numpy().tobytes() for role, tensor in tensors.items()}
    return batch.step, batch.epoch, batch.keys, batch.groups, batch.left_out, values


def test_every_example_is_read_once_an_epoch_with_its_own_words(
    made_pairs: MadeDataset, small_crops: Transforms
) -> None:
    batches = open_batches(made_pairs, small_crops)
    assert batches.steps_per_epoch == 4
    read = [batches.at(step) for step in range(8)]
    assert [batch.epoch for batch in read] == [0] * 4 + [1] * 4
    first, second = ([key for batch in epoch for key in batch.keys] for epoch in (read[:4], read[4:]))
    assert first != second
    assert sorted(first) == sorted(second) == sorted(f"{key}-{n}" for key in made_pairs.kept["eq-ag"] for n in (0, 1))
    assert read[0].images["image"].shape == (4, 3, 32, 32)
    by_key = {batches.examples[number].key: batches.examples[number] for number in range(16)}
    for batch in read:
        for role in ("text", "negative_text"):
            assert np.array_equal(batch.texts[role], tokenize([by_key[key].texts[role] for key in batch.keys]))


def test_workers_and_ranks_make_the_batches_of_one_process(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    alone, helped = (open_batches(made_pairs, small_crops, workers=count) for count in (0, 2))
    before = torch.random.get_rng_state()
    assert [*map(content, helped.stream(1, 11))] == [content(alone.at(step)) for step in range(1, 11)]
    assert torch.equal(torch.random.get_rng_state(), before)
    whole, halves = alone.at(2), [open_batches(made_pairs, small_crops, rank=rank, world=2).at(2) for rank in (0, 1)]
    assert whole.keys == halves[0].keys + halves[1].keys
    assert np.array_equal(whole.images["image"], np.concatenate([half.images["image"] for half in halves]))
    pixels = [
        batch.images["image"][batch.keys.index(whole.keys[0])]
        for batch in (whole, *map(alone.at, range(4, 8)))
        if whole.keys[0] in batch.keys
    ]
    assert len(pixels) == 2 and not torch.equal(*pixels)  # another epoch, another crop


@pytest.mark.parametrize("workers", [0, 1])
def test_a_corrupt_tar_in_mid_epoch_is_named_and_its_examples_replaced(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    batches = open_batches(made_pairs, small_crops, workers=workers, max_broken=0.5)
    whole = [batches.at(step) for step in range(8)]
    tar = made_pairs.root / layout.tar("eq-ag", "test", 3)  # 2 of 8 pairs
    damaged = tar.read_bytes()
    tar.write_bytes(damaged[:700] + bytes(len(damaged) - 700))
    read = [*batches.stream(1, 8)]
    gone = {f"{key}-{side}" for key in made_pairs.kept["eq-ag"][-2:] for side in (0, 1)}
    assert all(len(set(batch.keys)) == 4 and not gone & set(batch.keys) for batch in read)
    assert {where for batch in read for where, _ in batch.left_out} == {f"{tar}: {key}" for key in gone}
    assert all("other bytes" in why for batch in read for _, why in batch.left_out)
    assert len([message for message in caplog.messages if "left out of training" in message]) == 4
    for batch in read:  # slots of examples that can be read are as they were
        before = whole[batch.step].keys
        assert all(key == earlier for key, earlier in zip(batch.keys, before, strict=True) if earlier not in gone)
    batches.workers = 0
    assert content(batches.at(7)) == content(read[-1])
    with pytest.raises(BuildFailed, match=r"1 of 16 examples cannot be read, more than 1\.0% of them; the first is "):
        [*Batches(batches.examples, small_crops, tokenize, 4, 7, ROLES).stream(0, 4)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_that_is_rebuilt_meanwhile_is_refused_at_the_next_epoch(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int
) -> None:
    batches, seen = open_batches(made_pairs, small_crops, workers=workers, max_broken=1.0), []
    path = made_pairs.root / layout.receipt("eq-ag", 0)
    with pytest.raises(BuildFailed, match=r"eq-ag: rebuilt since this training began.* new --out"):
        for batch in batches.stream(0, 12):
            seen.append(batch.step)
            receipt = json.loads(path.read_bytes())
            path.write_text(json.dumps({**receipt, "tar_sha256": "0" * 64}))
    assert seen == [0, 1, 2, 3]


def test_batches_that_cannot_be_filled_are_refused(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    with pytest.raises(WrongUse, match="multiple of 3"):
        open_batches(made_pairs, small_crops, world=3)
    with pytest.raises(WrongUse, match="16 examples do not fill a batch of 17"):
        open_batches(made_pairs, small_crops, 17)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_object_store_gives_the_batches_of_a_folder(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int
) -> None:
    here = open_batches(made_pairs, small_crops)
    files = fsspec.filesystem("memory")
    files.put(str(made_pairs.root), "/bucket/out", recursive=True)
    try:
        examples = open_examples(["memory://bucket/out:eq-ag"], "pairs")
        assert examples.digest() == here.examples.digest()
        away = Batches(examples, small_crops, tokenize, 4, 7, ROLES, workers, max_broken=0.5)
        assert [*map(content, away.stream(0, 8))] == [content(here.at(step)) for step in range(8)]
        files.rm("/bucket/out/eq-ag/test/00003.tar")
        reasons = {why for batch in away.stream(8, 12) for _, why in batch.left_out}
        assert reasons == {"image: eq-ag/test/00003.tar is absent"}
    finally:
        files.rm("/bucket", recursive=True)


NEAR = 4


def table(folder: Path, hashes: list[str]) -> str:
    """A table in which the neighbours of an image are the next ones; returns its place."""
    numbers = np.random.default_rng(0).permutation(len(hashes))
    rows = [
        {
            "key": str(number), "image_sha256": sha256.ljust(64, "0"), "number": int(number),
            "neighbours": [int(numbers[(row + shift) % len(hashes)]) for shift in range(1, NEAR + 1)],
        }
        for row, (sha256, number) in enumerate(zip(hashes, numbers, strict=True))
    ]  # fmt: skip
    types = (pa.string(), pa.string(), pa.int32(), pa.list_(pa.int32()))
    schema = pa.schema(list(zip(rows[0], types, strict=True)))
    in_order = sorted(rows, key=lambda row: int(str(row["key"])))
    write_index(pa.Table.from_pylist(in_order, schema), folder, "near", len(rows))
    return f"{folder}:near"


@pytest.fixture
def examples(made_pairs: MadeDataset) -> ExampleSet:
    return open_examples([f"{made_pairs.root}:eq-ag", f"{made_pairs.root}:eq-youcook2"], "pairs")


def test_neighbours_are_looked_up_by_the_bytes_of_images(examples: ExampleSet, tmp_path: Path) -> None:
    images, numbers = image_numbers(examples)
    assert images == sorted(set(images))
    assert [examples[n].images["image"].sha256 for n in range(len(examples))] == [images[n] for n in numbers]
    # Of twice as many images, every second is trained on: its neighbours are those at a distance of 2 and 4.
    hashes = [sha256 for image in images for sha256 in (image, image[::-1])]
    near = open_image_neighbours(table(tmp_path, hashes), examples, 3)
    n = len(images)
    for row in range(n):
        assert near.places[row].tolist() == [(row + 1) % n, (row + 2) % n, ABSENT, ABSENT]
    assert np.array_equal(near.image, numbers) and near.nearest == 3
    with pytest.raises(WrongUse, match=rf"near lacks 1 of the {n} images that are trained on; build it"):
        open_image_neighbours(table(tmp_path / "few", images[1:]), examples, 3)
    with pytest.raises(WrongUse, match="holds no stage"):
        open_image_neighbours(str(tmp_path / "none" / "near"), examples, 3)


def test_half_a_batch_are_neighbours_of_the_other_half(examples: ExampleSet, tmp_path: Path) -> None:
    near = open_image_neighbours(table(tmp_path, image_numbers(examples)[0]), examples, 3)
    seeds = order(len(examples), 1, 0)
    batches = near.mixed(seeds, 4, np.random.default_rng(0)).reshape(-1, 2, 4)
    assert np.array_equal(batches[:, 0].ravel(), seeds[: len(seeds) // 4 * 4])
    found = 0
    for drawn, others in batches:
        images, added = near.image[drawn].tolist(), near.image[others].tolist()
        assert len({*added}) == 4 and not {*added} & {*images}
        found += sum(image in near.places[own, :3] for own, image in zip(images, added, strict=True))
    assert found >= 0.9 * len(seeds) // 4 * 4
    assert np.array_equal(batches.ravel(), near.mixed(seeds, 4, np.random.default_rng(0)))


def test_a_run_with_neighbours_is_bound_to_their_table_and_to_no_number_of_workers(
    made_pairs: MadeDataset, tmp_path: Path
) -> None:
    images, _ = image_numbers(open_examples([f"{made_pairs.root}:eq-ag"], "pairs", twins="first"))
    given: dict[str, Any] = {
        "model": str(open_clip_config(tmp_path / "model")), "weights": None, "data": (f"{made_pairs.root}:eq-ag",),
        "batch": 4, "epochs": 2, "warmup": 0, "threads": 1, "objective": "negclip", "lr": 1e-3,
        "neighbours": table(tmp_path / "table", images),
    }  # fmt: skip

    def trained(folder: str, **changed: Any) -> dict[str, Any]:
        return train_clip(ClipSettings.model_validate(given | changed), tmp_path / folder, report=False)

    done = trained("run")
    assert done["steps"] == 2 * (8 // 2)
    assert trained("again", workers=2)["sha256"] == done["sha256"]
    plain = trained("plain", neighbours=None)
    assert plain["sha256"] != done["sha256"] and plain["steps"] == 2 * (8 // 4)
    with pytest.raises(WrongUse, match=r"neighbours"):
        trained("run", neighbours=table(tmp_path / "other", [*images, "1" * 16]))
    with pytest.raises(WrongUse, match="half of a batch of 8 are to be neighbours, each image once, and there are 5"):
        trained("large", batch=8)
