"""100,000 shards in a folder and 10,000 in a bucket: requests a shard, and what a build with nothing to do costs.

    python tests/benchmarks/bench_many_shards.py [--folder N] [--bucket N]

A shard is one row of a table, and nothing waits for the disk, so what is measured is the engine. The bucket is moto's
server on this machine, which takes longer than the engine. Goals: at most 10 requests a shard; with nothing to do 10 s
and 50 requests. Beyond one of them the exit code is 1.
"""

import argparse

from bench_shards import measure
from measured import row

SECONDS, REQUESTS, REQUESTS_A_SHARD = 10, 50, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=int, default=100_000, metavar="N", help="shards")
    parser.add_argument("--bucket", type=int, default=10_000, metavar="N", help="shards")
    asked = parser.parse_args()
    made, again, _ = measure(asked.bucket, s3=True, tables=True)
    each = made.requests / asked.bucket
    row(
        f"{asked.bucket:,} shards of a table in a bucket of moto's, a build",
        f"goal ≤ {REQUESTS_A_SHARD} requests a shard",
        [each],
        f"with nothing to do {again.requests} requests, goal ≤ {REQUESTS}, and {again.cpu:.1f} s of CPU time",
        unit="requests a shard",
    )
    within = each <= REQUESTS_A_SHARD and again.requests <= REQUESTS
    made, again, status = measure(asked.folder, tables=True)
    row(
        f"{asked.folder:,} shards of a table in a folder, a build with nothing to do, CPU time",
        f"goal ≤ {SECONDS} s",
        [again.cpu],
        f"{again.wall:.1f} s of the wall's; status {status.cpu:.1f} s; making them "
        f"{1000 * made.cpu / asked.folder:.1f} ms a shard; peak {made.peak:,.0f} MB",
        unit="s",
    )
    raise SystemExit(not within or again.cpu > SECONDS)


if __name__ == "__main__":
    main()
