"""Folders of captions: shards of img2dataset, tars without tables, and texts beside images."""

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.generators.captions.reading import read
from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_img2dataset_as_files_says_what_was_not_downloaded(tmp_path: Path) -> None:
    rows = [
        {"url": f"http://x.org/{n}.jpg", "caption": "A dog.", "key": f"00000000{n}", "status": status}
        for n, status in enumerate(["success", "failed_to_download", "failed_to_resize"])
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "00000.parquet")
    kind, captions, left_out = read(tmp_path)
    assert (kind, [image_id for _, image_id, _, _ in captions]) == ("parquet", ["000000000"])
    assert left_out == [("row 2", "not-downloaded"), ("row 3", "not-resized")]


def test_records_of_a_tar_are_read_as_lines_of_json_are(tmp_path: Path) -> None:
    members = {"a.jpg": b"x", "a.json": b'{"caption": "A cat.", "caption": "A dog."}', "b.jpg": b"x"}
    write_tar(tmp_path / "0.tar", {**members, "b.txt": b"\xef\xbb\xbfA bird."})
    _, captions, left_out = read(tmp_path)
    assert ([text for _, _, text, _ in captions], left_out) == (["A bird."], [("0.tar a", "repeated-key")])


def test_texts_of_a_tar_come_before_its_records(tmp_path: Path) -> None:
    record = b'{"captions": ["A cat.", "A bird."], "licence": "MIT"}'
    write_tar(
        tmp_path / "0.tar", {"a.jpg": b"x", "a.json": record, "b.jpg": b"x", "b.txt": b"A dog.", "b.json": record}
    )
    assert [(one[0], one[2]) for one in read(tmp_path)[1]] == [
        ("0/a#0", "A cat."),
        ("0/a#1", "A bird."),
        ("0/b", "A dog."),
    ]
    assert {one.terms.licence for one in caption_source(tmp_path).read() if isinstance(one, Caption)} == {"MIT"}


def test_img2dataset_shards(tmp_path: Path) -> None:
    keys = [f"00000000{n}" for n in range(4)]
    rows = {
        "url": [f"http://x.org/{n}.jpg" for n in range(4)],
        "caption": ["A dog.", "A cat.", "Lost.", ""],
        "key": keys,
        "status": ["success", "failed_to_download", "success", "success"],
    }
    for stem in ("00000", "00001", "00002"):
        pq.write_table(pa.table(rows), tmp_path / f"{stem}.parquet")
    files = {f"{key}{suffix}": bytes(600) for key in (keys[0], keys[3]) for suffix in (".jpg", ".txt", ".json")}
    for stem in ("00000", "00001", "00003"):
        write_tar(tmp_path / f"{stem}.tar", files)
    with (tmp_path / "00001.tar").open("rb+") as tar:
        tar.truncate(900)
    (tmp_path / "00000_stats.json").write_text("{}")
    assert read(tmp_path) == (
        "img2dataset",
        [(keys[0], keys[0], "A dog.", f"00000.tar/{keys[0]}.jpg")],
        [
            ("00000.parquet row 2", "not-downloaded"),
            ("00000.parquet row 3", "no-image"),
            ("00000.parquet row 4", "empty-caption"),
            ("00001.tar", "broken-tar"),
            ("00002.tar", "unfinished-shard"),
            ("00003.parquet", "unfinished-shard"),
        ],
    )
    before = caption_source(tmp_path).digest()
    write_tar(tmp_path / "00001.tar", files)
    assert caption_source(tmp_path).digest() != before


BROKEN = ("img2dataset", [], [("00000.tar", "broken-tar")])


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    """The tar, not written yet, of a shard whose table has one row."""
    pq.write_table(pa.table({"caption": ["A dog."], "key": ["0"]}), tmp_path / "00000.parquet")
    return tmp_path / "00000.tar"


@pytest.mark.parametrize(
    "headers",
    [
        {"size": "-1536"},  # back to its own header
        {"size": "9" * 26},
        {"size": f"{1 << 60}"},
        {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "a,b"},
    ],
)
def test_a_tar_with_hostile_numbers_is_broken(tar: Path, headers: dict[str, str]) -> None:
    with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as written:
        member = tarfile.TarInfo("0.jpg")
        member.pax_headers = headers
        written.addfile(member)
    assert read(tar.parent) == BROKEN


def test_a_tar_with_a_damaged_header_between_others_is_broken(tar: Path) -> None:
    write_tar(tar, {"0.txt": bytes(600), "0.jpg": bytes(600)})
    with tar.open("rb+") as written:
        written.seek(1536)  # behind a header and 600 bytes
        written.write(b"1")
    assert read(tar.parent) == BROKEN


@pytest.mark.parametrize("size", [1 << 45, 1 << 70])  # bytes of a comment: more than memory, more than an address
def test_a_tar_with_an_endless_comment_is_broken(tar: Path, size: int) -> None:
    info = tarfile.TarInfo("0.jpg")
    info.type = tarfile.XHDTYPE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    tar.write_bytes(bytes(header) + bytes(10240))
    assert read(tar.parent) == BROKEN


