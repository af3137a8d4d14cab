"""A folder is there whole or not at all, and the first to finish wins.

Headers of tars that others wrote: the same members as tarfile finds, and nothing that a tar does not hold.
A bucket of an S3 server: what it holds, and what is said where it cannot be reached.
Attack: a Parquet file of a few hundred bytes whose rows expand to gigabytes.
Headers of tars read without tarfile: the same members, and nothing that a shard never holds.
"""

import io
import os
import random
import socket
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset

from tests.flaky_s3 import Flaky
from tests.shards.storage.conftest import Files, WholeBuild
from twinset.shards.storage.member_headers import member_headers, member_places, member_slices, read_members
from twinset.shards.storage.parquet_reader import LONGEST_VALUE, ROWS, batches
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, TarWriter
from twinset.shards.storage.whole_file import atomic_folder
from twinset.stages.finalise import disagreeing
from twinset.stages.verify import verify_stage

REMEDY = "name another folder"

DIES = """
import os, pathlib
from twinset.shards.storage.whole_file import atomic_folder
with atomic_folder(pathlib.Path({folder!r}), "") as unfinished:
    (unfinished / "half").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_a_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "things"
    with atomic_folder(folder, REMEDY) as unfinished:
        (unfinished / "deep").mkdir()
        (unfinished / "deep" / "one").write_text("1")
        assert not folder.exists()
    assert (folder / "deep" / "one").read_text() == "1" and stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert list(folder.parent.iterdir()) == [folder]


def test_nothing_appears_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "things", REMEDY) as unfinished:
        (unfinished / "one").write_text("1")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_first_to_finish_wins(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "things", REMEDY) as slow:
        (slow / "by").write_text("slow")
        with atomic_folder(tmp_path / "things", REMEDY) as quick:
            (quick / "by").write_text("quick")
    assert (tmp_path / "things" / "by").read_text() == "quick" and len(list(tmp_path.iterdir())) == 1


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "things").touch()
    with pytest.raises(OSError, match="things"), atomic_folder(tmp_path / "things", REMEDY):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["things"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = DIES.format(folder=str(tmp_path / "things"))
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -9
    assert len(os.listdir(tmp_path)) == 1 and not (tmp_path / "things").exists()
    with atomic_folder(tmp_path / "things", REMEDY):
        pass
    assert os.listdir(tmp_path) == ["things"]


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for folder in (tmp_path / "file/things", Path("/proc/twinset/things")):
        with pytest.raises(OSError, match=r"file|twinset") as caught, atomic_folder(folder, REMEDY):
            pass
        assert any(REMEDY in note for note in caught.value.__notes__)


def test_headers_that_lie_are_refused(tmp_path: Path) -> None:
    pax = tarfile.TarInfo("x")
    pax.type = tarfile.XHDTYPE
    said = b"9" * 5000 + b" path=x\n"
    pax.size = len(said)
    content = pax.tobuf(tarfile.USTAR_FORMAT) + said + bytes(-len(said) % 512) + bytes(1024)
    with pytest.raises(BrokenTar, match="a damaged pax header"):
        list(member_headers(io.BytesIO(content), "t"))
    pax.size = 3 << 30
    content = pax.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(BrokenTar, match="a name or header of 3,221,225,472 bytes"):
        list(member_headers(io.BytesIO(content), "t"))


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
    assert list(member_headers(io.BytesIO(content), "t")) == expected


def test_mutated_headers_are_refused_or_read(tmp_path: Path) -> None:
    with webdataset.TarWriter(str(tmp_path / "any.tar")) as tar:  # a pax header before each member
        for n in range(4):
            tar.write(
                {"__key__": f"{n:09d}", "jpg": bytes(700), "json": {"caption": f"picture {n}"}, "txt": f"picture {n}"}
            )
    content = bytearray((tmp_path / "any.tar").read_bytes())
    random_numbers = random.Random(11)
    for _ in range(2000):
        mutated = bytearray(content)
        for _ in range(random_numbers.randrange(1, 4)):
            mutated[random_numbers.randrange(len(mutated))] = random_numbers.randrange(256)
        held = bytes(mutated)
        try:
            found = list(member_headers(io.BytesIO(held), "t"))
        except BrokenTar:
            continue
        assert all(0 <= offset <= offset + size <= len(held) for _, offset, size in found)


def test_files_of_a_bucket_behave_like_local_ones(bucket: str) -> None:
    store = Store(bucket)
    assert (store.size("a/b"), store.names("a"), store.names("")) == (None, [], [])
    store.write("a/b/c.json", b"{}")
    store.write("a/b/c.json", b"[1]")
    store.write("a/d.json", b"")
    assert (store.read("a/b/c.json"), store.size("a/b/c.json"), store.size("a/d.json")) == (b"[1]", 3, 0)
    assert (store.names("a"), store.names("a/b"), store.names("")) == (["b", "d.json"], ["c.json"], ["a"])
    with store.open("a/b/c.json") as stream:
        stream.seek(1)
        assert stream.read() == b"1]"
    store.remove("a/b/c.json")
    store.remove("a/b/c.json")
    assert store.names("a/b") == []
    for read in (store.read, store.sha256):
        with pytest.raises(FileNotFoundError):
            read("a/b/c.json")


def test_a_listing_of_a_bucket_takes_one_request(bucket: str, flaky: Flaky) -> None:
    store = Store(bucket)
    assert store.listing("a") == store.listing("") == {}
    for number in range(30):
        store.write(f"a/{number:02d}", b"x" * number)
    store.write("a/below/file", b"")
    flaky.requests.clear()
    listed = store.listing("a")
    assert [(method, "list-type=2" in path) for method, path, _ in flaky.requests] == [("GET", True)]
    assert {name: entry.size for name, entry in listed.items()} == {f"{number:02d}": number for number in range(30)}
    assert store.listing("a") == listed and store.listing("a/00") == {} and store.names("a/00") == []
    store.write("a/07", b"y" * 7)
    changed = store.listing("a")
    assert {name for name in listed if listed[name] != changed[name]} == {"07"}
    store.remove("a/07")
    assert "07" not in store.listing("a")


def test_a_dataset_in_a_bucket_equals_the_local_one(
    bucket: str, whole_build: WholeBuild, stored: Files, local: Files
) -> None:
    build = whole_build(Store(bucket))
    assert (found := stored()) == local() and sum(name.endswith(".tar") for name in found) == 2
    state = build.state()
    assert state.todo == [] and disagreeing(build.store, state)[1] == []
    assert list(verify_stage(build.store, state)) == []


def test_what_a_killed_upload_left_in_the_temporary_folder_is_swept(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"twinset-{socket.gethostname()}.{ended.pid}.abc"
    left.mkdir()
    mine = tmp_path / "twinset-notes"
    mine.mkdir()
    store = Store(bucket)
    with store.spool() as spool:
        store.sweep()
        assert spool.parent == tmp_path and spool.is_dir() and mine.is_dir() and not left.exists()


def test_a_bucket_that_is_not_there_and_a_store_that_is_gone_say_so(
    bucket: str, flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match="does the bucket exist"):
        Store("s3://no-such-bucket-here/out").write("a", b"1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        with pytest.raises(OSError, match="is the store reachable"):
            Store(bucket).write("a", b"1")


def test_missing_credentials_are_named(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, os.devnull)
    with pytest.raises(OSError, match=r"credentials"):
        Store(bucket).write("a", b"1")


LONG = "x" * 20_000


def written(folder: Path, columns: dict[str, Any], **settings: Any) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", **settings)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("column", [[LONG] * 65_536, [{"bytes": LONG.encode()}] * 65_536], ids=["text", "struct"])
def test_a_value_that_is_repeated_is_expanded_a_few_rows_at_a_time(tmp_path: Path, column: Any) -> None:
    """The proof of S11: 625 bytes, of which a batch of the usual size took 1.3 GB."""
    path = written(tmp_path, {"a": column})
    assert path.stat().st_size < 2_000
    rows = 0
    for batch in batches(path, ["a"]):
        assert batch.nbytes < 1.1 * ROWS * LONGEST_VALUE
        rows += batch.num_rows
    assert rows == 65_536


@pytest.mark.parametrize("value", ["x" * (2 << 20), ["a", "x" * (2 << 20)]], ids=["text", "list"])
def test_a_long_value_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(pa.ArrowException, match="holds a value of 2,097,152 bytes"):
        list(batches(written(tmp_path, {"a": [value]}), ["a"]))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data_page_version": "2.0"},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        {"row_group_size": 1000, "data_page_size": 100},
    ],
)
def test_ordinary_files_are_read_as_they_are(tmp_path: Path, settings: dict[str, Any]) -> None:
    count = 5000
    columns: dict[str, Any] = {"a": [f"a man {one}" if one % 7 else None for one in range(count)]}
    if "column_encoding" not in settings:
        columns["number"] = list(range(count))
        columns["listed"] = [["x", str(one), None] if one % 3 else None for one in range(count)]
        columns["image"] = [{"bytes": bytes([one % 256]), "path": None} if one % 2 else None for one in range(count)]
    path = written(tmp_path, columns, **settings)
    assert pa.Table.from_batches(batches(path, list(columns))).to_pylist() == pa.table(columns).to_pylist()
    if "image" in columns:
        (first, *_) = batches(path, ["image.bytes"], 16)
        assert first.num_rows == 16 and first.column("image").to_pylist()[1] == {"bytes": b"\1"}


def test_damaged_pages_are_an_error_of_arrow(tmp_path: Path) -> None:
    whole = written(tmp_path, {"a": [f"a man {one}" for one in range(200)]}).read_bytes()
    path = tmp_path / "damaged.parquet"
    cut = [whole[:at] + whole[at + size :] for size in (1, 4, 8) for at in range(4, 400)]
    for content in [*(whole[:at] + b"\xff" + whole[at + 1 :] for at in range(4, 400, 5)), *cut]:
        path.write_bytes(content)
        try:
            list(batches(path, ["a"]))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            assert str(error)


@pytest.fixture
def tar(tmp_path: Path) -> bytes:
    with TarWriter(tmp_path / "tar") as written:
        for number, size in enumerate((0, 1, 511, 512, 513, 70_000)):
            written.add(f"key-{number}.image0.jpg", bytes([number + 1]) * size)
    return (tmp_path / "tar").read_bytes()


def slices(content: bytes) -> list[tuple[str, int, int]]:
    return list(member_slices(io.BytesIO(content), "TAR"))


def test_members_lie_where_tarfile_finds_them(tar: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        assert slices(tar) == [(one.name, one.offset_data, one.size) for one in members]


def test_every_changed_byte_of_a_header_is_noticed(tar: bytes) -> None:
    for byte in range(512):
        with pytest.raises(BrokenTar, match="TAR: byte 0: "):
            slices(bytes([*tar[:byte], tar[byte] ^ 0x55, *tar[byte + 1 :]]))


@pytest.mark.parametrize("length", [0, 100, 512, 1024, 1536, 60_000])
def test_a_tar_that_is_cut_short_is_noticed(tar: bytes, length: int) -> None:
    with pytest.raises(BrokenTar, match="cut short"):
        slices(tar[:length])


@pytest.mark.parametrize(
    ("name", "fields"),
    [("../x.jpg", {}), ("a.txt", {"type": tarfile.SYMTYPE}), ("a.jpg", {"size": 1 << 30}), ("K.jpg", {})],
)
def test_what_a_shard_never_holds_is_refused(name: str, fields: dict[str, object]) -> None:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    with pytest.raises(BrokenTar, match=r"not a field of a sample|more than the tar"):
        slices(member.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))


def extended(comment: bytes, size: int | None = None, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """A header that says more of the next member, and what it says."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, len(comment) if size is None else size
    return member.tobuf(tarfile.GNU_FORMAT) + comment + bytes(-len(comment) % 512)


@pytest.mark.parametrize("read", [read_members, member_places])
@pytest.mark.parametrize(
    "headers",
    [
        extended(b"", 1 << 60),
        extended(b"", 1 << 60, tarfile.GNUTYPE_LONGNAME),
        extended(b"22 GNU.sparse.map=a,b\n"),
        extended(b"9" * 30 + b" a=b\n"),
        extended(b"9" * 5000 + b" a=b\n"),
    ],
    ids=["an exabyte of comments", "of a name", "map", "length", "longer than int() takes"],
)
def test_numbers_that_headers_claim_end_in_no_traceback(
    headers: bytes, read: Callable[[BinaryIO, str], Iterator[object]], tmp_path: Path
) -> None:
    (tmp_path / "tar").write_bytes(headers + tarfile.TarInfo("a.txt").tobuf() + bytes(1024))
    with (tmp_path / "tar").open("rb") as stream, pytest.raises(BrokenTar, match=r"TAR: .*build this shard again"):
        list(read(stream, "TAR"))
