"""Prefect's share of a build: wall and CPU time of a real `build-eqben` run over what its shards take by themselves.

Shards of a fixed length (10 s: they sleep, then make a real shard whose video is missing) run as Prefect tasks on a
local server. The other way is the same build in this process, without Prefect. Then the seconds from `prefect
deployment run build-eqben/build-eqben` to the first shard, with workers as docs/cluster.md starts them.

    PYTHONPATH=. python tests/benchmarks/bench_prefect.py [--shards 40] [--seconds 10] [--workers 4]
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from measured import row

from tests.cached_builds import CHECKOUT
from tests.end_to_end.conftest import BIN
from tests.end_to_end.server.conftest import PrefectServer

ROUNDS = 3
INSPECT = ("prefect", "work-pool", "inspect", "--output", "json")
DEPLOYED = (
    *("prefect", "deployment", "run", "build-eqben/build-eqben", "--watch"),
    *("--param=recipe=demo", '--param=only=["eq-ag"]'),
)
HERE = ("env", "-u", "PREFECT_API_URL", "twinset", "build", "demo", "--only", "eq-ag", "--out")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=4)
    asked = parser.parse_args()
    os.environ["PREFECT_LOGGING_LEVEL"] = "CRITICAL"
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = PrefectServer(Path(folder), dict(os.environ))
        try:
            server.start()
            os.environ |= server.variables  # before Prefect is imported
            share_of_a_build(asked, folder)
            first_shards(Path(folder))
        finally:
            server.end()


def share_of_a_build(asked: argparse.Namespace, folder: str) -> None:
    """Compare a flow of many shards with the same build without Prefect."""
    recipe = write_recipe(Path(folder), asked.shards)
    import twinset.flows.build_shards as build_shards
    import twinset.stages.build as build
    import twinset.stages.make as make
    from twinset.contracts.recipe import load_recipe
    from twinset.flows.build import build_eqben
    from twinset.stages.make import make_shard

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(asked.seconds)
        return make_shard(*given, **named)

    build_shards.make_shard = make.make_shard = slow
    build_eqben(recipe=str(recipe), out=f"{folder}/warm", settings=["subsets.eq-youcook2.shard_size=1000000"])
    before, began = cpu(), time.monotonic()
    build_eqben(recipe=str(recipe), out=f"{folder}/flow", workers=asked.workers)
    flow_wall, flow_cpu = time.monotonic() - began, cpu() - before

    before, began = cpu(), time.monotonic()
    build.build_here(load_recipe(str(recipe)), f"{folder}/plain", asked.workers)
    plain_wall, plain_cpu = time.monotonic() - began, cpu() - before
    print(f"{asked.shards} shards of {asked.seconds:g} s on {asked.workers} workers, server already running")
    print(f"here           wall {plain_wall:7.2f} s   CPU {plain_cpu:6.2f} s")
    print(f"build-eqben    wall {flow_wall:7.2f} s   CPU {flow_cpu:6.2f} s")
    print(f"Prefect's share of the wall time: {(flow_wall - plain_wall) / flow_wall:.2%}")
    work = asked.shards * asked.seconds
    row(
        f"{asked.shards} shards of {asked.seconds:g} s, {asked.workers} workers, under Prefect",
        "a plain thread pool",
        [100 * (flow_wall - plain_wall) / plain_wall],
        f"{(flow_cpu - plain_cpu) / work:.2%} of the shards' time in CPU",
        unit="% more wall time",
    )
    print(f"Prefect's CPU over the shards' own time: {(flow_cpu - plain_cpu) / work:.2%}")


def first_shards(folder: Path) -> None:
    """Seconds from the command to the first receipt, in pools and without Prefect."""
    os.chdir(CHECKOUT)
    os.environ["PREFECT_WORKER_QUERY_SECONDS"] = "2"
    pools = ("main", "cpu")
    for pool in (*pools, "render", "gpu"):
        said("prefect", "work-pool", "create", pool, "--type", "process")
    said("prefect", "--no-prompt", "deploy", "--all")
    workers = [subprocess.Popen(["prefect", "worker", "start", "--limit", "1", "--pool", pool]) for pool in pools]
    try:
        while any(json.loads(said(*INSPECT, pool))["status"] != "READY" for pool in pools):
            time.sleep(1)
        deployed, here = [], []
        for number in range(ROUNDS):
            out = folder / f"pools-{number}"
            deployed.append(seconds_to_a_receipt(out, *DEPLOYED, f"--param=out={out}"))
            out = folder / f"here-{number}"
            here.append(seconds_to_a_receipt(out, *HERE, str(out)))
    finally:
        end(workers)
    row(
        "from `prefect deployment run` to the first shard",
        "`twinset build`",
        deployed,
        f"{min(here):.1f}–{max(here):.1f} s without Prefect",
        unit="s",
    )


def end(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """End workers; one that is asked to end sometimes waits for ever."""
    asked = [psutil.Process(worker.pid) for worker in workers]
    for process in asked:
        process.terminate()
    _, left = psutil.wait_procs(asked, timeout=30)
    for process in [one for parent in left for one in (*parent.children(recursive=True), parent)]:
        process.kill()
    psutil.wait_procs(left)


def said(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def seconds_to_a_receipt(out: Path, *command: str) -> float:
    """Run a build to its end; returns when its first receipt was there."""
    began, found = time.monotonic(), 0.0
    build = subprocess.Popen(command)
    while build.poll() is None:
        if not found and any(out.glob("eq-ag/_meta/receipts/*.json")):
            found = time.monotonic() - began
        time.sleep(0.02)
    if build.returncode or not found:
        raise SystemExit(f"{' '.join(command)}: exit code {build.returncode}")
    return found


def write_recipe(folder: Path, shards: int) -> Path:
    """A YouCook2 recipe of one shard a video; its videos are missing, so that making a shard costs next to nothing."""
    segments = [
        {"id": number, "segment": [10 * number, 10 * number + 9], "sentence": f"step {number}"} for number in (0, 1)
    ]
    videos = {f"video{number}": {"duration": 20, "annotations": segments} for number in range(shards)}
    (folder / "annotations.json").write_text(json.dumps({"database": videos}))
    (folder / "media").mkdir()
    recipe = folder / "sleep.yaml"
    recipe.write_text(
        "name: sleep\nmax_missing: 1\nsubsets:\n  eq-youcook2:\n    shard_size: 1\n"
        "    source: {kind: youcook2, annotations: annotations.json, media: media}\n"
    )
    return recipe


def cpu() -> float:
    """CPU seconds of this process and of Prefect's server, its child."""
    process = psutil.Process()
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main()
