"""What a mixture holds: words, groups and pixels of stored samples, and what is refused.

Held-out groups are whole, the same in any order, and the share that was asked for.
Order and augmentation: permutations that depend on seed and epoch alone.
Copies of an example in a mixture: no batch holds two, and everything else stays as it is.
Transforms against open_clip's and torchvision's own on the same pictures.
Worker processes: they end with the one that asked, however that ends, and their end is told.
"""

import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import open_clip
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.functional import InterpolationMode, resized_crop

from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET, text_pair_shards
from tests.training.examples.conftest import tokenize
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.training.examples.batches import Batches
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.ordering import augmentation_bits, held_out, kept_apart, order, whole_batches
from twinset.training.examples.transforms import NUMBERS, RATIO, SCALE, Transforms, crop_box
from twinset.training.examples.workers import made_ahead


def all_of(examples: ExampleSet) -> list[tuple[str, str]]:
    return [(example.key, example.texts["text"]) for example in (examples[number] for number in range(len(examples)))]


def test_each_side_of_a_pair_is_an_example_with_the_other_as_its_negative(made_pairs: MadeDataset) -> None:
    examples = open_examples([f"{made_pairs.root}:eq-gebc"], "pairs")
    stored = list(read_samples(made_pairs.store, "eq-gebc"))
    assert len(examples) == 2 * len(stored) == 16
    for number, sample in enumerate(stored):
        for side in (0, 1):
            example, other = examples[2 * number + side], examples[2 * number + 1 - side]
            assert example.key == f"{sample.key}-{side}"
            assert example.group == other.group == f"eq-gebc/{sample.json.group}"
            assert examples.read_image(example, "image") == sample.images[f"image{side}"]
            assert example.texts["text"] == sample.texts[f"caption{side}"]
            assert example.images["negative_image"] == other.images["image"]
            assert example.texts["negative_text"] == other.texts["text"]
            assert example.where.endswith(f".tar: {sample.key}")
    assert open_examples([f"{made_pairs.root}:eq-gebc"], "pairs", twins="first")[3].key == f"{stored[3].key}-0"


def test_a_mixture_holds_its_datasets_in_turn_and_repeats_them(
    made_pairs: MadeDataset, made_text_pairs: MadeDataset
) -> None:
    places = [f"{made_pairs.root}:eq-ag", f"{made_text_pairs.root}:text"]
    alone = [all_of(open_examples([place], "pairs")) for place in places]
    mixture = open_examples([f"{places[0]}*2", places[1]], "pairs")
    assert all_of(mixture) == alone[0] * 2 + alone[1]
    assert [mixture[number].copy for number in (0, 15, 16, 31, 32)] == [0, 0, 1, 1, 0]
    assert mixture.open_image(mixture[33], "image").mode == "RGB"
    with pytest.raises(IndexError):
        mixture[len(mixture)]


def test_an_export_for_open_clip_holds_the_examples_of_its_dataset(made_pairs: MadeDataset, tmp_path: Path) -> None:
    export(made_pairs.store, ["eq-ag", "eq-gebc"], "openclip", tmp_path / "clip")
    built = open_examples([f"{made_pairs.root}:eq-ag"], "pairs")
    exported = open_examples([f"{tmp_path / 'clip'}:eq-ag"], "pairs")
    assert all_of(exported) == all_of(built)
    assert [exported.read_image(exported[n], "image") for n in range(16)] == [
        built.read_image(built[n], "image") for n in range(16)
    ]
    assert len(open_examples([str(tmp_path / "clip")], "pairs")) == 32
    assert len(open_examples([str(tmp_path / "clip")], "pairs", twins="first")) == 16

    exported.check_unchanged()
    tar = tmp_path / "clip" / exported[0].images["image"].tar
    content = bytearray(tar.read_bytes())
    content[exported[0].images["image"].offset + 100] ^= 1
    tar.write_bytes(content)
    with pytest.raises(BuildFailed, match="rebuilt since"):
        exported.check_unchanged()

    with tarfile.open(tar, "w", format=tarfile.USTAR_FORMAT) as written:
        written.addfile(tarfile.TarInfo("a-0.jpg"))
    with pytest.raises(WrongUse, match=r"tar: a-0.jpg is empty; run `twinset export"):
        open_examples([f"{tmp_path / 'clip'}:eq-ag"], "pairs")


