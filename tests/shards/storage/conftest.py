"""An S3 server that a proxy makes fail."""

import logging
import threading
import uuid
from collections.abc import Iterator

import boto3
import fsspec
import pytest
from botocore.retries.standard import ExponentialBackoff
from moto.server import ThreadedMotoServer

from tests.flaky_s3 import Flaky

LOGIN = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


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
