"""Small builds, as the tests of the engine make them, on an S3 server that a proxy makes fail."""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import fsspec
import pytest
from botocore.retries.standard import ExponentialBackoff
from moto.server import ThreadedMotoServer

from tests.flaky_s3 import Flaky
from tests.stages.conftest import _package, drawn, files_below, greys, media, planned_build
from twinset.shards.storage.store import Store
from twinset.stages.dataset import drop_duplicates
from twinset.stages.finish import remove_leftovers

#: Path of each file or object -> its content, without the logs.
Files = Callable[[], dict[str, bytes]]
WholeBuild = Callable[[Store], Any]
SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2), ("gone", 8, 9)]
LOGIN = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
__all__ = ["_package", "drawn", "files_below", "greys", "media", "planned_build"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of an S3 server on this machine."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"http://{host}:{port}"
    moto.stop()


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
def bucket(server: str, flaky: Flaky, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket, reached through the proxy by what a user would set: credentials and AWS_ENDPOINT_URL."""
    for name, value in {**LOGIN, "AWS_ENDPOINT_URL": flaky.url}.items():
        monkeypatch.setenv(name, value)
    chosen = ExponentialBackoff.delay_amount  # botocore waits a hundredth of its time, up to seconds
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: chosen(self, context) / 100)
    name = f"bucket-{uuid.uuid4().hex}"
    boto3.client("s3", endpoint_url=server).create_bucket(Bucket=name)
    # fsspec keeps one connection a set of arguments, which would still point to an earlier test's proxy.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield f"s3://{name}/datasets/small"
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture
def stored(server: str, bucket: str) -> Files:
    """All objects of the bucket, asked for without the proxy."""

    def objects() -> dict[str, bytes]:
        name, _, prefix = bucket.removeprefix("s3://").partition("/")
        found = boto3.resource("s3", endpoint_url=server).Bucket(name).objects.all()
        kept = [one for one in found if "/_meta/log/" not in one.key]
        assert all(one.key.startswith(f"{prefix}/") for one in kept)
        return {one.key.removeprefix(f"{prefix}/"): one.get()["Body"].read() for one in kept}

    return objects


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

    def files() -> dict[str, bytes]:
        whole_build(Store(str(tmp_path / "out")))
        return files_below(tmp_path / "out")

    return files
