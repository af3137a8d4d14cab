"""A real S3 server (moto's, in a process of its own), and one that fails: the same bytes, or a clear error."""

import contextlib
import errno
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import fsspec
import pytest
from botocore.retries.standard import ExponentialBackoff

from tests.flaky_s3 import BUSY, CUT, DROPPED, SILENT, Flaky
from twinset.shards.storage.object_store import PART, explaining
from twinset.shards.storage.store import Store
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.finalise import disagreeing, remove_leftovers
from twinset.stages.run_here import HOPELESS
from twinset.stages.verify import verify_stage

SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2), ("gone", 8, 9)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of an S3 server on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            pytest.fail("moto's server did not start within 30 s")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def flaky(server: str) -> Iterator[Flaky]:
    proxy = Flaky(server)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    yield proxy
    proxy.shutdown()
    proxy.server_close()
    thread.join(10)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore waits a hundredth of its time, up to seconds, before it repeats a request."""
    chosen = ExponentialBackoff.delay_amount
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: chosen(self, context) / 100)


@pytest.fixture
def bucket(server: str, flaky: Flaky, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket, reached through the proxy by what a user would set: credentials and AWS_ENDPOINT_URL."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": flaky.url,
    }.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid.uuid4().hex}"
    boto3.client("s3", endpoint_url=server).create_bucket(Bucket=name)
    # fsspec keeps one connection a set of arguments, which would still point to an earlier test's proxy.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield f"s3://{name}/datasets/small"
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def objects(server: str, url: str) -> dict[str, bytes]:
    """Path below the URL -> content of all objects there, without the logs."""
    name, _, prefix = url.removeprefix("s3://").partition("/")
    client = boto3.client("s3", endpoint_url=server)
    listed = client.list_objects_v2(Bucket=name).get("Contents", [])
    found = {one["Key"]: client.get_object(Bucket=name, Key=one["Key"])["Body"].read() for one in listed}
    assert all(key.startswith(f"{prefix}/") for key in found)
    below = {key.removeprefix(f"{prefix}/"): content for key, content in found.items()}
    return {key: content for key, content in below.items() if "/_meta/log/" not in key}


def whole_build(planned_build: Any, store: Store) -> Any:
    build = planned_build(store, "eq-x", SCENES, shard_size=1)
    build.make_all()
    drop_duplicates(store, {"eq-x": build.indexed()})
    build.indexed()
    remove_leftovers(store, build.state())
    store.sweep()
    return build


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


def test_an_object_is_created_once(bucket: str, flaky: Flaky) -> None:
    """By the store itself, whatever two builds do in one moment; an answer that was lost on the way is no other's."""
    store = Store(bucket)
    lost = itertools.chain([True], itertools.repeat(False))
    flaky.fails = lambda method, path: method == "PUT" and next(lost)
    assert store.create("claim", b"mine")
    assert not store.create("claim", b"another's")
    assert store.create("claim", b"mine") and store.read("claim") == b"mine"


def test_an_error_of_the_client_is_numbered_once() -> None:
    with pytest.raises(OSError) as caught, explaining("s3://bucket/name"):
        raise OSError(errno.EREMOTEIO, "Remote I/O error")
    assert str(caught.value).count("[Errno") == 1 and "Remote I/O error; is the store reachable" in str(caught.value)


