"""Many shards: CPU time of a build with nothing to do and of a look, against parsing every receipt one by one.

    python tests/benchmarks/bench_shards.py [--shards N]

A shard is one row of a table, and nothing waits for the disk, so what is measured is the engine.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import pyarrow as pa
from measured import peak_mib, row

from twinset import generators
from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.receipt import parse_receipt
from twinset.contracts.recipe import parse_recipe
from twinset.shards.contracts import Source
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.overview import status

ROUNDS = 3


class TinyRows(Source):
    """A table with a row a candidate."""

    kind: Literal["tiny-rows"]
    licence: str = "MIT"
    rows: int
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "table"
    row_schema: ClassVar[pa.Schema] = pa.schema([("number", pa.int64())])

    def inputs(self) -> str:
        return ""

    def plan(self) -> Iterator[Candidate]:
        for number in range(self.rows):
            yield Candidate(**self.identified(number))

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for candidate in candidates:
            yield TableRows(candidate.key, [{"number": int(json.loads(candidate.identity)[0])}])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=20_000)
    shards = parser.parse_args().shards
    sys.modules["bench_shards"] = sys.modules[__name__]
    generators.KINDS["tiny-rows"] = "bench_shards:TinyRows"
    os.fsync = lambda _: None  # type: ignore[assignment,misc]
    source = {"kind": "tiny-rows", "rows": shards}
    recipe = parse_recipe({"name": "tiny", "stages": {"tiny": {"source": source, "shard_size": 1}}})
    with TemporaryDirectory() as out:
        build_here(recipe, out)
        rounds = [
            (cpu(lambda: build_here(recipe, out)), cpu(lambda: status(Store(out))), cpu(lambda: one_by_one(out)))
            for _ in range(ROUNDS)
        ]
    for name, place in (("a build with nothing to do", 0), ("`twinset status`", 1)):
        seconds = [each[place] for each in rounds]
        row(
            f"{name}, {shards:,} shards",
            "parsing every receipt",
            [each[2] / each[place] for each in rounds],
            f"{min(seconds):.2f}–{max(seconds):.2f} s of CPU time; peak {peak_mib():,.0f} MiB",
        )


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU time that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def one_by_one(out: str) -> None:
    """What resuming takes without a ledger: each receipt read, and its rows looked for."""
    meta = Path(out, "_stages", "tiny", "_meta")
    for receipt in sorted((meta / "receipts").iterdir()):
        assert parse_receipt(receipt.read_bytes()) is not None
        assert (meta / "rows" / f"{receipt.stem}.parquet").stat().st_size


if __name__ == "__main__":
    main()
