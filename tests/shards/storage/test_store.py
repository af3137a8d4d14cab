"""Stores, local or a bucket: files are whole or absent, and trouble says what to do."""

import contextlib
import errno
import itertools
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.flaky_s3 import CUT, SILENT, Flaky
from twinset.contracts.errors import WrongUse
from twinset.shards.storage.object_store import PART
from twinset.shards.storage.spool import SPOOL, temporary_folder
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import new_folder, whole_file
from twinset.stages.make import HOPELESS


@pytest.fixture(params=["folder", "memory", pytest.param("bucket", marks=pytest.mark.slow)])
def store(request: Any, tmp_path: Path) -> Store:
    if request.param == "bucket":
        return Store(request.getfixturevalue("bucket"))
    return Store(f"file://{tmp_path}/out/" if request.param == "folder" else f"memory://{tmp_path.name}/out")


def test_what_is_written_is_read_back(store: Store) -> None:
    assert (store.size("a/b"), store.names("a"), store.listing("a")) == (None, [], {})
    for path, content in [("a/b/c", b"{}"), ("a/b/none", b""), ("a/d", b"1"), ("a/b/c", b"22")]:
        store.write(path, content)
    assert (store.names("a"), store.names("a/b"), store.names("a/d")) == (["b", "d"], ["c", "none"], [])
    assert (store.read("a/b/c"), store.size("a/b/c"), store.read("a/b/none")) == (b"22", 2, b"")
    assert store.read_part("a/b/c", 1, 5) == b"2" and store.read_part("a/b/c", 1, 0) == b""
    with store.open("a/b/c") as stream:
        assert stream.seek(1) == 1 and stream.read() == b"2"
    listed = store.listing("a/b")
    assert {name: entry.size for name, entry in listed.items()} == {"c": 2, "none": 0}
    store.write("a/b/c", b"33")
    changed = store.listing("a/b")
    assert changed["none"] == listed["none"] and changed["c"] != listed["c"] and store.listing("a/d") == {}
    for _ in range(2):
        store.remove("a/b/c")
    assert list(store.listing("a/b")) == ["none"]
    for read in (store.read, store.sha256):
        with pytest.raises(FileNotFoundError):
            read("a/b/c")


@pytest.mark.slow
def test_a_bucket_that_cannot_be_reached_says_so(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="does the bucket exist"):
        Store("s3://no-such-bucket-here/out").write("a", b"1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, os.devnull)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(OSError, match=r"credentials"):
        Store(bucket).write("a", b"1")


def test_the_sweep_takes_what_dead_processes_here_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In OUT; and in the temporary folder, where models are opened and objects wait to be uploaded."""
    ended, here = subprocess.Popen(["true"]), socket.gethostname()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # ended, but nobody has asked how
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    uses: list[tuple[Path, str, Any]] = [
        (tmp_path / SPOOL, "", lambda: contextlib.nullcontext(Store(str(tmp_path)).sweep())),
        (tmp_path / "tmp", "twinset-", temporary_folder),
    ]
    for parent, prefix, sweep in uses:
        dead = [parent / f"{prefix}{here}.{process}.abc123" for process in (ended.pid, 10**30)]
        kept = [parent / name for name in (f"{prefix}{here}.{os.getpid()}.a", f"elsewhere-{here}.{ended.pid}.abc123")]
        for folder in (*dead, *kept):
            (folder / "deep").mkdir(parents=True, exist_ok=True)
        with sweep():
            assert all(folder.exists() for folder in kept) and not any(folder.exists() for folder in dead)


@pytest.mark.parametrize("link", ["eq-x", "eq-x/test", SPOOL])
def test_nothing_is_written_or_removed_through_a_link_below_out(tmp_path: Path, link: str) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    kept = outside / ("test/00000.tar" if link == "eq-x" else "00000.tar")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"mine")
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(outside)
    store, path = Store(str(out)), f"{SPOOL}/00000.tar" if link == SPOOL else "eq-x/test/00000.tar"
    assert store.read(path) == b"mine"  # a downloaded data set may be made of links
    for change in (lambda: store.write(path, b"new"), lambda: store.remove(path)):
        with pytest.raises(WrongUse, match=f"out/{link}: a link to {outside}; nothing is written through a link"):
            change()
    assert [path for path in outside.rglob("*") if path.is_file()] == [kept] and kept.read_bytes() == b"mine"
    (out / "file").symlink_to(kept)
    if link != SPOOL:
        store.write("file", b"new")  # a link in place of a file is replaced
        assert (out / "file").read_bytes() == b"new" and kept.read_bytes() == b"mine"


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match="full") as raised, whole_file(path) as unfinished:
        unfinished.write_text("half")
        raise OSError(errno.ENOSPC, "full")
    assert raised.value.__notes__ == [f"{path}: free some room, or name another folder, and run the same command again"]
    with whole_file(path):
        pass  # nothing is written
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]


def test_a_new_folder_takes_its_place_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "new", "--out") as unfinished:
        (unfinished / "half").write_text("half")
        raise ZeroDivisionError
    assert [*tmp_path.iterdir()] == []
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for folder in (tmp_path / "new", Path(".")):
        with new_folder(folder, "--out") as unfinished:
            (unfinished / "a").write_text("b")
            assert Path.cwd() == tmp_path / "empty" and not (folder / "a").exists()
    assert (tmp_path / "new/a").read_text() == "b" == (tmp_path / "empty/a").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"new", "empty"}
    for folder, problem in {"new": "not an empty folder", "new/a/b": "cannot be made"}.items():
        with pytest.raises(WrongUse, match=f"{problem}.*; name another --out"), new_folder(tmp_path / folder, "--out"):
            raise AssertionError


CHECKOUT = Path(__file__).resolve().parents[3]
CHAINS = ("reference://::file:///etc", "simplecache::s3://bucket/out", "tar://x::s3://b/a.tar", "s3://b/a::file:///etc")
OTHERS = ("reference", "local", "sftp", "ssh", "ftp", "github", "git", "hf", "hdfs", "jupyter", "cached", "data", "S3")


@pytest.mark.parametrize("url", [*CHAINS, *(f"{scheme}://example.org/out" for scheme in OTHERS)])
def test_a_url_of_another_scheme_or_a_chain_is_not_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`reference://…::file:///etc/hostname` read any local file; sftp and github log in with the user's own keys."""
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_, **__: pytest.fail("fsspec was asked"))
    with pytest.raises(WrongUse, match=r"not a URL that is opened; name a folder, or one URL that begins with s3://, "):
        Store(url)


