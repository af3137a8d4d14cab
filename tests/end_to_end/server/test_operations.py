"""What an operator does and meets: cancelling, a server that is away, machines that die, workers without files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.end_to_end.conftest import CHECKOUT, contents
from tests.end_to_end.server.conftest import Cluster, children, kill_below
from tests.end_to_end.server.prefect_api import ENDED
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

#: Real renders, a few seconds each, in shards of their own.
SLOW = """
name: slow
subsets:
  eq-kubric-location:
    source: {{kind: kubric, aspect: location, assets: "procedural:manifest.json", resolution: 128, samples: 16,
              licence: CC0-1.0}}
    count: {count}
    shard_size: 2
    pool: render
"""
#: Seconds that the server is away, and after which an automation calls a run dead: a fifteenth of what is shipped, more
#: than the least time between heartbeats. TWINSET_OUTAGE=600 tries the shipped time.
OUTAGE = int(os.environ.get("TWINSET_OUTAGE", "75"))
DEAD = 900 if OUTAGE > 100 else 150
THEIRS = """
import time
from prefect import flow

@flow(name="theirs")
def theirs():
    time.sleep({seconds})

theirs()
"""


def slow_recipe(folder: Path, count: int) -> Path:
    path = folder / f"slow-{count}.yaml"
    path.write_text(SLOW.format(count=count))
    return path


@pytest.fixture
def automations(cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """The shipped automations, with a shorter clock; removed after the test."""
    shipped = yaml.safe_load((CHECKOUT / "flows/zombies.yaml").read_text())
    assert [automation["trigger"]["within"] for automation in shipped["automations"]] == [900, 900]
    for automation in shipped["automations"]:
        automation["trigger"]["within"] = DEAD
    (tmp_path / "zombies.yaml").write_text(yaml.safe_dump(shipped))
    cluster.prefect("automation", "create", "--from-file", str(tmp_path / "zombies.yaml"))
    yield
    cluster.prefect("automation", "delete", "--all")


def runs_in(cluster: Cluster, out: Path) -> list[dict[str, Any]]:
    asked = {"flow_runs": {"tags": {"all_": ["twinset", f"out={out}"]}}, "limit": 200}
    runs: list[dict[str, Any]] = cluster.api.ask("/flow_runs/filter", asked)
    return runs


def states(cluster: Cluster, out: Path) -> set[str]:
    return {run["state_type"] for run in runs_in(cluster, out)}


def test_a_cancelled_parent_cancels_what_it_handed_out(cluster: Cluster, tmp_path: Path) -> None:
    out, recipe = tmp_path / "out", slow_recipe(tmp_path, 40)
    cluster.start("main")
    worker = cluster.start("render", limit=1)
    parameters = {"recipe": str(recipe), "out": str(out), "shards_a_run": 5}
    run = cluster.api.start_run("build-eqben/build-eqben", **parameters)
    wait_until(lambda: any(out.glob("*/_meta/receipts/*")), pause=0.5)
    runs = {child["name"]: child for child in runs_in(cluster, out)}
    assert runs.keys() == {f"eq-kubric-location {first}-{first + 4} in {out}" for first in (0, 5, 10, 15)}
    for child in runs.values():
        assert {"twinset", f"out={out}", "slow", "eq-kubric-location"} <= {*child["tags"]}
        assert child["parent_task_run_id"] is not None, "not shown as a subflow"

    cluster.prefect("flow-run", "cancel", run)
    wait_until(lambda: states(cluster, out) <= {"CANCELLED", "COMPLETED"}, pause=0.5)
    assert cluster.api.state(run) == "CANCELLED"
    wait_until(lambda: not children(worker), pause=0.5)
    receipts = len(list(out.glob("*/_meta/receipts/*")))
    assert receipts < 20
    time.sleep(10)
    assert len(list(out.glob("*/_meta/receipts/*"))) == receipts, "shards are made by nobody's order"


def test_a_server_that_is_away_costs_no_shard_and_no_run(
    cluster: Cluster, server: dict[str, str], automations: None, start_twinset: Any, twinset: Any, tmp_path: Path
) -> None:
    """Killed in the middle of a build in pools, of one within its run, and of one by the command line."""
    recipe = slow_recipe(tmp_path, 24)
    outs = {name: tmp_path / name for name in ("build-eqben", "local", "here")}
    for pool in ("main", "render"):
        cluster.start(pool, PREFECT_CLIENT_MAX_RETRIES="9")
    runs = [
        cluster.api.start_run(f"build-eqben/{name}", recipe=str(recipe), out=str(outs[name]))
        for name in ("build-eqben", "local")
    ]
    here = start_twinset("build", recipe, "--out", outs["here"], **server)
    wait_until(lambda: all(any(out.glob("*/_meta/receipts/*")) for out in outs.values()), pause=0.5)
    cluster.server.kill()
    time.sleep(OUTAGE)
    cluster.server.start()
    for run in runs:
        cluster.completes(run)
    assert here.wait() == 0, (tmp_path / "log").read_text()[-3000:]
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    for out in outs.values():
        wait_until(lambda out=out: states(cluster, out) <= {*ENDED}, pause=1)
        assert states(cluster, out) == {"COMPLETED"}, cluster.log() + cluster.log("render")
        assert contents(out) == contents(tmp_path / "whole")


def test_a_killed_run_of_shards_is_made_again_with_one_shard_at_a_time(
    cluster: Cluster, twinset: Any, tmp_path: Path
) -> None:
    """As the kernel kills where memory runs out; the shards that were made stay."""
    out, recipe = tmp_path / "out", slow_recipe(tmp_path, 12)
    cluster.start("main")
    worker = cluster.start("render")
    run = cluster.api.start_run("build-eqben/build-eqben", recipe=str(recipe), out=str(out))
    wait_until(lambda: any(out.glob("*/_meta/receipts/*")), pause=0.1)
    kill_below(worker)
    cluster.completes(run)
    ranges = [child for child in runs_in(cluster, out) if "eq-kubric-location" in child["tags"]]
    made = sorted((child["state_type"], child["parameters"].get("workers")) for child in ranges)
    assert made == [("COMPLETED", 1), ("CRASHED", None)]
    assert "Crashed: Process exited with status code: -9" in cluster.log()
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_only_dead_runs_of_twinset_are_called_crashed_and_a_retry_resumes(
    cluster: Cluster, server: dict[str, str], automations: None, start_twinset: Any, twinset: Any, tmp_path: Path
) -> None:
    """Worker and flow die together; beside it a live build and somebody else's flow without heartbeats go on."""
    out, recipe, api = tmp_path / "out", slow_recipe(tmp_path, 24), cluster.api
    worker = cluster.start("main")
    run = api.start_run("build-eqben/local", recipe=str(recipe), out=str(out))
    wait_until(lambda: "prefect.flow-run.heartbeat" in api.events(run))
    psutil.Process(worker.pid).suspend()  # it must not see its run die
    assert kill_below(worker)
    worker.kill()

    longer = slow_recipe(tmp_path, 80)
    live = start_twinset("build", longer, "--out", tmp_path / "live", "--workers", "1", **server)
    command = [sys.executable, "-c", THEIRS.format(seconds=2 * DEAD)]
    theirs = subprocess.Popen(command, env={**server, "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "3600"}, cwd=tmp_path)
    wait_until(lambda: "prefect.flow-run.Crashed" in api.events(run), pause=1)
    cluster.start("main")
    cluster.retry(run)
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")

    assert theirs.wait() == 0 and live.wait() == 0, (tmp_path / "log").read_text()[-3000:]
    assert states(cluster, tmp_path / "live") == {"COMPLETED"}
    (their_run,) = api.ask("/flow_runs/filter", {"flows": {"name": {"any_": ["theirs"]}}})
    assert their_run["state_type"] == "COMPLETED"


def test_a_worker_that_sees_no_files_says_so(cluster: Cluster, twinset: Any, tmp_path: Path) -> None:
    absent, media, host = tmp_path / "elsewhere", tmp_path / "media", os.uname().nodename
    cluster.start("render")

    def message(out: Path) -> str:
        run = cluster.api.start_run("build-shards/render", out=str(out), subset="eq-ag", first=0, last=3)
        assert cluster.ended(run) == "FAILED"
        return str(cluster.api.ask(f"/flow_runs/{run}")["state"]["message"])

    assert f"{absent}/eq-ag: {host} sees no plan there; OUT must be a folder that all workers" in message(absent)
    media.mkdir()
    recipe, annotations = tmp_path / "recipe.yaml", "miniature:action_genome/annotations.pkl"
    source = {"kind": "action-genome", "annotations": annotations, "media": str(media)}
    recipe.write_text(json.dumps({"name": "mine", "subsets": {"eq-ag": {"source": source, "shard_size": 1}}}))
    assert twinset("build", recipe, "--out", tmp_path / "out", "--stage", "eq-ag", "--plan-only").returncode == 0
    media.rmdir()
    without_media = message(tmp_path / "out")
    assert f"on {host}: " in without_media and str(media) in without_media


def test_what_a_stage_warns_of_stands_in_the_log_of_its_run(
    cluster: Cluster, small_recipe: Path, tmp_path: Path
) -> None:
    """Here of a subset of another build, whose record is damaged."""
    out = tmp_path / "out"
    (out / "eq-older/_meta").mkdir(parents=True)
    (out / "eq-older/_meta/stage.json").write_text("{}")
    cluster.start("main")
    run = cluster.api.start_run("build-eqben/local", recipe=str(small_recipe), out=str(out))
    cluster.completes(run)
    asked = {"logs": {"flow_run_id": {"any_": [run]}, "level": {"ge_": 30}}, "limit": 200}
    warned = "eq-older is left as it is"
    wait_until(lambda: any(warned in line["message"] for line in cluster.api.ask("/logs/filter", asked)), pause=1)
