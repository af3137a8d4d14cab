"""Prefect's share of a build: wall and CPU time of a real `build-eqben` run over the same build without Prefect.

    python -m tests.benchmarks.bench_prefect [--shards 40] [--seconds 10] [--workers 4]

Shards of a fixed length (10 s: they sleep, then make a real shard of one pair) run as Prefect tasks on a local server,
which is already there. The other way is the same build in this process.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.measured import row
from tests.end_to_end.conftest import BIN
from tests.end_to_end.server.conftest import PrefectServer
from tests.made_recipe import write_recipe
from tests.options import options


def main() -> None:
    given = options(__doc__, shards=40, seconds=10.0, workers=4)
    os.environ["PREFECT_LOGGING_LEVEL"] = "CRITICAL"
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = PrefectServer(Path(folder), dict(os.environ))
        try:
            server.start()
            os.environ |= server.variables  # before Prefect is imported
            share_of_a_build(Path(folder), **vars(given))
        finally:
            server.end()


def share_of_a_build(folder: Path, shards: int, seconds: float, workers: int) -> None:
    import twinset
    import twinset.flows.build_shards as build_shards
    import twinset.stages.make as make
    from twinset.contracts.recipe import load_recipe
    from twinset.flows.build import build_eqben

    recipe, make_shard = str(write_recipe(folder, shards, 1)), make.make_shard

    def slow(*arguments: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return make_shard(*arguments, **named)

    build_shards.make_shard = make.make_shard = slow
    build_eqben(recipe=recipe, out=f"{folder}/warm", settings=["subsets.pairs.shard_size=1000000"])
    wall, processor = measured(lambda: build_eqben(recipe=recipe, out=f"{folder}/flow", workers=workers))
    plain, plain_processor = measured(lambda: twinset.build(load_recipe(recipe), f"{folder}/plain", workers=workers))
    row(
        f"{shards} shards of {seconds:g} s, {workers} workers, under Prefect",
        "a plain thread pool",
        [100 * (wall - plain) / plain],
        f"{(processor - plain_processor) / (shards * seconds):.2%} of the shards' time in CPU",
        unit="% more wall time",
    )


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds of this process and of Prefect's server, its child."""

    def processor() -> float:
        process = psutil.Process()
        times = [running.cpu_times() for running in (process, *process.children(recursive=True))]
        return sum(spent.user + spent.system for spent in times)

    before, began = processor(), time.monotonic()
    work()
    return time.monotonic() - began, processor() - before


if __name__ == "__main__":
    main()
