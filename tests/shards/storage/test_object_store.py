"""A bucket of an S3 server: what it holds, and what is said where it cannot be reached."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from tests.flaky_s3 import Flaky
from tests.shards.storage.conftest import Files, WholeBuild
from twinset.shards.storage.object_store import explaining
from twinset.shards.storage.store import Store
from twinset.stages.finalise import disagreeing
from twinset.stages.verify import verify_stage


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


def test_an_error_of_the_client_is_numbered_once() -> None:
    with pytest.raises(OSError) as caught, explaining("s3://bucket/name"):
        raise OSError(errno.EREMOTEIO, "Remote I/O error")
    assert str(caught.value).count("[Errno") == 1 and "Remote I/O error; is the store reachable" in str(caught.value)
