"""Kill -9 at random moments of flow and workers, in two pools: the dataset ends as if nothing had happened."""

import contextlib
import random
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.server.conftest import children

KILLS = 8
SEED = 20


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_flow_and_workers_killed_at_random_moments(
    start_worker: Any,
    api: Any,
    dag_recipe: Path,
    dag_reference: Path,
    contents: Any,
    twinset: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    """Parents run in one pool, shards in another; each kill hits the parent, a run of shards, or a whole worker."""
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(dag_reference)
    workers = {pool: start_worker(pool) for pool in ("main", "cpu")}
    given = {"recipe": str(dag_recipe), "out": str(out), "shards_a_run": 2}
    orphans: list[psutil.Process] = []
    victims = [(what, pool) for what in ("run", "worker") for pool in ("main", "cpu")] * (KILLS // 4)
    chance.shuffle(victims)
    for what, pool in victims:
        run = api.start_run("build-genecis/build-genecis", **given)
        files = len(contents(out)) + chance.randint(1, 12)
        until(lambda files=files, run=run: len(contents(out)) >= files or api.state(run) == "COMPLETED")
        worker = workers[pool]
        runs = children(worker)
        if what == "worker":
            worker.kill()
            worker.wait()
        # A worker's orphan may go on writing beside the next run, as on a cluster.
        if what == "run" or chance.random() < 0.5:
            kill_all(runs)
        orphans += runs
        if what == "worker":
            workers[pool] = start_worker(pool)
        # As the shipped automation would later; what the parent handed out is adopted by the next or ends by itself.
        for left in [
            run,
            *(one["id"] for one in api.runs_of("build-shards/cpu") if one["parameters"]["out"] == str(out)),
        ]:
            if api.state(left) not in ("COMPLETED", "FAILED", "CRASHED") and (left == run or pool == "cpu"):
                api.crash(left)
        if contents(out) == whole:
            shutil.rmtree(out)
    run = api.start_run("build-genecis/build-genecis", **given)
    until(lambda: api.state(run) in ("COMPLETED", "FAILED", "CRASHED"))
    assert api.state(run) == "COMPLETED", (tmp_path / "main.log").read_text()[-3000:]
    kill_all(psutil.wait_procs(orphans, timeout=60)[1])
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0
