"""Batches are a function of the step; what cannot be read is replaced and named."""

import json

import fsspec
import numpy as np
import pytest
import torch

from tests.made_datasets import MadeDataset
from tests.training.examples.conftest import tokenize
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage import layout
from twinset.training.examples import batches as batches_module
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import open_examples
from twinset.training.examples.ordering import order
from twinset.training.examples.transforms import Transforms

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
def test_too_much_that_is_broken_ends_the_run(made_pairs: MadeDataset, small_crops: Transforms, workers: int) -> None:
    batches = open_batches(made_pairs, small_crops, workers=workers, max_broken=0.1)
    tar = made_pairs.root / layout.tar("eq-ag", "test", 0)
    tar.unlink()
    with pytest.raises(BuildFailed, match=r"of 16 examples cannot be read, more than 10.0%.*00000.tar.*absent.*resume"):
        list(batches.stream(0, 4))


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


def test_a_dataset_that_seems_broken_because_it_is_rebuilt_is_said_to_be_rebuilt(
    made_pairs: MadeDataset, small_crops: Transforms
) -> None:
    batches = open_batches(made_pairs, small_crops)
    tars = sorted((made_pairs.root / "eq-ag" / "test").glob("*.tar"))
    tars[0].write_bytes(tars[1].read_bytes())
    (made_pairs.root / layout.receipt("eq-ag", 0)).unlink()
    with pytest.raises(BuildFailed, match=r"rebuilt since this training began with the digest .* 3 of 4 shards"):
        list(batches.stream(0, 4))


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
