"""Examples of built datasets and of tars of other people, and batches of them.

Batches are a function of the step; what cannot be read is replaced and named. Where a worker process is killed, the
training ends with a message.
"""

import io
import json
import logging
import multiprocessing
import os
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import open_clip
import pytest
import torch
import webdataset
from numpy.typing import NDArray
from PIL import ExifTags, Image

from tests.evaluation.benchmarks.made_layouts import picture as jpeg
from tests.made_datasets import MadeDataset
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.ordering import order
from twinset.training.examples.tars import EMPTY, LINK, NAMELESS, NO_CAPTION, NO_IMAGE, SEVERAL, UNREAD
from twinset.training.examples.transforms import Transforms
from twinset.training.examples.workers import made_ahead, named_workers


def all_of(examples: ExampleSet) -> list[tuple[str, str, bytes]]:
    rows = [examples[number] for number in range(len(examples))]
    return [(row.key, row.texts["text"], examples.read_image(row, "image")) for row in rows]


def test_each_side_of_a_pair_is_an_example_with_the_other_as_its_negative(made_pairs: MadeDataset) -> None:
    examples = open_examples([f"{made_pairs.root}:eq-gebc"], "pairs")
    stored = list(read_samples(made_pairs.store, "eq-gebc"))
    assert len(examples) == 2 * len(stored) == 16
    for number, sample in enumerate(stored):
        for side in (0, 1):
            example, twin = examples[2 * number + side], examples[2 * number + 1 - side]
            assert example.key == f"{sample.key}-{side}"
            assert example.group == twin.group == f"eq-gebc/{sample.json.group}"
            assert examples.read_image(example, "image") == sample.images[f"image{side}"]
            assert example.texts["text"] == sample.texts[f"caption{side}"]
            assert example.images["negative_image"] == twin.images["image"]
            assert example.texts["negative_text"] == twin.texts["text"]
            assert example.where.endswith(f".tar: {sample.key}-{side}")
    assert open_examples([f"{made_pairs.root}:eq-gebc"], "pairs", twins="first")[3].key == f"{stored[3].key}-0"


def test_a_mixture_is_one_table_of_its_datasets_in_turn(made_pairs: MadeDataset, made_text_pairs: MadeDataset) -> None:
    places = [f"{made_pairs.root}:eq-ag", f"{made_text_pairs.root}:text"]
    alone = [open_examples([place], "pairs") for place in places]
    mixture = open_examples(places, "pairs")
    assert all_of(mixture) == all_of(alone[0]) + all_of(alone[1])
    assert mixture.lacking("negative_text") is None and mixture.lacking("negative_image") == 16
    with pytest.raises(WrongUse, match=f"^{places[1]}: text-.* has no negative_image"):
        mixture.require(["image", "negative_image"])
    assert mixture.groups() == alone[0].groups() | alone[1].groups() and mixture.hashes() >= alone[1].hashes()
    assert [row["examples"] for row in mixture.facts()] == [len(examples) for examples in alone]


def test_digests_are_those_of_the_data_alone(made_pairs: MadeDataset, tmp_path: Path) -> None:
    root = made_pairs.root
    first = open_examples([f"{root}:eq-ag"], "pairs")
    others = [open_examples([f"{root}:eq-gebc"], "pairs"), open_examples([f"{root}:eq-ag"], "pairs", twins="first")]
    assert len({first.digest(), *(examples.digest() for examples in others)}) == 3
    root.rename(tmp_path / "moved")
    moved = open_examples([f"{tmp_path}/moved:eq-ag"], "pairs")
    assert moved.digest() == first.digest()
    shards = [(shard["tar"], shard["samples"]) for shard in moved.facts()[0]["shards"]]
    assert shards == [(layout.tar("eq-ag", "test", number), count) for number, count in ((0, 3), (2, 3), (3, 2))]


@pytest.mark.parametrize(
    ("message", "places", "given"),
    [
        ("not a dataset that twinset built", ["ROOT/nothing"], {}),
        ("no subset 'eq-sd'; it has eq-ag", ["ROOT:eq-sd"], {}),
        (r"reads triplet, and here is eq-ag \(pair\)", ["ROOT:eq-ag"], {"task": "triplets"}),
        ("no samples of split 'train'; there are samples of: test", ["ROOT:eq-ag"], {"split": "train"}),
    ],
)
def test_no_data_is_refused(made_pairs: MadeDataset, message: str, places: list[str], given: dict[str, Any]) -> None:
    with pytest.raises(WrongUse, match=message):
        open_examples([place.replace("ROOT", str(made_pairs.root)) for place in places], **{"task": "pairs"} | given)


