"""Prefect's share of a build: wall and CPU time of a real `build-eqben` run over what its shards take by themselves.

Shards of a fixed length (10 s: they sleep, then make a real shard whose video is missing) run as Prefect tasks on a
local server. The other way is the same build in this process, without Prefect.

    python tests/benchmarks/bench_prefect.py [--shards 40] [--seconds 10] [--workers 4]
"""

import argparse
import atexit
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from measured import row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=4)
    asked = parser.parse_args()
    os.environ["PREFECT_LOGGING_LEVEL"] = "CRITICAL"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    home = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, home, ignore_errors=True)  # after Prefect's own exit: its server writes till then
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PREFECT_HOME"] = home
        recipe = write_recipe(Path(folder), asked.shards)
        import twinset.flows.build_shards as build_shards
        import twinset.stages.run_here as run_here
        from twinset.flows.build import build_eqben
        from twinset.manifests.recipe import load_recipe
        from twinset.stages.making.make import make_shard

        def slow(out: str, subset: str, shard: int, **given: Any) -> Any:
            time.sleep(asked.seconds)
            return make_shard(out, subset, shard, **given)

        build_shards.make_shard = run_here.make_shard = slow
        build_eqben(recipe=str(recipe), out=f"{folder}/warm", settings=["subsets.eq-youcook2.shard_size=1000000"])
        before, began = cpu(), time.monotonic()
        build_eqben(recipe=str(recipe), out=f"{folder}/flow", workers=asked.workers)
        flow_wall, flow_cpu = time.monotonic() - began, cpu() - before

        before, began = cpu(), time.monotonic()
        run_here.build_here(load_recipe(str(recipe)), f"{folder}/plain", asked.workers)
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
    """CPU seconds of this process and of Prefect's temporary server, its child."""
    process = psutil.Process()
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main()