def test_one_module_hands_urls_to_fsspec() -> None:
    """A second way to fsspec would not ask for the scheme."""
    folders = [*(CHECKOUT / "src/twinset").glob("*/"), CHECKOUT / "demo", CHECKOUT / "extras/twinset_extras"]
    imports = re.compile(r"^\s*(import|from) (fsspec|s3fs|gcsfs|adlfs|smart_open)\b", re.MULTILINE)
    using = [path for folder in folders for path in folder.rglob("*.py") if imports.search(path.read_text("utf-8"))]
    assert using == [CHECKOUT / "src/twinset/shards/storage/object_store.py"]


@pytest.mark.slow
def test_an_object_is_created_once(bucket: str, flaky: Flaky) -> None:
    """By the store itself, whatever two builds do in one moment; an answer that was lost on the way is no other's."""
    store = Store(bucket)
    lost = itertools.chain([True], itertools.repeat(False))
    flaky.fails = lambda method, path: method == "PUT" and next(lost)
    assert store.create("claim", b"mine")
    assert not store.create("claim", b"another's")
    assert store.create("claim", b"mine") and store.read("claim") == b"mine"


@pytest.mark.slow
def test_a_large_object_is_read_in_parts_and_named_where_it_cannot_be(bucket: str, flaky: Flaky) -> None:
    content = os.urandom(3 * PART + 7)
    Store(bucket).write("large", content)
    number = itertools.count(1)
    flaky.fails = lambda method, path: method == "GET" and next(number) % 6 != 0
    flaky.failures = itertools.cycle([500, CUT])
    flaky.requests = []
    with Store(bucket).open("large") as stream:
        assert stream.read(10) == content[:10] and stream.tell() == 10
        assert stream.seek(-20, 2) == len(content) - 20 and stream.read() == content[-20:]
        assert stream.seek(0) == 0 and stream.read() == content and stream.read(1) == b""
        assert len(flaky.requests) < 60, "parts of some MB, each asked for six times"
    flaky.fails = lambda method, path: False
    with Store(bucket).open("large") as stream:
        flaky.fails = lambda method, path: True
        stream.seek(PART)
        with pytest.raises(OSError, match=r"is the store reachable .*large"):
            stream.read(5)


@pytest.mark.slow
def test_a_silent_store_is_named_after_the_chosen_attempts(bucket: str, flaky: Flaky, monkeypatch: Any) -> None:
    monkeypatch.setattr("s3fs.S3FileSystem.read_timeout", 0.3)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    flaky.fails, flaky.failures = lambda method, path: True, itertools.repeat(SILENT)
    with pytest.raises(OSError, match="is the store reachable") as caught:
        Store(bucket).write("a", b"1")
    assert caught.value.errno == errno.ETIMEDOUT in HOPELESS
    headers = flaky.requests[-1][2]
    assert "cfg/retry-mode#adaptive" in str(headers["User-Agent"])
    assert str(headers["amz-sdk-request"]).endswith("attempt=2; max=2")