def test_an_order_holds_every_example_once_and_is_another_one_in_each_epoch() -> None:
    orders = [order(1000, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(numbers) == list(range(1000)) for numbers in orders)
    # Of two unrelated permutations one place in n agrees: 1 on average, 10 with a probability of 1e-7.
    assert all((orders[n] != earlier).sum() > 990 for n in range(4) for earlier in orders[:n])
    # Fixed numbers: a checkpoint of an earlier version resumes in the same order.
    assert order(8, 42, 3).tolist() == [4, 6, 5, 2, 0, 1, 3, 7]


def picture(width: int, height: int) -> Image.Image:
    noise = np.random.default_rng(width).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("settings", [{"size": 64}, {"size": 48, "resize_mode": "squash", "interpolation": "bilinear"}])
@pytest.mark.parametrize("size", [(97, 131), (200, 80), (64, 64)])
@pytest.mark.parametrize("mode", ["training", "evaluation"])
def test_transforms_are_open_clips_own(mode: Any, settings: dict[str, Any], size: tuple[int, int]) -> None:
    theirs = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(**settings), mode == "training")
    transforms, state = Transforms(settings, mode), torch.get_rng_state()
    tensor = transforms.tensor(transforms.pixels(picture(*size), 7)[None].copy())[0]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(7)
    assert torch.equal(tensor, theirs(picture(*size)))


@pytest.fixture
def tars(tmp_path: Path) -> Path:
    """Three tars as img2dataset writes them: jpg, json and txt of each key, a pax header before each member."""
    (tmp_path / "cc").mkdir()
    for shard in range(3):
        with webdataset.TarWriter(str(tmp_path / f"cc/{shard:05d}.tar")) as tar:
            for n in range(4 * shard, 4 * shard + 4):
                described = {"caption": f"picture {n}", "status": "success", "width": 24}
                tar.write({"__key__": f"{n:09d}", "jpg": jpeg(n), "json": described, "txt": f"picture {n}"})
    return tmp_path


def opened(folder: Path, pattern: str) -> ExampleSet:
    return open_examples([f"tars:{folder}/{pattern}"], "pairs", index=folder / "index")


def packed(path: Path, files: dict[str, bytes] | list[str]) -> Path:
    """A tar of files; those of which names alone are given hold a picture or a text."""
    if isinstance(files, list):
        files = {name: f"text {n}".encode() if name.endswith("txt") else jpeg(n) for n, name in enumerate(files)}
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_an_example_is_what_lies_in_the_tar(tars: Path) -> None:
    examples = opened(tars, "cc")
    counts = {"cc/00001.tar": 4, "cc/{00000..00001}.tar": 8, "cc/*.tar": 12}
    assert {pattern: len(opened(tars, pattern)) for pattern in counts} == counts
    (tars / "cc/00000.tar.sha256").write_text("")  # as a download leaves it there
    assert len(opened(tars, "cc")) == 12
    example = examples[5]
    assert (example.key, example.texts) == ("00001/000000005", {"text": "picture 5"})
    assert example.group == f"{tars}/cc/00001.tar" and len(examples.groups()) == 3
    assert examples.read_image(example, "image") == jpeg(5)
    assert [shard["tar"] for shard in examples.facts()[0]["shards"]] == [f"{n:05d}.tar" for n in range(3)]
    assert sorted(examples.image_numbers()) == [*range(12)]  # nobody hashed the images: places tell them apart


