"""Tars of others are trained on where they lie: patterns, an index beside OUT, what gives no example."""

import io
import json
import logging
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import ExifTags, Image, ImageOps

from twinset.contracts.errors import WrongUse
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.tars import EMPTY, LINK, NAMELESS, NO_CAPTION, NO_IMAGE, SEVERAL, UNREAD


def jpeg(number: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (48, 32), (number % 250, 90, 200)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def tars(tmp_path: Path) -> Path:
    """Three tars as img2dataset writes them: jpg, json and txt of each key, a pax header before each member."""
    (tmp_path / "cc").mkdir()
    for shard in range(3):
        with webdataset.TarWriter(str(tmp_path / f"cc/{shard:05d}.tar")) as tar:
            for n in range(4 * shard, 4 * shard + 4):
                described = {"caption": f"picture {n}", "status": "success", "width": 48}
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
    counts = {"cc/00001.tar": 4, "cc/{00000..00001}.tar": 8, "cc/*.tar": 12, "cc/0000?.tar": 12}
    assert {pattern: len(opened(tars, pattern)) for pattern in counts} == counts
    (tars / "cc/00000.tar.sha256").write_text("")  # as a download leaves it there
    (tars / "cc/00001.tar").rename(tars / "cc/00001.TAR")
    assert opened(tars, "cc").column("key").to_pylist() == examples.column("key").to_pylist()
    (tars / "cc/00001.TAR").rename(tars / "cc/00001.tar")
    example = examples[5]
    assert (example.key, example.texts) == ("00001/000000005", {"text": "picture 5"})
    assert example.group == f"{tars}/cc/00001.tar" and len(examples.groups()) == 3
    assert examples.read_image(example, "image") == jpeg(5)
    assert [shard["tar"] for shard in examples.facts()[0]["shards"]] == [f"{n:05d}.tar" for n in range(3)]
    # Nobody hashed the images: they are told apart by their places.
    assert sorted(examples.image_numbers()) == [*range(12)] and not examples.hashes()


def test_the_index_is_written_once_and_again_where_it_is_damaged(tars: Path) -> None:
    whole = opened(tars, "cc")
    (index,) = (tars / "index").iterdir()
    before, content = index.stat().st_mtime_ns, index.read_bytes()
    assert opened(tars, "cc").digest() == whole.digest() and index.stat().st_mtime_ns == before
    for damaged in (b"", b"no Parquet", content[: len(content) // 2]):
        index.write_bytes(damaged)
        assert opened(tars, "cc")[5] == whole[5] and index.read_bytes() == content
    pq.write_table(pa.table({"a": [1]}), index)
    assert opened(tars, "cc").table.equals(whole.table)
    (tars / "cc").rename(tars / "moved")
    assert opened(tars, "moved").digest() == whole.digest() and opened(tars, "moved")[5].group.startswith(
        f"{tars}/moved"
    )


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
    examples = opened(tmp_path, "in.tar")
    read = [
        (example.texts["text"], examples.read_image(example, "image"))
        for example in map(examples.__getitem__, range(3))
    ]
    assert read == [("text 1", jpeg(0)), ("text 4", jpeg(2)), ("text 7", jpeg(6))]
    keys = [sample["__key__"] for sample in webdataset.WebDataset(str(tar), shardshuffle=False)]
    assert [examples[n].key for n in range(3)] == [f"in/{key}" for key in keys]


def test_a_tar_that_is_not_whole_is_refused_however_it_ends(tmp_path: Path) -> None:
    path = packed(tmp_path / "cut.tar", ["0.jpg", "0.txt", "1.jpg", "1.txt"])
    content = path.read_bytes()
    end = len(content.rstrip(b"\0")) + -len(content.rstrip(b"\0")) % 512 + 1024
    for length in {*range(0, end, 512), *range(0, end, 97), end - 1}:
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
    picture = Image.new("RGB", (48, 32), "white")
    picture.paste("red", (0, 0, 16, 16))
    picture.save(stream, "JPEG", exif=exif)
    packed(tmp_path / "turned.tar", {"0.jpg": stream.getvalue(), "0.txt": b"a red corner"})
    examples = opened(tmp_path, "turned.tar")
    shown = examples.open_image(examples[0], "image")
    assert np.array_equal(shown, ImageOps.exif_transpose(Image.open(stream)))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("cc/{00000..00009}.tar", "7 of 10 tars are absent"),
        ("none", "absent"),
        ("zipped", r"b\.tar\.gz is compressed"),
        ("zipped/b.tar.gz", r"b\.tar\.gz is compressed"),
        ("index", "names no tar"),
        ("twice.tar", r"twice\.tar: d\.jpg: duplicate file name"),
        ("broken.tar", r"broken\.tar: byte 0: "),
    ],
)
def test_what_is_refused(tars: Path, pattern: str, message: str) -> None:
    (tars / "index").mkdir()
    (tars / "zipped").mkdir()
    packed(tars / "zipped/a.tar", ["0.jpg", "0.txt"])
    (tars / "zipped/b.tar.gz").write_bytes(b"compressed")
    (tars / "broken.tar").write_bytes(b"no tar at all" * 100)
    with tarfile.open(tars / "twice.tar", "w") as tar:
        for _ in range(2):
            tar.addfile(tarfile.TarInfo("d.jpg"))
    with pytest.raises(WrongUse, match=message):
        opened(tars, pattern)
