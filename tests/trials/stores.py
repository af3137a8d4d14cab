"""Builds into an S3 server behind a proxy that fails: how long they take, and whether their bytes are equal.

    python -m tests.trials.stores [--seed N] [--only silent]

A share of the requests, drawn from a seed, meets one fault: an answer of 500 or 503 (with Retry-After), a connection
that is closed without an answer or in the middle of one, silence. One line each: seconds, as a multiple of those
without faults, and what differs. Exit code 1 where a build fails or anything differs.
"""

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import boto3

from tests.flaky_s3 import BUSY, CUT, DROPPED, LOGIN, SILENT, Flaky, s3_server
from tests.options import options

FAULTS = {"500": 500, "503": BUSY, "reset": DROPPED, "cut off": CUT, "silent": SILENT}


def built(url: str, bucket: str) -> str:
    command = [sys.executable, "-m", "twinset.cli.main", "build", "demo", "--only", "eq-ag", "--workers", "2"]
    environment = {**os.environ, "AWS_ENDPOINT_URL": url}
    ran = subprocess.run(
        [*command, "--out", f"s3://{bucket}/out"], env=environment, capture_output=True, text=True, timeout=1800
    )
    return "" if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1]


def main() -> int:
    given = options(__doc__, seed=1, only="")
    os.environ |= LOGIN
    os.chdir(Path(__file__).parents[2])
    with s3_server() as url:
        return 1 if tried(url, given.seed, given.only) else 0


def tried(url: str, seed: int, only: str) -> int:
    proxy, s3 = Flaky(url), boto3.resource("s3", endpoint_url=url)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    cases = [("none", 0, 0.0)]
    cases += [(name, fault, share) for name, fault in FAULTS.items() for share in (0.05, 0.2) if only in ("", name)]
    plain, whole, wrong = 0.0, dict[str, str](), 0
    for number, (name, fault, share) in enumerate(cases):
        draw, bucket = random.Random(seed + number), s3.create_bucket(Bucket=f"trial-{number}")
        proxy.requests.clear()
        proxy.failures = itertools.repeat(fault)
        proxy.fails = lambda method, path, draw=draw, share=share: draw.random() < share  # type: ignore[misc]
        began = time.monotonic()
        problem = built(proxy.url, bucket.name)
        seconds = time.monotonic() - began
        stored = {item.key: item.e_tag for item in bucket.objects.all() if "/_meta/log/" not in item.key}
        if not number:
            plain, whole = seconds, stored
        different = sum(whole.get(key) != stored.get(key) for key in {*whole, *stored})
        wrong += bool(problem or different)
        print(f"{name:8} {share:4.0%} of {len(proxy.requests):4} requests: {seconds:6.1f} s,", end=" ")
        ended = problem or f"{different} of {len(whole)} objects differ"
        print(f"{seconds / plain:.1f} × without; {ended}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