def test_the_index_is_written_once_and_again_where_it_is_damaged(tars: Path) -> None:
    whole = opened(tars, "cc")
    (index,) = (tars / "index").iterdir()
    before, content = index.stat().st_mtime_ns, index.read_bytes()
    assert opened(tars, "cc").digest() == whole.digest() and index.stat().st_mtime_ns == before
    for damaged in (b"no Parquet", content[: len(content) // 2]):
        index.write_bytes(damaged)
        assert opened(tars, "cc")[5] == whole[5] and index.read_bytes() == content
    (tars / "cc").rename(tars / "moved")
    assert opened(tars, "moved")[5].group.startswith(f"{tars}/moved")


def test_folders_whose_tars_are_alike_in_size_and_time_have_each_its_own_captions(tmp_path: Path) -> None:
    for word in ("cat", "dog"):
        (tmp_path / word).mkdir()
        os.utime(packed(tmp_path / word / "0.tar", {"0.jpg": jpeg(0), "0.txt": word.encode()}), (1, 1))
    assert [opened(tmp_path, word)[0].texts["text"] for word in ("cat", "dog")] == ["cat", "dog"]


def test_every_sample_without_an_example_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = {
        "README": b"", "./a/good.jpg": jpeg(2), "./a/good.json": json.dumps({"caption": "of the JSON"}).encode(),
        "./a/mute.jpg": jpeg(3), "./a/lost.txt": b"no image", "./a/empty.jpg": b"", "./a/empty.txt": b"a text",
        "./a/odd.jpg": jpeg(4), "./a/odd.txt": b"\xff\xfe", "./a/half.jpg": jpeg(5),
        "./a/half.json": b'{"caption": "x \\ud800"}', "._b.jpg": b"of macOS", "b.jpg": jpeg(6), "b.de.txt": b"ein",
        "b.en.txt": b"a",
    }  # fmt: skip
    for n in range(16):  # a key ends at the first dot
        files |= {f"photo.v1.{n}.jpg": jpeg(n), f"photo.v1.{n}.txt": b"a photo"}
    path = packed(tmp_path / "all.tar", files)
    with tarfile.open(path, "a") as tar:
        for name, kind in {"soft.jpg": tarfile.SYMTYPE, "hard.txt": tarfile.LNKTYPE}.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, "./a/good.jpg"
            tar.addfile(link)
    with caplog.at_level(logging.WARNING, "twinset"):
        examples = opened(tmp_path, "all.tar")
    assert [(examples[0].key, examples[0].texts["text"])] == [("all/./a/good", "of the JSON")] and len(examples) == 1
    counted = {SEVERAL: 17, NO_IMAGE: 1, NO_CAPTION: 1, EMPTY: 1, LINK: 2, UNREAD: 2, NAMELESS: 1}
    assert examples.facts()[0]["left_out"] == counted
    assert all(f"{count} with {reason} (first all.tar " in caplog.text for reason, count in counted.items())
    packed(tmp_path / "apart.tar", ["0.jpg", "1.jpg", "0.txt", "1.txt"])
    with pytest.raises(WrongUse, match=r"2 with no caption .*2 with no image .*side by side"):
        opened(tmp_path, "apart.tar")


def test_names_in_front_of_an_extension_are_read_as_webdataset_reads_them(tmp_path: Path) -> None:
    names = ["0.input.jpg", "0.outputs.txt", "1.jpg", "1.mask.png", "1.txt", "1.ocr.txt", "2.input.PNG", "2.txt"]
    tar = packed(tmp_path / "in.tar", names)
    keys = [f"in/{sample['__key__']}" for sample in webdataset.WebDataset(str(tar), shardshuffle=False)]
    read = [(keys[0], "text 1", jpeg(0)), (keys[1], "text 4", jpeg(2)), (keys[2], "text 7", jpeg(6))]
    assert all_of(opened(tmp_path, "in.tar")) == read


def test_a_tar_that_is_not_whole_is_refused_however_it_ends(tmp_path: Path) -> None:
    path = packed(tmp_path / "cut.tar", ["0.jpg", "0.txt", "1.jpg", "1.txt"])
    content = path.read_bytes()
    end = len(content.rstrip(b"\0")) + -len(content.rstrip(b"\0")) % 512 + 1024
    for length in {*range(0, end, 512), *range(0, end, 970), end - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(WrongUse, match=r"cut\.tar: byte \d+.*fetch this tar again, or leave it out"):
            opened(tmp_path, "cut.tar")
    path.write_bytes(content[:end])
    assert len(opened(tmp_path, "cut.tar")) == 2
    path.write_bytes(content[:end] + content)  # `cat` of two tars
    with pytest.raises(WrongUse, match=r"cut\.tar: byte \d+: [\d,]+ bytes follow the last member"):
        opened(tmp_path, "cut.tar")


def test_pictures_are_turned_as_their_exif_says(tmp_path: Path) -> None:
    stream, exif = io.BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.new("RGB", (48, 32)).save(stream, "JPEG", exif=exif)
    packed(tmp_path / "turned.tar", {"0.jpg": stream.getvalue(), "0.txt": b"a photo"})
    examples = opened(tmp_path, "turned.tar")
    assert examples.open_image(examples[0], "image").size == (32, 48)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("cc/{00000..00009}.tar", "7 of 10 tars are absent"),
        ("zipped", r"b\.tar\.gz is compressed"),
        ("index", "names no tar"),
        ("twice.tar", r"twice\.tar: d\.jpg: duplicate file name"),
    ],
)
def test_what_is_refused(tars: Path, pattern: str, message: str) -> None:
    (tars / "index").mkdir()
    (tars / "zipped").mkdir()
    packed(tars / "zipped/a.tar", ["0.jpg", "0.txt"])
    (tars / "zipped/b.tar.gz").write_bytes(b"compressed")
    with tarfile.open(tars / "twice.tar", "w") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("d.jpg"))
    with pytest.raises(WrongUse, match=message):
        opened(tars, pattern)


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
