"""Small builds, as the tests of the engine make them, on an S3 server that a proxy makes fail."""

import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import fsspec
import pytest
from botocore.retries.standard import ExponentialBackoff

from tests.flaky_s3 import Flaky
from tests.stages.conftest import _package, drawn, files_below, greys, media, planned_build
from tests.waiting import wait_until
from twinset.shards.storage.store import Store
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.finalise import remove_leftovers

#: Path of each file or object -> its content, without the logs.
Files = Callable[[], dict[str, bytes]]
WholeBuild = Callable[[Store], Any]
SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2), ("gone", 8, 9)]
__all__ = ["_package", "drawn", "files_below", "greys", "media", "planned_build"]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of an S3 server on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(partial(answers, port), process)
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
    thread.join()


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore waits a hundredth of its time, up to seconds, before it repeats a request."""
    chosen = ExponentialBackoff.delay_amount
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: chosen(self, context) / 100)


@pytest.fixture
def bucket(server: str, flaky: Flaky, short_waits: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
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


@pytest.fixture
def stored(server: str, bucket: str) -> Files:
    """All objects of the bucket, asked for without the proxy."""

    def found() -> dict[str, bytes]:
        name, _, prefix = bucket.removeprefix("s3://").partition("/")
        client = boto3.client("s3", endpoint_url=server)
        keys = [one["Key"] for one in client.list_objects_v2(Bucket=name).get("Contents", [])]
        assert all(key.startswith(f"{prefix}/") for key in keys)
        below = {key: key.removeprefix(f"{prefix}/") for key in keys if "/_meta/log/" not in key}
        return {path: client.get_object(Bucket=name, Key=key)["Body"].read() for key, path in below.items()}

    return found


@pytest.fixture
def whole_build(planned_build: Any) -> WholeBuild:
    """Build a small dataset whole."""

    def build_in(store: Store) -> Any:
        build = planned_build(store, "eq-x", SCENES, shard_size=1)
        build.make_all()
        drop_duplicates(store, {"eq-x": build.indexed()})
        build.indexed()
        remove_leftovers(store, build.state())
        store.sweep()
        return build

    return build_in


@pytest.fixture
def local(whole_build: WholeBuild, files_below: Callable[[Path], dict[str, bytes]], tmp_path: Path) -> Files:
    """All files of that dataset in a folder."""

    def found() -> dict[str, bytes]:
        whole_build(Store(str(tmp_path / "out")))
        return files_below(tmp_path / "out")

    return found
