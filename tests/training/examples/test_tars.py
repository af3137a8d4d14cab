"""Tars of others are trained on where they lie: patterns, an index beside OUT, what gives no example."""

import io
import json
import logging
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import ExifTags, Image, ImageOps

from twinset.contracts.errors import WrongUse
from twinset.training.examples.contracts import DataPlace, data_place
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.neighbours import image_numbers
from twinset.training.examples.tars import EMPTY, NO_IMAGE, SEVERAL


def jpeg(number: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (48, 32), (number % 250, 90, 200)).save(stream, "JPEG")
    return stream.getvalue()


def written(path: Path, numbers: range) -> Path:
    """A tar as img2dataset writes it: jpg, json and txt of each key, a pax header before each member."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with webdataset.TarWriter(str(path)) as tar:
        for n in numbers:
            key = f"{n:09d}"
            described = {"key": key, "caption": f"picture {n}", "status": "success", "width": 48}
            tar.write({"__key__": key, "jpg": jpeg(n), "json": described, "txt": f"picture {n}"})
    return path


@pytest.fixture
def tars(tmp_path: Path) -> Path:
    for shard in range(3):
        written(tmp_path / f"cc/{shard:05d}.tar", range(4 * shard, 4 * shard + 4))
    return tmp_path


def opened(folder: Path, pattern: str) -> ExampleSet:
    return open_examples([f"tars:{folder}/{pattern}"], "pairs", index=folder / "index")


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("cc", 12),
        ("cc/00001.tar", 4),
        ("cc/{00000..00001}.tar", 8),
        ("cc/*.tar", 12),
        ("cc/0000?.tar", 12),
        ("cc/{00000,00002}.tar*2", 16),
        ("{cc,cc}/00000.tar", 0),
        ("cc/{00000..00009}.tar", 0),
    ],
)
def test_patterns(tars: Path, pattern: str, count: int) -> None:
    if count:
        assert len(opened(tars, pattern)) == count
    else:
        with pytest.raises(WrongUse, match=r"^tars:.*(absent|twice)"):
            opened(tars, pattern)


def test_an_example_is_what_lies_in_the_tar(tars: Path) -> None:
    examples = opened(tars, "cc")
    one = examples[5]
    assert (one.key, one.group, one.texts) == ("00001/000000005", "00001/000000005", {"text": "picture 5"})
    assert examples.read_image(one, "image") == jpeg(5)
    assert sorted(path.name for path in (tars / "cc").iterdir()) == ["00000.tar", "00001.tar", "00002.tar"]
    (index,) = (tars / "index").iterdir()
    before = index.stat().st_mtime_ns
    assert opened(tars, "cc").digest() == examples.digest()
    assert index.stat().st_mtime_ns == before  # written once
    assert [shard["tar"] for shard in examples.facts()[0]["shards"]] == [f"cc/{n:05d}.tar" for n in range(3)]


def test_images_that_nobody_hashed_are_told_apart_by_their_places(tars: Path) -> None:
    examples = open_examples([f"tars:{tars}/cc*2"], "pairs", index=tars / "index")
    images, numbers = image_numbers(examples)
    half = len(examples) // 2
    assert len(images) == half and sorted(numbers[:half]) == [*range(half)]
    assert np.array_equal(numbers[:half], numbers[half:])


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def test_samples_without_image_or_caption_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tarfile.open(tmp_path / "odd.tar", "w") as tar:
        add(tar, "./a/whole.one.jpg", jpeg(1))
        add(tar, "./a/good.jpg", jpeg(2))
        add(tar, "./a/good.json", json.dumps({"caption": "of the JSON"}).encode())
        add(tar, "./a/mute.jpg", jpeg(3))
        add(tar, "./a/lost.txt", b"no image")
        add(tar, "./a/empty.jpg", b"")
        add(tar, "./a/empty.txt", b"an empty image")
        add(tar, "./a/odd.jpg", jpeg(4))
        add(tar, "./a/odd.txt", b"\xff\xfe")
        add(tar, "./a/half.jpg", jpeg(5))
        add(tar, "./a/half.json", b'{"caption": "x \\ud800"}')
    with caplog.at_level(logging.WARNING, "twinset"):
        examples = opened(tmp_path, "odd.tar")
    assert [(examples[0].key, examples[0].texts["text"])] == [("odd/./a/good", "of the JSON")] and len(examples) == 1
    assert "2 with no caption (first " in caplog.text and "odd.tar ./a/lost.txt)" in caplog.text
    left_out = examples.facts()[0]["left_out"]
    assert left_out == {"no caption": 2, "no image": 1, "an empty image": 1, "a caption that cannot be read": 2}


def packed(path: Path, *names: str) -> Path:
    """A tar with a picture or a text under each name."""
    with tarfile.open(path, "w") as tar:
        for n, name in enumerate(names):
            add(tar, name, f"text {n}".encode() if name.endswith("txt") else jpeg(n))
    return path


def test_names_in_front_of_an_extension_are_read_as_webdataset_reads_them(tmp_path: Path) -> None:
    names = ("0.input.jpg", "0.outputs.txt", "1.jpg", "1.mask.png", "1.txt", "1.ocr.txt", "2.input.PNG", "2.txt")
    tar = packed(tmp_path / "in.tar", *names)
    examples = opened(tmp_path, "in.tar")
    read = [
        (one.key, one.texts["text"], examples.read_image(one, "image")) for one in map(examples.__getitem__, [0, 1, 2])
    ]
    assert read == [("in/0", "text 1", jpeg(0)), ("in/1", "text 4", jpeg(2)), ("in/2", "text 7", jpeg(6))]
    keys = [sample["__key__"] for sample in webdataset.WebDataset(str(tar), shardshuffle=False)]
    assert len(examples) == 3 and keys == ["0", "1", "2"]


def test_every_sample_that_is_not_read_is_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dotted = [f"photo.v1.{n}.{kind}" for n in range(16) for kind in ("jpg", "txt")]
    others = ["README", "a.gif", "b.jpg", "b.de.txt", "b.en.txt", "c.cls", "d.jpg", "d.jpg", "d.txt", "._e.jpg"]
    packed(tmp_path / "all.tar", "0.jpg", "0.txt", *dotted, *others)
    with tarfile.open(tmp_path / "all.tar", "a") as tar:
        link = tarfile.TarInfo("link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "0.jpg"
        tar.addfile(link)
        add(tar, "link.txt", b"of a link")
    with caplog.at_level(logging.WARNING, "twinset"):
        examples = opened(tmp_path, "all.tar")
    counted = {SEVERAL: 19, NO_IMAGE: 3, EMPTY: 1}
    assert len(examples) == 1 and examples.facts()[0]["left_out"] == counted
    assert "19 with a key of several images" in caplog.text and "replace further dots" in caplog.text
    assert all(f"all.tar {name})" in caplog.text for name in ("photo.v1.0.jpg", "README", "link.jpg"))
    packed(tmp_path / "dotted.tar", *dotted)
    with pytest.raises(WrongUse, match=r"no sample has an image and a caption: 16 with a key of .*photo\.v1\.0\.jpg\)"):
        opened(tmp_path, "dotted.tar")


def test_a_tar_that_is_not_whole_is_refused_however_it_ends(tmp_path: Path) -> None:
    path = packed(tmp_path / "cut.tar", "0.jpg", "0.txt", "1.jpg", "1.txt")
    content = path.read_bytes()
    end = len(content.rstrip(b"\0")) + -len(content.rstrip(b"\0")) % 512 + 1024
    for length in {*range(0, end, 512), *range(0, end, 97), end - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(WrongUse, match=r"cut\.tar: byte \d+.*fetch this tar again, or leave it out"):
            opened(tmp_path, "cut.tar")
    path.write_bytes(content[:end])
    assert len(opened(tmp_path, "cut.tar")) == 2
    for behind in (content, bytes(2 << 20)):  # `cat` of two tars; room that a download has reserved
        path.write_bytes(content + behind)
        with pytest.raises(WrongUse, match=r"cut\.tar: byte \d+: [\d,]+ bytes follow the last member"):
            opened(tmp_path, "cut.tar")


def test_a_tar_that_is_not_sorted_is_refused_with_the_way_out(tmp_path: Path) -> None:
    packed(tmp_path / "apart.tar", "0.jpg", "1.jpg", "0.txt", "1.txt")
    with pytest.raises(
        WrongUse, match=r"apart\.tar: the fields of 0 do not lie side by side.*; sort the tar: .*--sort=name"
    ):
        opened(tmp_path, "apart.tar")


@pytest.mark.parametrize("pattern", ["cc", "cc/*.gz", "cc/b.tar.gz"])
def test_tars_that_are_compressed_are_refused(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "cc").mkdir()
    packed(tmp_path / "cc/a.tar", "0.jpg", "0.txt")
    (tmp_path / "cc/b.tar.gz").write_bytes(b"compressed")
    with pytest.raises(WrongUse, match=r"b\.tar\.gz is compressed; .*unpack it"):
        opened(tmp_path, pattern)


@pytest.mark.parametrize("turn", range(1, 9))
def test_pictures_are_turned_as_their_exif_says(tmp_path: Path, turn: int) -> None:
    stream, exif = io.BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = turn
    picture = Image.new("RGB", (48, 32), "white")
    picture.paste("red", (0, 0, 16, 16))
    picture.save(stream, "JPEG", exif=exif)
    with tarfile.open(tmp_path / "turned.tar", "w") as tar:
        add(tar, "0.jpg", stream.getvalue())
        add(tar, "0.txt", b"a red corner")
    examples = opened(tmp_path, "turned.tar")
    shown = examples.open_image(examples[0], "image")
    expected = ImageOps.exif_transpose(Image.open(stream))
    assert shown.size == ((48, 32) if turn < 5 else (32, 48)) and np.array_equal(shown, expected)


def test_damaged_tars_are_named(tars: Path) -> None:
    path = tars / "cc/00001.tar"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 + 100])
    with pytest.raises(WrongUse, match=r"00001\.tar: byte \d+.*fetch this tar again, or leave it out"):
        opened(tars, "cc")
    path.write_bytes(b"no tar at all" * 100)
    with pytest.raises(WrongUse, match=r"00001\.tar: byte 0: "):
        opened(tars, "cc")


def test_samples_of_one_number_in_other_folders_are_others(tars: Path) -> None:
    written(tars / "val/00000.tar", range(4))
    names = [part.names() for folder in ("cc", "val") for part in opened(tars, folder).parts]
    assert len(names[0]) == 3 and not names[0] & names[1]


def test_a_damaged_index_is_written_again(tars: Path) -> None:
    whole = opened(tars, "cc")
    (index,) = (tars / "index").iterdir()
    content = index.read_bytes()
    for damaged in (b"", b"no Parquet", content[: len(content) // 2]):
        index.write_bytes(damaged)
        assert opened(tars, "cc")[5] == whole[5] and index.read_bytes() == content
    pq.write_table(pa.table({"a": [1]}), index)
    assert len(opened(tars, "cc")) == 12
    table = pq.read_table(index)
    metadata = pq.read_schema(index).metadata
    far = table.set_column(3, "size", pa.array([1 << 60] * len(table), pa.uint64())).replace_schema_metadata(metadata)
    pq.write_table(far, index)
    assert opened(tars, "cc")[5] == whole[5]


@pytest.mark.parametrize("pattern", ["{0..1000000000}", "{a,b}" * 28, "{a," * 2000 + "b" + "}" * 2000])
def test_patterns_of_too_many_names_are_refused_at_once(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(WrongUse, match="name fewer"):
        opened(tmp_path, f"{pattern}.tar")


def test_what_such_tars_do_not_hold(tars: Path) -> None:
    with pytest.raises(WrongUse, match="such tars have no triplets"):
        open_examples([f"tars:{tars}/cc"], "triplets", index=tars)
    with pytest.raises(WrongUse, match="no split 'train'"):
        open_examples([f"tars:{tars}/cc"], "pairs", "train", index=tars)
    with pytest.raises(WrongUse, match="has no negative_text"):
        opened(tars, "cc").require(["negative_text"])
    assert data_place("tars:s3://b/{0..9}.tar*3") == DataPlace("tars:s3://b/{0..9}.tar", "", 3, "s3://b/{0..9}.tar")
