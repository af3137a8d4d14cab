"""Requests that fail, are cut off or get no answer: the same bytes in the end, or a clear error."""

import errno
import itertools
import os
from typing import Any

import pytest

from tests.flaky_s3 import CUT, SILENT, Flaky
from twinset.shards.storage.object_store import PART
from twinset.shards.storage.store import Store
from twinset.stages.make import HOPELESS

pytestmark = pytest.mark.slow


def test_an_object_is_created_once(bucket: str, flaky: Flaky) -> None:
    """By the store itself, whatever two builds do in one moment; an answer that was lost on the way is no other's."""
    store = Store(bucket)
    lost = itertools.chain([True], itertools.repeat(False))
    flaky.fails = lambda method, path: method == "PUT" and next(lost)
    assert store.create("claim", b"mine")
    assert not store.create("claim", b"another's")
    assert store.create("claim", b"mine") and store.read("claim") == b"mine"


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