def test_digests_are_those_of_the_data_alone(made_pairs: MadeDataset, tmp_path: Path) -> None:
    root, place = made_pairs.root, f"{made_pairs.root}:eq-ag"
    first = open_examples([place], "pairs")
    digests = [open_examples(places, "pairs").digest() for places in ([place], [f"{place}*2"], [f"{root}:eq-gebc"])]
    assert digests[0] == first.digest() and len(set(digests)) == 3
    elsewhere = tmp_path / "moved"
    root.rename(elsewhere)
    assert open_examples([f"{elsewhere}:eq-ag"], "pairs").digest() == first.digest()
    shards = open_examples([f"{elsewhere}:eq-ag"], "pairs").facts()[0]["shards"]
    assert [(one["tar"], one["samples"]) for one in shards] == [
        (layout.tar("eq-ag", "test", number), count) for number, count in ((0, 3), (2, 3), (3, 2))
    ]


def test_what_cannot_be_trained_on_is_refused(made_pairs: MadeDataset, made: MadeDataset, tmp_path: Path) -> None:
    root = made_pairs.root

    def refused(match: str, *places: str, task: str = "pairs", split: str | None = None) -> None:
        with pytest.raises(WrongUse, match=match):
            open_examples(places, task, split)  # type: ignore[arg-type]

    refused("no data to train on")
    refused("not a dataset that twinset built", str(tmp_path / "nothing"))
    refused("no subset 'eq-sd'; it has eq-ag", f"{root}:eq-sd")
    refused("a number from 1 to 1000", f"{root}*0")
    refused(r"reads triplet, and here is eq-ag \(pair\)", f"{root}:eq-ag", task="triplets")
    refused("no samples of split 'train'; there are samples of: test", f"{root}:eq-ag", split="train")
    made.add("negatives", NEGATIVE_SUBSET, text_pair_shards("negatives", images=False))
    refused("an index without images", f"{made.root}:negatives")

    tar = root / layout.tar("eq-ag", "test", 0)
    content = tar.read_bytes()
    tar.write_bytes(content[:-512])
    refused(r"00000.tar: [0-9,]+ bytes instead of", f"{root}:eq-ag")
    tar.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    refused("00000.tar: byte 0: not a header of a tar", f"{root}:eq-ag")
    tar.write_bytes(content)
    assert len(open_examples([f"{root}:eq-ag"], "pairs")) == 16
    rows = root / layout.rows("eq-ag", 0)
    content, table = rows.read_bytes(), pq.read_table(rows)
    at = table.column_names.index("image0_sha256")
    hashes = table["image0_sha256"].to_pylist()
    for wrong in (pa.array([[one] for one in hashes]), pa.array(["x" for _ in hashes]), pa.nulls(len(table))):
        pq.write_table(table.set_column(at, "image0_sha256", wrong), rows)
        refused("the rows of its shards are damaged", f"{root}:eq-ag")
    rows.write_bytes(content)
    (root / layout.receipt("eq-ag", 2)).unlink()
    refused("3 of 4 shards are finished", f"{root}:eq-ag")


GROUPS = st.lists(st.integers(0, 30).map(str), min_size=2).filter(lambda groups: len(set(groups)) > 1)


