"""Requests that fail, are cut off or get no answer: the same bytes in the end, or a clear error."""

import contextlib
import errno
import itertools
import os
import re
from typing import Any

import fsspec
import pytest

from tests.flaky_s3 import BUSY, CUT, DROPPED, SILENT, Flaky
from tests.shards.storage.conftest import SCENES, Files, WholeBuild
from twinset.shards.storage.object_store import PART
from twinset.shards.storage.store import Store
from twinset.stages.making.make import HOPELESS

pytestmark = pytest.mark.slow


def test_an_object_is_created_once(bucket: str, flaky: Flaky) -> None:
    """By the store itself, whatever two builds do in one moment; an answer that was lost on the way is no other's."""
    store = Store(bucket)
    lost = itertools.chain([True], itertools.repeat(False))
    flaky.fails = lambda method, path: method == "PUT" and next(lost)
    assert store.create("claim", b"mine")
    assert not store.create("claim", b"another's")
    assert store.create("claim", b"mine") and store.read("claim") == b"mine"


@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD"])
def test_a_bucket_that_answers_500_twice_still_ends_well(
    bucket: str, flaky: Flaky, whole_build: WholeBuild, stored: Files, local: Files, method: str
) -> None:
    failed: list[str] = []

    def twice(asked: str, path: str) -> bool:
        if asked == method and "_meta" in path and len(failed) < 2:
            failed.append(path)
            return True
        return False

    flaky.fails = twice
    whole_build(Store(bucket))
    assert len(failed) == 2
    assert stored() == local()


def test_one_request_in_twenty_may_fail(
    bucket: str, flaky: Flaky, whole_build: WholeBuild, stored: Files, local: Files
) -> None:
    number = itertools.count(1)
    flaky.fails = lambda method, path: next(number) % 20 == 0
    flaky.failures = itertools.cycle([500, 503, DROPPED])
    whole_build(Store(bucket))
    assert next(number) > 5 * 20
    assert stored() == local()


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
    bucket: str, flaky: Flaky, whole_build: WholeBuild, stored: Files, local: Files, monkeypatch: Any
) -> None:
    monkeypatch.setattr("twinset.shards.storage.object_store.HASTE", 0.5)
    monkeypatch.setattr("s3fs.S3FileSystem.read_timeout", 1)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 3)
    number = itertools.count(1)
    flaky.fails, flaky.failures = lambda method, path: next(number) % 10 == 0, itertools.cycle([SILENT, CUT, BUSY])
    whole_build(Store(bucket))
    assert stored() == local()
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


def test_a_bucket_that_keeps_answering_500_ends_in_an_error_without_receipt(
    bucket: str, flaky: Flaky, stored: Files, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    store = Store(bucket)
    build = planned_build(store, "eq-x", SCENES, shard_size=1)
    flaky.fails = lambda method, path: method == "PUT" and "_meta/rows" in path
    with pytest.raises(OSError, match=r"eq-x/_meta/rows/00000\.parquet") as caught:
        build.make(0)
    assert not isinstance(caught.value, FileNotFoundError | PermissionError)
    assert "is the store reachable" in str(caught.value) and "resume" in str(caught.value)
    assert not any("receipts" in name or "rows" in name for name in stored())
    assert build.state().todo == [0, 1, 2, 3]
    flaky.fails = lambda method, path: False
    build.make_all()
    assert build.state().todo == []
