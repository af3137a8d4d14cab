"""Tars of others are trained on where they lie: patterns, an index beside OUT, what gives no example."""

import io
import json
import logging
import random
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import Image

from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.shards.storage.member_headers import MemberHeaders
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.contracts import DataPlace, data_place
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.neighbours import image_numbers


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


def test_a_tar_that_changes_ends_the_training(tars: Path) -> None:
    examples = opened(tars, "cc")
    written(tars / "cc/00001.tar", range(20, 24))
    with pytest.raises(BuildFailed, match="rebuilt since this training began"):
        examples.check_unchanged()
    assert opened(tars, "cc").digest() != examples.digest()


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def test_samples_without_image_or_caption_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tarfile.open(tmp_path / "odd.tar", "w") as tar:
        add(tar, "./a/whole.one.jpg", jpeg(1))  # the key ends at the first dot: an extension that is no image's
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
    assert "1 with no caption (first " in caplog.text and "odd.tar ./a/lost)" in caplog.text
    left_out = examples.facts()[0]["left_out"]
    assert left_out == {"no caption": 1, "no image": 1, "an empty image": 1, "a caption that cannot be read": 2}


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


def test_headers_that_lie_are_refused(tmp_path: Path) -> None:
    pax = tarfile.TarInfo("x")
    pax.type = tarfile.XHDTYPE
    said = b"9" * 5000 + b" path=x\n"
    pax.size = len(said)
    content = pax.tobuf(tarfile.USTAR_FORMAT) + said + bytes(-len(said) % 512) + bytes(1024)
    assert list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t")) == []
    pax.size = 3 << 30
    content = pax.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(BrokenTar, match="a name or header of 3,221,225,472 bytes"):
        list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t"))


def test_what_such_tars_do_not_hold(tars: Path) -> None:
    with pytest.raises(WrongUse, match="such tars have no triplets"):
        open_examples([f"tars:{tars}/cc"], "triplets", index=tars)
    with pytest.raises(WrongUse, match="no split 'train'"):
        open_examples([f"tars:{tars}/cc"], "pairs", "train", index=tars)
    with pytest.raises(WrongUse, match="has no negative_text"):
        opened(tars, "cc").require(["negative_text"])
    assert data_place("tars:s3://b/{0..9}.tar*3") == DataPlace("tars:s3://b/{0..9}.tar", "", 3, "s3://b/{0..9}.tar")


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_headers_are_read_as_tarfile_reads_them(tmp_path: Path, format: int) -> None:
    random_numbers = random.Random(5)
    path = tmp_path / "any.tar"
    with tarfile.open(path, "w", format=format) as tar:
        for n in range(40):
            member = tarfile.TarInfo(f"folder/{'long/' * random_numbers.randrange(18)}{n}.jpg")
            member.size, member.mtime = random_numbers.randrange(5000), random_numbers.random() * 1e9
            if format != tarfile.PAX_FORMAT:
                member.mtime = int(member.mtime)
            tar.addfile(member, io.BytesIO(bytes(member.size)))
            folder = tarfile.TarInfo(f"folder{n}")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
    content = path.read_bytes()
    with tarfile.open(path) as tar:
        expected = [(one.name, one.offset_data, one.size) for one in tar if one.isreg()]
    assert list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t")) == expected


def test_mutated_headers_are_refused_or_read(tars: Path) -> None:
    content = bytearray((tars / "cc/00000.tar").read_bytes())
    random_numbers = random.Random(11)
    for _ in range(2000):
        mutated = bytearray(content)
        for _ in range(random_numbers.randrange(1, 4)):
            mutated[random_numbers.randrange(len(mutated))] = random_numbers.randrange(256)
        held = bytes(mutated)
        try:
            found = list(MemberHeaders(lambda place, size, held=held: held[place : place + size], len(held), "t"))  # type: ignore[misc]
        except BrokenTar:
            continue
        assert all(0 <= offset <= offset + size <= len(held) for _, offset, size in found)
