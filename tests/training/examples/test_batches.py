"""Batches are a function of the step; what cannot be read is replaced and named.

Where a worker process is killed, the training ends with a message.
"""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import fsspec
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.made_datasets import MadeDataset
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage import layout
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import open_examples
from twinset.training.examples.transforms import Transforms
from twinset.training.examples.workers import made_ahead, named_workers


def tokenize(texts: Sequence[str]) -> NDArray[np.int64]:
    """The first 12 bytes of each text, (n, 12)."""
    return np.array([list(text.encode()[:12].ljust(12, b"\0")) for text in texts], np.int64)


ROLES = ("image", "text", "negative_text")
CROPS = Transforms({"size": 32})


def open_batches(made: MadeDataset, batch: int = 4, **settings: Any) -> Batches:
    examples = open_examples([f"{made.root}:eq-ag"], "pairs")
    return Batches(examples, CROPS, tokenize, batch, seed=7, roles=ROLES, **settings)


@pytest.fixture
def many_broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("twinset.training.examples.batches.MAX_BROKEN", 0.5)
    return monkeypatch


def content(batch: Batch) -> tuple[Any, ...]:
    tensors = {**batch.images, **batch.texts}
    values = {role: tensor.numpy().tobytes() for role, tensor in tensors.items()}
    return batch.step, batch.epoch, batch.keys, batch.groups, batch.left_out, values


def test_every_example_is_read_once_an_epoch_with_its_own_words(made_pairs: MadeDataset) -> None:
    batches = open_batches(made_pairs)
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


def test_workers_and_ranks_make_the_batches_of_one_process(made_pairs: MadeDataset) -> None:
    alone, helped = (open_batches(made_pairs, workers=count) for count in (0, 2))
    before = torch.random.get_rng_state()
    assert [*map(content, helped.stream(1, 11))] == [content(alone.at(step)) for step in range(1, 11)]
    assert torch.equal(torch.random.get_rng_state(), before)
    whole, halves = alone.at(2), [open_batches(made_pairs, rank=rank, world=2).at(2) for rank in (0, 1)]
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
    made_pairs: MadeDataset, workers: int, many_broken: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    batches = open_batches(made_pairs, workers=workers)
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
    many_broken.undo()
    with pytest.raises(BuildFailed, match=r"1 of 16 examples cannot be read, more than 1\.0% of them; the first is "):
        [*Batches(batches.examples, CROPS, tokenize, 4, 7, ROLES).stream(0, 4)]


def test_what_other_ranks_leave_out_is_counted(made_pairs: MadeDataset, many_broken: pytest.MonkeyPatch) -> None:
    gone = {number: ("there", "cut short") for number in range(8)}
    many_broken.setattr("twinset.training.examples.batches.gathered", lambda broken: [broken, gone])
    half = open_batches(made_pairs, rank=0, world=2)
    assert half.at(0).left_out == (*gone.values(),) and half.broken == gone
    gone[8] = ("there", "cut short")
    with pytest.raises(BuildFailed, match="9 of 16 examples cannot be read"):
        half.at(1)


@pytest.mark.parametrize(("workers", "last"), [(0, 12), (1, 12), (0, 3)])
def test_a_dataset_that_is_rebuilt_meanwhile_is_refused(made_pairs: MadeDataset, workers: int, last: int) -> None:
    batches, seen = open_batches(made_pairs, workers=workers), []
    path = made_pairs.root / layout.receipt("eq-ag", 0)
    with pytest.raises(BuildFailed, match=r"eq-ag: rebuilt since this training began.* new --out"):
        for batch in batches.stream(0, last):
            seen.append(batch.step)
            receipt = json.loads(path.read_bytes())
            path.write_text(json.dumps({**receipt, "tar_sha256": "0" * 64}))
    assert seen == [*range(min(4, last))]


def test_batches_that_cannot_be_filled_are_refused(made_pairs: MadeDataset) -> None:
    with pytest.raises(WrongUse, match="multiple of 3"):
        open_batches(made_pairs, world=3)
    with pytest.raises(WrongUse, match="16 examples do not fill a batch of 17"):
        open_batches(made_pairs, 17)


@pytest.mark.usefixtures("many_broken")
def test_an_object_store_gives_the_batches_of_a_folder(made_pairs: MadeDataset) -> None:
    here = open_batches(made_pairs)
    files = fsspec.filesystem("memory")
    files.put(str(made_pairs.root), "/bucket/out", recursive=True)
    try:
        examples = open_examples(["memory://bucket/out:eq-ag"], "pairs")
        assert examples.digest() == here.examples.digest()
        away = Batches(examples, CROPS, tokenize, 4, 7, ROLES, workers=1)
        assert [*map(content, away.stream(0, 8))] == [content(here.at(step)) for step in range(8)]
        files.rm("/bucket/out/eq-ag/test/00003.tar")
        reasons = {why for batch in away.stream(8, 12) for _, why in batch.left_out}
        assert reasons == {"image: eq-ag/test/00003.tar is absent"}
    finally:
        files.rm("/bucket", recursive=True)


MEGABYTES = 8  # of each result: more than a pipe holds


def blocks(number: int) -> tuple[int, int, bytes]:
    return number, os.getpid(), bytes(MEGABYTES << 20)


@pytest.mark.parametrize("seed", range(2))
def test_a_worker_that_is_killed_at_any_moment_ends_the_training_with_a_message(seed: int) -> None:
    made = made_ahead(blocks, iter(range(100_000)), workers=2, ahead=2)
    killed = random.Random(seed).choice([next(made)[1], next(made)[1]])
    # Another process kills it, so that it dies while this one asks, waits, or has received the half of a result.
    delay = random.Random(seed).random() / 5
    killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep({delay}); os.kill({killed}, 9)"])
    with (
        pytest.raises(BuildFailed, match=r"was killed or ended, .* fewer --workers .* run the same command again"),
        named_workers(),
    ):
        for number, _, _ in made:
            if number % 2:
                time.sleep(0.01)  # a step, in which the signal may arrive
    made.close()
    assert killer.wait() == 0
    wait_until(lambda: not multiprocessing.active_children())
