"""A build into a bucket of a real S3 server (moto's), killed midway and resumed: the same bytes as in a folder."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.end_to_end.conftest import contents, counts_of
from tests.flaky_s3 import LOGIN, s3_server
from tests.waiting import wait_until


@pytest.fixture
def aws() -> Iterator[dict[str, str]]:
    """Environment of processes that use the S3 server."""
    with s3_server() as url:
        yield {**LOGIN, "AWS_ENDPOINT_URL": url}


def objects(bucket: Any) -> dict[str, bytes]:
    """What `contents` gives of a folder."""
    items = {item.key.removeprefix("out/"): item for item in bucket.objects.filter(Prefix="out/")}
    return {name: item.get()["Body"].read() for name, item in items.items() if "/log/" not in name}


@pytest.mark.slow
def test_killed_and_resumed_on_s3(
    aws: dict[str, str], start_twinset: Any, twinset: Any, small_recipe: Path, reference: Path
) -> None:
    login = {name.lower(): value for name, value in LOGIN.items() if "KEY" in name}
    s3 = boto3.resource("s3", region_name="us-east-1", endpoint_url=aws["AWS_ENDPOINT_URL"], **login)
    bucket = s3.create_bucket(Bucket=f"twinset-{uuid.uuid4().hex}")  # moto keeps buckets as long as its process lives
    url = f"s3://{bucket.name}/out"
    command = ("build", small_recipe, "--out", url, "--workers", "2", "--json")

    def receipts() -> int:
        return sum("/receipts/" in item.key for item in bucket.objects.filter(Prefix="out/"))

    build = start_twinset(*command, **aws)
    wait_until(lambda: receipts() >= 3, build)
    build.kill()
    assert build.wait() == -9
    assert receipts() >= 3
    counts = counts_of(twinset(*command, **aws))
    assert objects(bucket) == contents(reference)
    verified = counts_of(twinset("verify", url, "--json", **aws))
    assert verified.keys() == counts.keys() and all(subset["problems"] == [] for subset in verified.values())
