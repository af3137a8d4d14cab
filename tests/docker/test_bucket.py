"""docker/bucket.sh: the user of the workers can build into the one bucket and do nothing else."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
import urllib3

from tests.flaky_s3 import LOGIN, s3_server
from twinset.shards.storage.store import Store

SCRIPT = Path(__file__).parents[2] / "docker" / "bucket.sh"
ROOT = {"aws_access_key_id": "root", "aws_secret_access_key": "root", "region_name": "us-east-1"}


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """The policy that the script gives to MinIO."""
    called = tmp_path / "called"
    (tmp_path / "mc").write_text(f'#!/bin/sh\necho "$@" >> {called}\n')
    (tmp_path / "mc").chmod(0o755)
    secrets = {"MINIO_ROOT_USER": "root", "MINIO_ROOT_PASSWORD": "root-word", "BUCKET_PASSWORD": "worker-word"}
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path), **secrets}
    done = subprocess.run(["bash", str(SCRIPT), "mine"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = called.read_text().splitlines()
    assert "mb --ignore-existing local/mine" in lines
    assert "admin user add local twinset worker-word" in lines
    assert lines[-1] == "admin policy attach local twinset --user twinset"
    text = (tmp_path / "policy.json").read_text()
    assert "*" not in {action for rule in json.loads(text)["Statement"] for action in rule["Action"]}
    return text


@pytest.fixture
def worker(policy: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store that checks rights; it and the keys of a user with this policy are in the environment."""
    with s3_server() as url:
        s3, iam = (boto3.client(name, endpoint_url=url, **ROOT) for name in ("s3", "iam"))
        for bucket in ("mine", "others"):
            s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket="others", Key="secret", Body=b"secret")
        iam.create_user(UserName="twinset")
        iam.put_user_policy(UserName="twinset", PolicyName="twinset", PolicyDocument=policy)
        key = iam.create_access_key(UserName="twinset")["AccessKey"]
        urllib3.request("POST", f"{url}/moto-api/reset-auth", body=b"0")  # from here on rights are checked
        keys = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        for name, value in {**LOGIN, **keys, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.slow
def test_the_workers_user_has_one_bucket(worker: None) -> None:
    store = Store("s3://mine/out")
    store.write("a/b.json", b"{}")
    assert store.read("a/b.json") == b"{}"
    store.remove("a/b.json")
    with pytest.raises(OSError):
        Store("s3://others").read("secret")
    with pytest.raises(OSError):
        Store("s3://others").write("new", b"x")
