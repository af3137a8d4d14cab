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

from tests.generators.finished_stage import write_index
from tests.made_datasets import MadeDataset
from tests.training.examples.conftest import tokenize
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage import layout
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import train_clip
from twinset.training.examples import batches as batches_module
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.neighbours import image_numbers, open_image_neighbours
from twinset.training.examples.ordering import order
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.names import ABSENT

ROLES = ("image", "text", "negative_text")


def open_batches(made: MadeDataset, crops: Transforms, batch: int = 4, **settings: object) -> Batches:
    examples = open_examples([f"{made.root}:eq-ag"], "pairs")
    return Batches(examples, crops, tokenize, batch, seed=7, roles=ROLES, **settings)  # type: ignore[arg-type]


def equal(one: Batch, other: Batch) -> bool:
    tensors = ({**batch.images, **batch.texts} for batch in (one, other))
    mine, its = ({role: tensor.numpy().tobytes() for role, tensor in some.items()} for some in tensors)
    return mine == its and (one.step, one.epoch, one.keys, one.left_out) == (
        other.step, other.epoch, other.keys, other.left_out
    )  # fmt: skip


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


def test_ranks_share_a_batch(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    whole = open_batches(made_pairs, small_crops).at(2)
    halves = [open_batches(made_pairs, small_crops, rank=rank, world=2).at(2) for rank in (0, 1)]
    assert whole.keys == halves[0].keys + halves[1].keys
    assert np.array_equal(whole.images["image"], np.concatenate([half.images["image"] for half in halves]))
    with pytest.raises(WrongUse, match="multiple of 3"):
        open_batches(made_pairs, small_crops, world=3)


def test_crops_differ_between_epochs_and_not_between_runs(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    first, again = (open_batches(made_pairs, small_crops, 16) for _ in range(2))
    assert equal(first.at(1), again.at(1))
    rows = [dict(zip(first.at(step).keys, first.at(step).images["image"], strict=True)) for step in (0, 1)]
    # Small pictures have few different crops.
    assert sum(not np.array_equal(rows[0][key], rows[1][key]) for key in rows[0]) >= 12


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_make_the_batches_of_this_process(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_module, "CHUNK", 3)
    alone, helped = (open_batches(made_pairs, small_crops, workers=count) for count in (0, workers))
    before = torch.random.get_rng_state()
    found = list(helped.stream(1, 11))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert [batch.step for batch in found] == list(range(1, 11))
    assert all(equal(batch, alone.at(batch.step)) for batch in found)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_corrupt_tar_in_mid_epoch_is_named_and_its_examples_replaced(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = open_batches(made_pairs, small_crops)
    batches = open_batches(made_pairs, small_crops, workers=workers, max_broken=0.5)
    tar = made_pairs.root / layout.tar("eq-ag", "test", 3)  # 2 of 8 pairs
    damaged = tar.read_bytes()
    read = []
    for batch in batches.stream(0, 4):
        if batch.step == 0:
            tar.write_bytes(damaged[:700] + bytes(len(damaged) - 700))
            if workers:  # what they made ahead is not of interest
                break
        read.append(batch)
    read += batches.stream(len(read), 8)
    gone = {f"{key}-{side}" for key in made_pairs.kept["eq-ag"][-2:] for side in (0, 1)}
    assert all(len(set(batch.keys)) == 4 for batch in read)
    assert not gone & {key for batch in read[4:] for key in batch.keys}
    left_out = {where for batch in read[4:] for where, _ in batch.left_out}
    assert left_out == {f"{tar}: {key[:-2]}" for key in gone}
    assert all("other bytes" in why for batch in read for _, why in batch.left_out)
    assert len([one for one in caplog.messages if "left out of training" in one]) == 4
    # Slots of examples that can be read are as they were.
    for batch in read:
        before = whole_keys(whole, batch.step)
        assert all(now == then for now, then in zip(batch.keys, before, strict=True) if then not in gone)


def whole_keys(batches: Batches, step: int) -> list[str]:
    numbers = order(16, 7, step // 4)[step % 4 * 4 :][:4]
    return [batches.examples[int(number)].key for number in numbers]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_that_is_rebuilt_meanwhile_is_refused_at_the_next_epoch(
    made_pairs: MadeDataset, small_crops: Transforms, workers: int
) -> None:
    batches, seen = open_batches(made_pairs, small_crops, workers=workers, max_broken=1.0), []
    path = made_pairs.root / layout.receipt("eq-ag", 0)
    with pytest.raises(BuildFailed, match=r"eq-ag: rebuilt since this training began .* new --out"):
        for batch in batches.stream(0, 12):
            seen.append(batch.step)
            receipt = json.loads(path.read_bytes())
            path.write_text(json.dumps({**receipt, "tar_sha256": "0" * 64}))
    assert seen == [0, 1, 2, 3]


def test_roles_that_a_dataset_lacks_are_refused(
    made_text_pairs: MadeDataset, made_triplets: MadeDataset, small_crops: Transforms
) -> None:
    text_pairs = open_examples([f"{made_text_pairs.root}:text"], "pairs")
    assert Batches(text_pairs, small_crops, tokenize, 2, 0, ROLES).at(0).texts["negative_text"].shape == (2, 12)
    with pytest.raises(WrongUse, match="has no negative_image"):
        Batches(text_pairs, small_crops, tokenize, 2, 0, ("image", "negative_image", "text"))
    triplets = open_examples([f"{made_triplets.root}:{name}" for name in ("triplets", "two-images")], "triplets")
    batch = Batches(triplets, small_crops, tokenize, 3, 0, ("reference", "target", "condition")).at(1)
    assert {role: len(images) for role, images in batch.images.items()} == {"reference": 3, "target": 3}
    with pytest.raises(WrongUse, match=r"two-images: two-images-\w+ has no distractor"):
        Batches(triplets, small_crops, tokenize, 3, 0, ("reference", "target", "distractor"))
    with pytest.raises(WrongUse, match="do not fill a batch"):
        Batches(triplets, small_crops, tokenize, 300, 0, ("reference", "condition"))


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
        assert all(equal(batch, here.at(batch.step)) for batch in away.stream(0, 8))
        files.rm("/bucket/out/eq-ag/test/00003.tar")
        broken = {where for batch in away.stream(8, 12) for where, _ in batch.left_out}
        assert broken == {f"memory://bucket/out/eq-ag/test/00003.tar: {key}" for key in made_pairs.kept["eq-ag"][-2:]}
    finally:
        files.rm("/bucket", recursive=True)


NEAR = 4


def table(folder: Path, hashes: list[int]) -> str:
    """A table in which the neighbours of an image are the next ones; returns its place."""
    numbers = np.random.default_rng(0).permutation(len(hashes))
    rows = [
        {
            "key": str(number), "image_sha256": f"{sha256:016x}".ljust(64, "0"), "number": int(number),
            "neighbours": [int(numbers[(row + shift) % len(hashes)]) for shift in range(1, NEAR + 1)],
        }
        for row, (sha256, number) in enumerate(zip(hashes, numbers, strict=True))
    ]  # fmt: skip
    order = sorted(rows, key=lambda row: int(str(row["key"])))
    types = (pa.string(), pa.string(), pa.int32(), pa.list_(pa.int32()))
    schema = pa.schema(list(zip(rows[0], types, strict=True)))
    write_index(pa.Table.from_pylist(order, schema), folder, "near", len(rows))
    return f"{folder}:near"


@pytest.fixture
def examples(made_pairs: MadeDataset) -> ExampleSet:
    return open_examples([f"{made_pairs.root}:eq-ag", f"{made_pairs.root}:eq-youcook2"], "pairs")


def test_neighbours_are_looked_up_by_the_bytes_of_images(examples: ExampleSet, tmp_path: Path) -> None:
    images, numbers = image_numbers(examples)
    for number in range(len(examples)):
        assert examples[number].images["image"].sha256 == f"{images[numbers[number]]:016x}"
    # Of twice as many images, every second is trained on: its neighbours are those at a distance of 2 and 4.
    hashes = [one for image in images.tolist() for one in (image, image ^ 1)]
    found = open_image_neighbours(table(tmp_path, hashes), examples, 3)
    n = len(images)
    for row in range(n):
        assert found.places[row].tolist() == [(row + 1) % n, (row + 2) % n, ABSENT, ABSENT]
    assert np.array_equal(found.image, numbers) and found.nearest == 3
    with pytest.raises(WrongUse, match=rf"near lacks 1 of the {n} images that are trained on; build it"):
        open_image_neighbours(table(tmp_path / "few", images[1:].tolist()), examples, 3)
    with pytest.raises(WrongUse, match="holds no stage"):
        open_image_neighbours(str(tmp_path / "none" / "near"), examples, 3)


def test_half_a_batch_are_neighbours_of_the_other_half(examples: ExampleSet, tmp_path: Path) -> None:
    found = open_image_neighbours(table(tmp_path, image_numbers(examples)[0].tolist()), examples, 3)
    seeds = np.random.default_rng(1).permutation(len(examples))
    batches = found.mixed(seeds, 4, np.random.default_rng(0)).reshape(-1, 2, 4)
    assert np.array_equal(batches[:, 0].ravel(), seeds[: len(seeds) // 4 * 4])
    near = 0
    for some, others in batches:
        images = found.image[np.concatenate([some, others])]
        assert len({*images[4:]}) == 4 and not {*images[4:]} & {*images[:4]}
        near += sum(image in found.places[own, :3] for own, image in zip(images[:4], images[4:], strict=True))
    assert near >= 0.9 * len(seeds) // 4 * 4
    assert np.array_equal(batches.ravel(), found.mixed(seeds, 4, np.random.default_rng(0)))


def test_a_run_with_neighbours_is_bound_to_their_table_and_resumes(
    made_pairs: MadeDataset, tmp_path: Path, tiny_clip: dict[str, Any]
) -> None:
    images, _ = image_numbers(open_examples([f"{made_pairs.root}:eq-ag"], "pairs", twins="first"))
    given: dict[str, Any] = tiny_clip | {
        "data": (f"{made_pairs.root}:eq-ag",), "twins": "first", "batch": 4, "epochs": 2, "warmup": 0, "threads": 1,
        "objective": "negclip", "neighbours": table(tmp_path / "table", images.tolist()), "lr": 1e-3,
    }  # fmt: skip
    settings = ClipSettings.model_validate(given)
    done = train_clip(settings, tmp_path / "run", report=False)
    assert len(done.history) == 2 * (8 // 2)
    again = ClipSettings.model_validate(given | {"workers": 2})
    assert train_clip(again, tmp_path / "again", report=False).digest == done.digest
    plain = train_clip(ClipSettings.model_validate(given | {"neighbours": None}), tmp_path / "plain", report=False)
    assert plain.digest != done.digest and len(plain.history) == 2 * (8 // 4)
    other = table(tmp_path / "other", [*images.tolist(), 1])
    with pytest.raises(WrongUse, match=r"data\.neighbours is "):
        train_clip(ClipSettings.model_validate(given | {"neighbours": other}), tmp_path / "run", report=False)
    with pytest.raises(WrongUse, match="half of a batch of 8 are to be neighbours, each image once, and there are 5"):
        train_clip(ClipSettings.model_validate(given | {"batch": 8}), tmp_path / "large", report=False)


@pytest.fixture
def tiny_clip(tmp_path: Path) -> dict[str, Any]:
    from tests.evaluation.scorers.tiny_models import open_clip_config

    return {"model": str(open_clip_config(tmp_path / "model")), "weights": None}
