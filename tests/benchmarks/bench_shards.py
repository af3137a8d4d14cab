"""Many tiny shards: time, memory and requests of a build, of the same build again and of a look at it.

    python tests/benchmarks/bench_shards.py [--shards N ...] [--tables] [--s3 | --memory]

A shard holds one pair of 8 × 8 pixels, or a row of a table, so what is measured is the engine. Each size is built in a
process of its own, into a folder, or with ``--s3`` into a bucket of moto's server on this machine, which writes down
every request; moto takes longer than the engine. ``--memory`` is an object store in the memory of the building process
that counts the calls which are requests to a bucket (`tests.counted_store`), for sizes that take moto hours; its
objects are part of the peak memory. Printed for each size: wall and CPU time, peak memory, requests a shard; then what
the largest costs a shard against the smallest, which is 1 where cost grows as the shards do.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.counted_store import counted_requests  # noqa: E402
from twinset import generators  # noqa: E402
from twinset.contracts import locations  # noqa: E402
from twinset.contracts.candidate import Candidate  # noqa: E402
from twinset.contracts.canonical import identity_of, sample_key  # noqa: E402
from twinset.contracts.kinds.pair import Pair  # noqa: E402
from twinset.contracts.kinds.samples import Frame, MediaFile, TableRows  # noqa: E402
from twinset.contracts.recipe import parse_recipe  # noqa: E402
from twinset.contracts.source import Reference  # noqa: E402
from twinset.shards.contracts import Context, Generator, Source  # noqa: E402
from twinset.shards.storage.store import Store  # noqa: E402
from twinset.stages.overview import of_all, stage_status  # noqa: E402
from twinset.stages.run_here import build_here  # noqa: E402

BUCKET = "bench"
STEPS = ("build", "build again", "status")


class TinyPairs(Source):
    """Pairs of 8 × 8 pixels. pairs: their number."""

    kind: Literal["tiny-pairs"]
    licence: str = "MIT"
    pairs: int
    reference = Reference("tiny pairs")

    def open(self, context: Context) -> TinyPairGenerator:
        return TinyPairGenerator(self, context)


class TinyPairGenerator(Generator):
    version = 1
    candidate = Candidate

    def inputs(self) -> str:
        return ""

    def plan(self) -> Iterator[Candidate]:
        for number in range(self.source.pairs):
            yield Candidate(
                key=sample_key(self.name, number), group=str(number), split=self.split, identity=identity_of(number)
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterable[Pair]:
        for one in candidates:
            number = int(json.loads(one.identity)[0])
            pixels = np.full((8, 8, 3), 127, np.uint8)
            pixels[0, 0] = number >> 16, number >> 8 & 255, number & 255
            origin = MediaFile("made", 1, "0" * 64)
            yield Pair(
                key=one.key,
                group=one.group,
                split=one.split,
                change="number",
                image0=Frame(f"{one.key}-0", pixels, -1.0, origin),
                image1=Frame(f"{one.key}-1", 255 - pixels, -1.0, origin),
                captions0=(f"pair {number}",),
                captions1=(f"the other of {number}",),
                provenance={},
            )


class TinyRows(TinyPairs):
    """A table with a row a candidate."""

    kind: Literal["tiny-rows"]  # type: ignore[assignment]
    makes: ClassVar[str] = "table"

    def open(self, context: Context) -> TinyRowGenerator:
        return TinyRowGenerator(self, context)


class TinyRowGenerator(TinyPairGenerator):
    columns = pa.schema([("number", pa.int64())])

    def make(self, candidates: Sequence[Candidate]) -> Iterable[TableRows]:  # type: ignore[override]
        return (TableRows(one.key, [{"number": int(json.loads(one.identity)[0])}]) for one in candidates)


class Step(NamedTuple):
    """What a step took: seconds, of CPU time, MB at most, and requests, 0 for a folder."""

    wall: float
    cpu: float
    peak: float
    requests: int


def build(shards: int, out: str, kind: str) -> None:
    """Build, build again and look, in this process; the parent reads a line a step."""
    sys.modules["bench_shards"] = sys.modules[__name__]  # kinds are found by the name of their module
    locations.SCHEMES = (*locations.SCHEMES, "memory")
    generators.KINDS |= {"tiny-pairs": "bench_shards:TinyPairs", "tiny-rows": "bench_shards:TinyRows"}
    place = "subsets" if kind == "tiny-pairs" else "stages"
    if kind == "tiny-rows":
        os.fsync = lambda _: None  # waiting for the disk would be most of the time
    source = {"kind": kind, "pairs": shards}
    recipe = parse_recipe({"name": "tiny", place: {"tiny": {"source": source, "shard_size": 1}}})
    for step in STEPS:
        began, worked = time.perf_counter(), time.process_time()
        with counted_requests() as counts:
            if step == "status":
                of_all(Store(out), (), stage_status)
            else:
                build_here(recipe, out)
        peak = peak_mib()
        print(json.dumps([time.perf_counter() - began, time.process_time() - worked, peak, counts.total()]), flush=True)


@contextmanager
def server(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """Settings that lead to an S3 server, and the file in which it writes a line a request."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    requests = folder / "requests"
    with requests.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        import boto3

        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= keys | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if process.poll() is not None:
                raise SystemExit(f"moto's server ended: {requests.read_text()[-500:]}")
            time.sleep(0.1)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield dict(os.environ), requests
    finally:
        process.kill()
        process.wait()


