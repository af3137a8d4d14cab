"""Many shards: CPU time of a build with nothing to do and of a look, against parsing every receipt.

    python -m tests.benchmarks.bench_shards [--shards N]

A shard is one row of a table, and nothing waits for the disk, so what is measured is the engine.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import pyarrow as pa

import twinset
from tests.benchmarks.measured import compare
from tests.options import options
from twinset import generators
from twinset.contracts.candidate import Candidate
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.receipt import parse_receipt
from twinset.contracts.recipe import parse_recipe
from twinset.shards.contracts import Source
from twinset.shards.storage.store import Store
from twinset.stages.overview import status


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


def one_by_one(out: str) -> None:
    """What resuming takes without a ledger: each receipt read, and its rows looked for."""
    meta = Path(out, "_stages", "tiny", "_meta")
    for receipt in sorted((meta / "receipts").iterdir()):
        assert parse_receipt(receipt.read_bytes()) is not None
        assert (meta / "rows" / f"{receipt.stem}.parquet").stat().st_size


def main() -> None:
    shards = options(__doc__, shards=20_000).shards
    sys.modules["bench_shards"] = sys.modules[__name__]
    generators.KINDS["tiny-rows"] = "bench_shards:TinyRows"
    os.fsync = lambda _: None  # type: ignore[assignment,misc]
    source = {"kind": "tiny-rows", "rows": shards}
    recipe = parse_recipe({"name": "tiny", "stages": {"tiny": {"source": source, "shard_size": 1}}})
    with TemporaryDirectory() as out:
        twinset.build(recipe, out)
        ways = {
            "a build with nothing to do": lambda: twinset.build(recipe, out),
            "`twinset status`": lambda: status(Store(out)),
        }
        for name, way in ways.items():
            compare(
                f"{name}, {shards:,} shards",
                way,
                {"parsing every receipt": lambda: one_by_one(out)},
                more=lambda seconds: f"{seconds:.2f} s of CPU time",
                warm=False,
            )


if __name__ == "__main__":
    main()