def test_a_dataset_in_a_bucket_equals_the_local_one(
    bucket: str, server: str, tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    whole_build(planned_build, Store(str(tmp_path / "out")))
    build = whole_build(planned_build, Store(bucket))
    found = objects(server, bucket)
    assert found == files_below(tmp_path / "out")
    assert sum(name.endswith(".tar") for name in found) == 2
    state = build.state()
    assert state.todo == [] and disagreeing(build.store, state)[1] == []
    assert list(verify_stage(build.store, state)) == []


def test_what_a_killed_upload_left_in_the_temporary_folder_is_swept(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    left = tmp_path / f"twinset-{socket.gethostname()}.{ended.pid}.abc"
    left.mkdir()
    mine = tmp_path / "twinset-notes"
    mine.mkdir()
    store = Store(bucket)
    with store.spool() as spool:
        store.sweep()
        assert spool.parent == tmp_path and spool.is_dir() and mine.is_dir() and not left.exists()


@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD"])
def test_a_bucket_that_answers_500_twice_still_ends_well(
    bucket: str, flaky: Flaky, server: str, tmp_path: Path, planned_build: Any, files_below: Any, method: str
) -> None:
    whole_build(planned_build, Store(str(tmp_path / "out")))
    failed: list[str] = []

    def twice(asked: str, path: str) -> bool:
        if asked == method and "_meta" in path and len(failed) < 2:
            failed.append(path)
            return True
        return False

    flaky.fails = twice
    whole_build(planned_build, Store(bucket))
    assert len(failed) == 2
    assert objects(server, bucket) == files_below(tmp_path / "out")


def test_one_request_in_twenty_may_fail(
    bucket: str, flaky: Flaky, server: str, tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    whole_build(planned_build, Store(str(tmp_path / "out")))
    number = itertools.count(1)
    flaky.fails = lambda method, path: next(number) % 20 == 0
    flaky.failures = itertools.cycle([500, 503, DROPPED])
    whole_build(planned_build, Store(bucket))
    assert next(number) > 5 * 20
    assert objects(server, bucket) == files_below(tmp_path / "out")


def test_a_large_object_is_read_with_patience_and_named_where_that_is_not_enough(bucket: str, flaky: Flaky) -> None:
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # clients that gave up before retry less
    content = os.urandom(3 * PART + 7)
    Store(bucket).write("large", content)
    number = itertools.count(1)
    flaky.fails = lambda method, path: method == "GET" and next(number) % 6 != 0  # more than the hasty client tries
    flaky.requests = []
    with Store(bucket).open("large") as stream:
        assert stream.read(10) == content[:10] and stream.tell() == 10
        assert stream.seek(-20, 2) == len(content) - 20 and stream.read() == content[-20:]
        assert stream.seek(0) == 0 and stream.read() == content and stream.read(1) == b""
        assert len(flaky.requests) < 60, "parts of some MB, each asked for six times"
        flaky.fails = lambda method, path: True
        stream.seek(PART)
        with pytest.raises(OSError, match=r"is the store reachable .*large"):
            stream.read()


def test_a_silent_store_is_asked_again_soon_and_one_that_stays_silent_is_named(
    bucket: str, flaky: Flaky, server: str, tmp_path: Path, planned_build: Any, files_below: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("twinset.shards.storage.object_store.HASTE", 0.5)
    monkeypatch.setattr("s3fs.S3FileSystem.read_timeout", 1)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 3)
    whole_build(planned_build, Store(str(tmp_path / "out")))
    number = itertools.count(1)
    flaky.fails, flaky.failures = lambda method, path: next(number) % 10 == 0, itertools.cycle([SILENT, CUT, BUSY])
    whole_build(planned_build, Store(bucket))
    assert objects(server, bucket) == files_below(tmp_path / "out")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    flaky.fails, flaky.failures = lambda method, path: True, itertools.repeat(SILENT)
    with pytest.raises(OSError, match="is the store reachable") as caught:
        Store(bucket).write("a", b"1")
    assert caught.value.errno == errno.ETIMEDOUT in HOPELESS


def attempts(flaky: Flaky, bucket: str) -> tuple[str, str]:
    """How a request that fails four times is repeated: botocore's own words on the last, and the mode it names."""
    number, flaky.requests = itertools.count(), []
    flaky.fails = lambda method, path: next(number) < 4
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with contextlib.suppress(OSError):
        Store(bucket).write("a", b"1")
    headers = flaky.requests[-1][2]
    mode = re.search(r"cfg/retry-mode#(\w+)", str(headers["User-Agent"]))
    assert mode is not None
    return str(headers["amz-sdk-request"]).partition("attempt=")[2], mode[1]


def test_requests_are_tried_ten_times_unless_the_user_says_otherwise(
    bucket: str, flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first three in haste."""
    assert attempts(flaky, bucket) == ("2; max=10", "adaptive")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"retries": {"total_max_attempts": 4}}})
    assert attempts(flaky, bucket)[0] == "4; max=4"
    monkeypatch.delitem(fsspec.config.conf, "s3")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    monkeypatch.setenv("AWS_RETRY_MODE", "standard")
    assert attempts(flaky, bucket) == ("3; max=3", "standard")


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


@pytest.mark.timeout(200)
def test_a_bucket_that_keeps_answering_500_ends_in_an_error_without_receipt(
    bucket: str, flaky: Flaky, server: str, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    store = Store(bucket)
    build = planned_build(store, "eq-x", SCENES, shard_size=1)
    flaky.fails = lambda method, path: method == "PUT" and "_meta/rows" in path
    with pytest.raises(OSError, match=r"eq-x/_meta/rows/00000\.parquet") as caught:
        build.make(0)
    assert not isinstance(caught.value, FileNotFoundError | PermissionError)
    assert "is the store reachable" in str(caught.value) and "resume" in str(caught.value)
    assert not any("receipts" in name or "rows" in name for name in objects(server, bucket))
    assert build.state().todo == [0, 1, 2, 3]
    flaky.fails = lambda method, path: False
    build.make_all()
    assert build.state().todo == []


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