def measure(shards: int, s3: bool = False, memory: bool = False, tables: bool = False) -> list[Step]:
    """What each step took."""
    kind = "tiny-rows" if tables else "tiny-pairs"
    if memory:
        return run(shards, f"memory://{BUCKET}/out", kind, None)
    with TemporaryDirectory() as folder:
        if not s3:
            return run(shards, str(Path(folder) / "out"), kind, None)
        with server(Path(folder)) as (_, requests):
            return run(shards, f"s3://{BUCKET}/out", kind, requests)


def run(shards: int, out: str, kind: str, requests: Path | None) -> list[Step]:
    """Build ``shards`` shards in a child process and print what each step cost."""
    command, found, before = [sys.executable, __file__, "--child", str(shards), out, kind], list[Step](), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for step, line in zip(STEPS, child.stdout, strict=False):
            wall, cpu, peak, counted = json.loads(line)
            said = f"{shards:>8,} shards, {step:<11} {wall:8.1f} s, {cpu:8.1f} s of CPU, peak {peak:7.1f} MB"
            if requests is not None:
                total = requests.read_bytes().count(b" HTTP/1.1")
                counted, before = total - before, total
            if counted:
                said += f", {counted:,} requests ({counted / shards:.3f} a shard)"
            print(said, flush=True)
            found.append(Step(wall, cpu, peak, counted))
    if child.returncode or len(found) < len(STEPS):
        raise SystemExit(f"the build of {shards} shards failed")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--tables", action="store_true")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--s3", action="store_true")
    where.add_argument("--memory", action="store_true")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        build(int(options.child[0]), *options.child[1:])
        return
    kinds = options.s3, options.memory, options.tables
    costs = {shards: [step.cpu for step in measure(shards, *kinds)] for shards in sorted(options.shards)}
    if len(costs) < 2:
        return
    (small, first), *_, (large, last) = costs.items()
    row(
        f"{large:,} shards of one tiny pair, CPU time a shard",
        f"{small:,} shards",
        [last[0] / large / (first[0] / small)],
        f"{1000 * last[0] / large:.1f} ms a shard; with nothing to do {last[1]:.1f} s, status {last[2]:.1f} s",
    )
    for step, one, other in zip(STEPS, first, last, strict=True):
        print(f"{step}: a shard of {large:,} costs {other / large / (one / small):.2f} × one of {small:,}")


if __name__ == "__main__":
    main()