def test_a_webdataset_without_tables(tmp_path: Path) -> None:
    for tar, parts in {
        "00000.tar": {
            "a/1.jpg": b"j", "a/1.txt": b"A dog.\n", "2.JPG": b"j", "2.json": b'{"caption": "A cat.", "split": "val"}',
            "3.txt": b"No image.", "4.png": b"p", "5.jpg": b"j", "5.txt": b"\xff", "6.jpg": b"j", "6.json": b"{",
            "7.jpg": b"j", "7.json": b'{"caption": "A.", "credit": "A \\ud800"}',
        },
        "00001.tar": {"1.webp": b"w", "1.txt": b"Again."},
    }.items():  # fmt: skip
        write_tar(tmp_path / tar, parts)
    (tmp_path / "00002.tar").write_bytes(b"no tar")
    kind, captions, left_out = read(tmp_path)
    assert (kind, captions) == (
        "webdataset",
        [
            ("00000/a/1", "00000/a/1", "A dog.", "00000.tar/a/1.jpg"),
            ("00000/2", "00000/2", "A cat.", "00000.tar/2.JPG"),
            ("00001/1", "00001/1", "Again.", "00001.tar/1.webp"),
        ],
    )
    assert left_out == [
        ("00000.tar 3", "no-image"), ("00000.tar 4", "no-caption"), ("00000.tar 5", "not-utf-8"),
        ("00000.tar 6", "not-json"), ("00000.tar 7", "not-utf-8"), ("00002.tar", "broken-tar"),
    ]  # fmt: skip


def test_further_dots_in_names_are_read_or_counted(tmp_path: Path) -> None:
    dotted = {f"photo.v1.{n}.{kind}": b"x" for n in range(2) for kind in ("jpg", "txt")}
    plain = {"1.input.jpg": b"j", "1.outputs.txt": b"A dog.", "2.jpg": b"j", "2.mask.png": b"m", "2.txt": b"A cat."}
    write_tar(tmp_path / "00000.tar", plain | dotted)
    captions = [
        ("00000/1", "00000/1", "A dog.", "00000.tar/1.input.jpg"),
        ("00000/2", "00000/2", "A cat.", "00000.tar/2.jpg"),
    ]
    assert read(tmp_path) == ("webdataset", captions, [("00000.tar photo", "several-fields")])


def test_a_tar_that_lacks_its_end_gives_no_sample(tmp_path: Path) -> None:
    write_tar(tmp_path / "00000.tar", {"1.jpg": b"j", "1.txt": b"A dog.", "2.jpg": b"j", "2.txt": b"A cat."})
    write_tar(tmp_path / "00001.tar", {"3.jpg": b"j", "3.txt": b"A cow."})
    with (tmp_path / "00000.tar").open("rb+") as tar:
        tar.truncate(2048)  # behind the first sample: two headers with a block each
    assert read(tmp_path)[1:] == ([("00001/3", "00001/3", "A cow.", "00001.tar/3.jpg")], [("00000.tar", "broken-tar")])


def test_texts_beside_images(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name, content in {"a.jpg": b"", "a.txt": b"A dog.\r\n\nA dog runs.\n", "b/c.PNG": b"", "b/c.txt": b"A cat.",
                          "lost.txt": b"Of nothing.", "mute.webp": b"", "odd.jpg": b"", "odd.txt": b"\xff",
                          "empty.jpg": b"", "empty.txt": b""}.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    assert read(tmp_path) == (
        "texts",
        [
            ("a#0", "a.jpg", "A dog.", "a.jpg"),
            ("a#1", "a.jpg", "A dog runs.", "a.jpg"),
            ("b/c#0", "b/c.PNG", "A cat.", "b/c.PNG"),
        ],
        [("empty.txt line 1", "empty-caption"), ("lost", "no-image"), ("mute", "no-caption"), ("odd.txt", "not-utf-8")],
    )
    before = caption_source(tmp_path).digest()
    (tmp_path / "b/c.txt").write_text("A cat sits.")
    assert caption_source(tmp_path).digest() != before


def test_members_of_one_name_and_those_of_macos_are_no_samples(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w") as tar:
        for name, content in [("0.jpg", b"j"), ("0.txt", b"a dog"), ("0.jpg", b"k"), ("0.txt", b"a cat")]:
            add(tar, name, content)
        for name, content in [("./._1.jpg", b"x"), ("./1.jpg", b"j"), ("./._1.txt", b"x"), ("./1.txt", b"a cow")]:
            add(tar, name, content)
    _, captions, left_out = read(tmp_path)
    assert [caption for _, _, caption, _ in captions] == ["a cow"]
    assert left_out == [("00000.tar 0", "several-fields")]


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
