"""Builds into an S3 server behind a proxy that fails: how long they take, and whether their bytes are equal.

    python -m tests.trials.stores [--seed N] [--only silent]

A share of the requests, drawn from a seed, meets one fault: an answer of 500 or 503 (with Retry-After), a connection
that is closed without an answer or in the middle of one, silence. One line each: seconds, as a multiple of those
without faults, and what differs. Exit code 1 where a build fails or anything differs.
"""

import argparse
import itertools
import logging
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

from tests.flaky_s3 import BUSY, CUT, DROPPED, SILENT, Flaky

FAULTS = {"500": 500, "503": BUSY, "reset": DROPPED, "cut off": CUT, "silent": SILENT}
LOGIN = {"AWS_ACCESS_KEY_ID": "trial", "AWS_SECRET_ACCESS_KEY": "trial", "AWS_DEFAULT_REGION": "us-east-1"}


def built(proxy: Flaky, bucket: str) -> tuple[float, str]:
    """Seconds of a build of a subset of the demo, and its last words where it fails."""
    command = [sys.executable, "-m", "twinset.cli.main", "build", "demo", "--only", "eq-ag", "--workers", "2"]
    before, environment = time.monotonic(), {**os.environ, **LOGIN, "AWS_ENDPOINT_URL": proxy.url}
    ran = subprocess.run(
        [*command, "--out", f"s3://{bucket}/out"], env=environment, capture_output=True, text=True, timeout=1800
    )
    return time.monotonic() - before, "" if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1]


def stored(url: str, bucket: str) -> dict[str, str]:
    """Names and ETags of the objects of a build, without its logs."""
    client = boto3.client("s3", endpoint_url=url, aws_access_key_id="trial", aws_secret_access_key="trial")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    objects = itertools.chain.from_iterable(page.get("Contents", []) for page in pages)
    return {one["Key"]: one["ETag"] for one in objects if "/_meta/log/" not in one["Key"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=FAULTS)
    asked = parser.parse_args()
    os.chdir(Path(__file__).parents[2])
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    proxy = Flaky(url)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    client = boto3.client("s3", endpoint_url=url, aws_access_key_id="trial", aws_secret_access_key="trial")
    cases = [("none", 0, 0.0)]
    cases += [(n, f, s) for n, f in FAULTS.items() for s in (0.05, 0.2) if asked.only in (None, n)]
    plain, wrong = (0.0, dict[str, str]()), 0
    for number, (name, fault, share) in enumerate(cases):
        draw, bucket = random.Random(asked.seed + number), f"trial-{number}"
        client.create_bucket(Bucket=bucket)
        proxy.requests.clear()
        proxy.failures = itertools.repeat(fault)
        proxy.fails = lambda method, path, draw=draw, share=share: draw.random() < share  # type: ignore[misc]
        seconds, problem = built(proxy, bucket)
        found = stored(url, bucket)
        plain = plain if number else (seconds, found)
        different = sum(plain[1].get(key) != found.get(key) for key in {*plain[1], *found})
        wrong += bool(problem or different)
        words = problem or f"{different} of {len(plain[1])} objects differ"
        print(f"{name:8} {share:4.0%} of {len(proxy.requests):4} requests: {seconds:6.1f} s,", end=" ")
        print(f"{seconds / plain[0]:.1f} × without; {words}", flush=True)
    server.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
