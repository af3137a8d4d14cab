"""A build into a bucket of a real S3 server (moto's), killed midway and resumed: the same bytes as in a folder."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.end_to_end.conftest import contents, counts_of
from tests.waiting import wait_until


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Environment of processes that use the S3 server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    login = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
    environment = {**login, "AWS_ENDPOINT_URL": url}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    yield environment
    server.stop()


@pytest.fixture
def bucket(aws: dict[str, str]) -> Any:
    """The bucket, seen from outside; moto keeps buckets as long as its process lives."""
    return boto3.resource("s3").create_bucket(Bucket=f"twinset-{uuid.uuid4().hex}")


def receipts(bucket: Any) -> int:
    return sum("/receipts/" in item.key for item in bucket.objects.filter(Prefix="out/"))


def downloaded(bucket: Any, folder: Path) -> Path:
    for item in bucket.objects.filter(Prefix="out/"):
        path = folder / item.key.removeprefix("out/")
        path.parent.mkdir(parents=True, exist_ok=True)
        bucket.download_file(item.key, str(path))
    return folder


@pytest.mark.slow
def test_killed_and_resumed_on_s3(
    aws: dict[str, str],
    bucket: Any,
    start_twinset: Any,
    twinset: Any,
    small_recipe: Path,
    reference: Path,
    tmp_path: Path,
) -> None:
    url = f"s3://{bucket.name}/out"
    command = ("build", small_recipe, "--out", url, "--workers", "2", "--json")
    build = start_twinset(*command, **aws)
    wait_until(lambda: receipts(bucket) >= 3 or build.poll() is not None)
    build.kill()
    assert build.wait() == -9
    planned = sum(
        json.loads(item.get()["Body"].read())["shards"]
        for item in bucket.objects.filter(Prefix="out/")
        if item.key.endswith("/stage.json")
    )
    assert 3 <= receipts(bucket) < planned
    counts = counts_of(twinset(*command, **aws))

    assert contents(downloaded(bucket, tmp_path / "copy")) == contents(reference)

    status = counts_of(twinset("status", url, "--json", **aws))
    for name, subset in counts.items():
        assert {key: status[name][key] for key in subset} == subset
        assert status[name]["done"] == status[name]["shards"] and status[name]["missing"] == 0
    verified = counts_of(twinset("verify", url, "--json", **aws))
    assert verified.keys() == counts.keys() and all(subset["problems"] == [] for subset in verified.values())