@given(groups=GROUPS, share=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_groups_are_whole_and_the_same_in_any_order(groups: list[str], share: float, seed: int) -> None:
    chosen = held_out(groups, share, seed)
    there = {group for group, one in zip(groups, chosen, strict=True) if one}
    assert not there & {group for group, one in zip(groups, chosen, strict=True) if not one}
    count = len(set(groups))
    assert len(there) == min(count - 1, math.ceil(share * count))
    mixed = random.Random(seed).sample(groups, len(groups))
    assert {group for group, one in zip(mixed, held_out(mixed, share, seed), strict=True) if one} == there


def test_another_seed_or_purpose_takes_other_groups() -> None:
    groups = [str(number) for number in range(200)]
    taken = [tuple(held_out(groups, 0.2, seed, what)) for seed, what in ((0, "test"), (1, "test"), (0, "validation"))]
    assert len(set(taken)) == 3


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(WrongUse, match="1 group of examples cannot be split for test"):
        held_out(["a", "a"], 0.1, 0, "test")


def test_an_order_holds_every_example_once_and_is_another_one_in_each_epoch() -> None:
    orders = [order(1000, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(one) == list(range(1000)) for one in orders)
    # Of two unrelated permutations one place in n agrees: 1 on average, 10 with a probability of 1e-7.
    assert all((one != other).sum() > 990 for at, one in enumerate(orders) for other in orders[:at])


def test_orders_are_those_of_every_release() -> None:
    # Fixed numbers: a checkpoint of an earlier version resumes in the same order.
    assert order(8, 42, 3).tolist() == [4, 6, 5, 2, 0, 1, 3, 7]
    assert augmentation_bits(42, 3, "eq-ag-1", 0, "image", 2).tolist() == [0.6122844792105288, 0.2645046323376251]


def test_augmentation_depends_on_everything_that_names_an_image() -> None:
    asked = [(0, 0, "a", 0, "image"), (1, 0, "a", 0, "image"), (0, 1, "a", 0, "image"), (0, 0, "b", 0, "image")]
    asked += [(0, 0, "a", 1, "image"), (0, 0, "a", 0, "negative_image")]
    found = np.array([augmentation_bits(*one, 40) for one in asked])
    assert len(np.unique(found)) == found.size
    assert 0 <= found.min() < 0.05 and 0.95 < found.max() < 1


ROLES = ("image", "text", "negative_text")


def of_copies(copies: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(copies)), copies)


@pytest.mark.parametrize(
    ("copies", "batch", "steps"),
    [
        ([1] * 10, 4, 2), ([2] * 10, 4, 5), ([2] * 10, 10, 2), ([5, 1, 1, 1], 2, 3), ([100] * 5 + [1] * 1000, 100, 10),
        ([3, 3, 1], 3, 1), ([9, 1], 3, 0),
    ],
)  # fmt: skip
def test_as_many_batches_as_can_be_filled_without_copies(copies: list[int], batch: int, steps: int) -> None:
    same = of_copies(copies)
    assert whole_batches(same, batch) == steps
    for seed in range(20):
        before = order(len(same), seed, 0)
        after = kept_apart(before, same, batch)
        assert np.array_equal(np.sort(after), np.arange(len(same)))
        for step in range(steps):
            assert len(np.unique(same[after[step * batch :][:batch]])) == batch, (seed, step)


def test_full_batches_of_any_copies_are_kept_apart() -> None:
    chance = np.random.default_rng(0)
    for _ in range(100):
        same = of_copies(chance.integers(1, 6, chance.integers(2, 12)).tolist())
        batch = int(chance.integers(2, 8))
        steps, after = whole_batches(same, batch), kept_apart(chance.permutation(len(same)), same, batch)
        taken = same[after[: steps * batch]].reshape(steps, batch)
        assert all(len(np.unique(row)) == batch for row in taken)


def test_an_order_without_copies_in_a_batch_stays_as_it_is() -> None:
    same = of_copies([2] * 200)
    before = order(400, 7, 0)
    after = kept_apart(before, same, 4)
    moved = np.flatnonzero(before != after)
    repeated = [step for step in range(100) if len(np.unique(same[before[step * 4 :][:4]])) < 4]
    assert 0 < len(moved) <= 2 * len(repeated)


def test_a_repeated_dataset_puts_no_pair_into_a_batch_twice(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    place = f"{made_pairs.root}:eq-ag"
    for places in ([f"{place}*2"], [place, place], [f"{made_pairs.root}:eq-ag", str(made_pairs.root)]):
        examples = open_examples(places, "pairs", twins="first")
        batches = Batches(examples, small_crops, tokenize, 8, 7, ROLES)
        read = [batches.at(step) for step in range(batches.steps_per_epoch)]
        assert len(read) == len(examples) // 8 and all(len({*batch.keys}) == 8 for batch in read)
    assert Counter(key for batch in read for key in batch.keys).most_common(1)[0][1] == 2
    # Two keys of one pair are different answers.
    both = open_examples([f"{place}*2"], "pairs")
    assert both.distinct == 16 and Batches(both, small_crops, tokenize, 16, 7, ROLES).steps_per_epoch == 2
    with pytest.raises(WrongUse, match="16 different examples do not fill a batch of 17"):
        Batches(both, small_crops, tokenize, 17, 7, ROLES)


def test_what_takes_the_place_of_a_broken_example_is_no_copy_either(
    made_pairs: MadeDataset, small_crops: Transforms
) -> None:
    examples = open_examples([f"{made_pairs.root}:eq-ag*3"], "pairs")
    batches = Batches(examples, small_crops, tokenize, 4, 7, ROLES, max_broken=0.5)
    (made_pairs.root / layout.tar("eq-ag", "test", 0)).write_bytes(b"")
    read = [batches.at(step) for step in range(2 * batches.steps_per_epoch)]
    assert any(batch.left_out for batch in read)
    assert all(len({*batch.keys}) == 4 for batch in read)


def picture(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(width).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def numbers(key: str) -> np.ndarray:
    return augmentation_bits(0, 0, key, 0, "image", NUMBERS)


def read(transforms: Transforms, shown: Image.Image, key: str) -> np.ndarray:
    """A picture as a tower reads it, (3, height, width) float32."""
    return transforms.tensor(transforms.pixels(shown, numbers(key))[None].copy())[0].numpy()


@pytest.mark.parametrize("settings", [{"size": 64}, {"size": 48, "resize_mode": "squash", "interpolation": "bilinear"}])
@pytest.mark.parametrize("size", [(97, 131), (200, 80), (64, 64)])
def test_evaluation_is_open_clips_own_to_the_last_bit(settings: dict[str, object], size: tuple[int, int]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), is_train=False)
    ours = read(Transforms(settings, "evaluation"), picture(*size), "a")
    assert np.array_equal(ours, theirs(picture(*size)).numpy())


@pytest.mark.parametrize("size", [(97, 131), (640, 480), (33, 30)])
def test_training_is_open_clips_own_to_the_last_bit_for_the_same_crop(size: tuple[int, int]) -> None:
    left, top, width, height = crop_box(*size, numbers("b"))
    cropped = resized_crop(picture(*size), top, left, height, width, [64, 64], InterpolationMode.BICUBIC)
    after = open_clip.transform.image_transform(64, is_train=True).transforms[1:]
    for step in after:
        cropped = step(cropped)
    assert np.array_equal(read(Transforms({"size": 64}), picture(*size), "b"), cropped.numpy())


@pytest.mark.parametrize("size", [(400, 300), (100, 300), (300, 100)])
def test_crops_are_spread_as_torchvisions(size: tuple[int, int]) -> None:
    drawn = np.array([crop_box(*size, numbers(f"{size}-{number}")) for number in range(2000)])
    torch.manual_seed(0)
    theirs = [RandomResizedCrop.get_params(Image.new("L", size), list(SCALE), list(RATIO)) for _ in range(2000)]
    theirs = np.array([(left, top, width, height) for top, left, height, width in theirs])
    # Means of 2,000 samples: standard errors are below 0.02 of the spread, and differences of two means below 0.1.
    spread = theirs.std(0) + 0.5
    assert np.all(np.abs(drawn.mean(0) - theirs.mean(0)) < 0.15 * spread)
    assert np.all(np.abs(drawn.std(0) - theirs.std(0)) < 0.15 * spread)


def test_an_unknown_transform_is_refused() -> None:
    with pytest.raises(WrongUse, match="training or evaluation"):
        Transforms({"size": 32}, "test")  # type: ignore[arg-type]


MEGABYTES = 8  # of each result: more than a pipe holds


def squares(number: int) -> tuple[int, bytes]:
    if number == 5:
        raise WrongUse("five")
    return number**2, bytes(MEGABYTES << 20)


def read_for_ever(pids: Path) -> None:
    """What a training does: it reads a few results, and is then busy with them."""
    os.setsid()
    made = made_ahead(blocks, iter(range(1000)), workers=2, ahead=4)
    found = {next(made)[0] for _ in range(4)}
    pids.with_suffix(".part").write_text(" ".join(map(str, found)))
    pids.with_suffix(".part").rename(pids)
    time.sleep(3600)


def blocks(_number: int) -> tuple[int, bytes]:
    return os.getpid(), bytes(MEGABYTES << 20)


def test_results_come_in_order_and_errors_as_they_were_raised() -> None:
    made = made_ahead(squares, iter(range(8)), workers=2, ahead=2)
    assert [next(made)[0] for _ in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(WrongUse, match=r"^five$"):
        next(made)


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_process_that_asked(way: signal.Signals, tmp_path: Path) -> None:
    training = multiprocessing.get_context("fork").Process(target=read_for_ever, args=(tmp_path / "pids",))
    training.start()
    wait_until((tmp_path / "pids").exists)
    workers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(workers) == 2 and all(map(psutil.pid_exists, workers))
    # Ctrl-C reaches all processes of the terminal; the others are sent to one.
    (os.killpg if way == signal.SIGINT else os.kill)(training.pid or 0, way)
    training.join()
    assert training.exitcode not in (None, 0)
    wait_until(lambda: not any(map(psutil.pid_exists, workers)))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_is_killed_ends_the_training_with_a_message(workers: int) -> None:
    made = made_ahead(blocks, iter(range(1000)), workers=workers, ahead=2)
    os.kill(next(made)[0], signal.SIGKILL)
    with pytest.raises(BuildFailed, match=r"was killed, as happens where memory runs out; choose fewer --workers"):
        for _ in made:
            pass
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("seed", range(10))
def test_workers_are_killed_at_any_moment(seed: int) -> None:
    random_numbers = random.Random(seed)
    made = made_ahead(blocks, iter(range(100_000)), workers=2, ahead=2)
    killed = random_numbers.choice([next(made)[0], next(made)[0]])
    # Another process kills it, so that it dies while this one asks, waits, or has received the half of a result.
    delay = random_numbers.random() / 5
    killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep({delay}); os.kill({killed}, 9)"])
    with pytest.raises(BuildFailed, match="was killed"):
        for _ in made:
            pass
    assert killer.wait() == 0 and not multiprocessing.active_children()


def test_a_worker_that_fails_or_ends_is_told_apart_from_one_that_is_killed() -> None:
    with pytest.raises(BuildFailed, match=r"^ValueError: invalid literal for int"):
        next(made_ahead(int, iter(["no number"]), workers=1, ahead=1))
    with pytest.raises(BuildFailed, match="ended with exit code 3; run the same command again"):
        next(made_ahead(os._exit, iter([3]), workers=1, ahead=1))


def test_results_that_nobody_asks_for_are_made_ahead(tmp_path: Path) -> None:
    def make(number: int) -> tuple[int, bytes]:
        (tmp_path / str(number)).touch()
        return number, bytes(MEGABYTES << 20)

    made = made_ahead(make, iter(range(1000)), workers=2, ahead=3)
    assert next(made)[0] == 0
    wait_until(lambda: len(list(tmp_path.iterdir())) == 7)  # the first, and three of each process
    assert [next(made)[0] for _ in range(3)] == [1, 2, 3]
    made.close()
    assert not multiprocessing.active_children()
