"""What an operator does and meets: cancelling, a server that is away, machines that die, workers without files."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.cached_builds import CHECKOUT
from tests.end_to_end.server.conftest import PrefectServer, children, kill_below

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
ENDED = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
#: Seconds that the server is away, and after which an automation calls a run dead: a fifteenth of what is shipped, more
#: than the least time between heartbeats. TWINSET_OUTAGE=600 tries the shipped time.
OUTAGE = int(os.environ.get("TWINSET_OUTAGE", "75"))
DEAD = 900 if OUTAGE > 100 else 150


def slow_recipe(folder: Path, count: int, name: str = "slow") -> Path:
    """A recipe that takes a minute or more."""
    path = folder / f"{name}.yaml"
    path.write_text(SLOW.format(count=count))
    return path


@pytest.fixture
def automations(prefect: Any, deployments: dict[str, str], tmp_path: Path) -> Any:
    """The shipped automations, with a shorter clock; removed after the test."""
    shipped = yaml.safe_load((CHECKOUT / "flows/zombies.yaml").read_text())
    assert [automation["trigger"]["within"] for automation in shipped["automations"]] == [900, 900]
    for automation in shipped["automations"]:
        automation["trigger"]["within"] = DEAD
    (tmp_path / "zombies.yaml").write_text(yaml.safe_dump(shipped))
    created = prefect("automation", "create", "--from-file", str(tmp_path / "zombies.yaml"))
    assert created.returncode == 0, created.stdout + created.stderr
    yield
    prefect("automation", "delete", "--all")


def runs_in(api: Any, out: Path) -> list[dict[str, Any]]:
    """Flow runs that write below a folder, by their tag."""
    asked = {"flow_runs": {"tags": {"all_": ["twinset", f"out={out}"]}}, "limit": 200}
    runs: list[dict[str, Any]] = api.ask("/flow_runs/filter", asked)
    return runs


def states(api: Any, out: Path) -> set[str]:
    return {run["state_type"] for run in runs_in(api, out)}


def test_a_cancelled_parent_cancels_what_it_handed_out(
    start_worker: Any, prefect: Any, api: Any, until: Any, tmp_path: Path
) -> None:
    out, recipe = tmp_path / "out", slow_recipe(tmp_path, 40)
    start_worker("main")
    worker = start_worker("render", limit=1)
    run = api.start_run("build-eqben/build-eqben", recipe=str(recipe), out=str(out), shards_a_run=5)
    until(lambda: any(out.glob("*/_meta/receipts/*")), pause=0.5)
    runs = {found["name"]: found for found in runs_in(api, out)}
    ranges = {f"eq-kubric-location {first}-{first + 4} in {out}" for first in (0, 5, 10, 15)}
    assert runs.keys() == ranges
    for name in ranges:
        assert {"twinset", f"out={out}", "slow", "eq-kubric-location"} <= {*runs[name]["tags"]}
        assert runs[name]["parent_task_run_id"] is not None, "not shown as a subflow"
    assert all("slow" in found["tags"] for found in runs.values())

    cancelled = prefect("flow-run", "cancel", run)
    assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
    until(lambda: states(api, out) <= {"CANCELLED", "COMPLETED"}, pause=0.5)
    assert api.state(run) == "CANCELLED"
    until(lambda: not children(worker), pause=0.5)
    receipts = len(list(out.glob("*/_meta/receipts/*")))
    assert receipts < 20
    time.sleep(10)
    assert len(list(out.glob("*/_meta/receipts/*"))) == receipts, "shards are made by nobody's order"


def test_a_server_that_is_away_costs_no_shard_and_no_run(
    prefect_server: PrefectServer,
    automations: None,
    start_worker: Any,
    start_twinset: Any,
    api: Any,
    twinset: Any,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    """Killed in the middle of a build in pools, of one within its run, and of one by the command line."""
    recipe = slow_recipe(tmp_path, 24)
    outs = {name: tmp_path / name for name in ("pools", "local", "here")}
    for pool in ("main", "render"):
        start_worker(pool, PREFECT_CLIENT_MAX_RETRIES="9")
    runs = {
        "pools": api.start_run("build-eqben/build-eqben", recipe=str(recipe), out=str(outs["pools"])),
        "local": api.start_run("build-eqben/local", recipe=str(recipe), out=str(outs["local"])),
    }
    here = start_twinset("build", recipe, "--out", outs["here"], **prefect_server.variables)
    until(lambda: all(any(out.glob("*/_meta/receipts/*")) for out in outs.values()), pause=0.5)
    prefect_server.kill()
    time.sleep(OUTAGE)
    prefect_server.start()
    until(lambda: all(api.state(run) in ENDED for run in runs.values()), pause=1)
    assert here.wait() == 0, (tmp_path / "log").read_text()[-3000:]
    logs = "\n".join(log.read_text()[-3000:] for log in tmp_path.glob("*.log"))
    for out in outs.values():
        until(lambda out=out: states(api, out) <= {*ENDED}, pause=1)
        assert states(api, out) == {"COMPLETED"}, logs
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    whole = contents(tmp_path / "whole")
    assert all(contents(out) == whole for out in outs.values())


def test_a_killed_run_of_shards_is_made_again_with_one_shard_at_a_time(
    start_worker: Any, api: Any, twinset: Any, contents: Any, until: Any, tmp_path: Path
) -> None:
    """As the kernel kills where memory runs out; the shards that were made stay."""
    out, recipe = tmp_path / "out", slow_recipe(tmp_path, 12)
    start_worker("main")
    worker = start_worker("render")
    run = api.start_run("build-eqben/build-eqben", recipe=str(recipe), out=str(out))
    until(lambda: any(out.glob("*/_meta/receipts/*")), pause=0.1)
    kill_below(worker)
    until(lambda: api.state(run) in ENDED, pause=1)
    assert api.state(run) == "COMPLETED", (tmp_path / "main.log").read_text()[-3000:]
    ranges = [found for found in runs_in(api, out) if "eq-kubric-location" in found["tags"]]
    assert sorted((found["state_type"], found["parameters"].get("workers")) for found in ranges) == [
        ("COMPLETED", 1),
        ("CRASHED", None),
    ]
    assert "Crashed: Process exited with status code: -9" in (tmp_path / "main.log").read_text()
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")


THEIRS = """
import time
from prefect import flow

@flow(name="theirs")
def theirs():
    time.sleep({seconds})

theirs()
"""


def test_only_dead_runs_of_twinset_are_called_crashed_and_a_retry_resumes(
    prefect: Any,
    automations: None,
    start_worker: Any,
    start_twinset: Any,
    server: dict[str, str],
    api: Any,
    twinset: Any,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    """Worker and flow die together; beside it a live build and somebody else's flow without heartbeats go on."""
    out, recipe = tmp_path / "out", slow_recipe(tmp_path, 24)
    worker = start_worker("main")
    run = api.start_run("build-eqben/local", recipe=str(recipe), out=str(out))
    until(lambda: "prefect.flow-run.heartbeat" in api.events(run))
    psutil.Process(worker.pid).suspend()  # it must not see its run die
    assert kill_below(worker)
    worker.kill()

    longer = slow_recipe(tmp_path, 80, "longer")
    live = start_twinset("build", longer, "--out", tmp_path / "live", "--workers", "1", **server)
    with (tmp_path / "theirs.log").open("ab") as log:
        theirs = subprocess.Popen(
            [sys.executable, "-c", THEIRS.format(seconds=2 * DEAD)],
            env={**server, "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "3600"}, stdout=log, stderr=log, cwd=tmp_path,
        )  # fmt: skip
    until(lambda: "prefect.flow-run.Crashed" in api.events(run), pause=1)
    start_worker("main")
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: api.state(run) in ("COMPLETED", "FAILED"), pause=1)
    assert api.state(run) == "COMPLETED", (tmp_path / "main.log").read_text()[-3000:]
    assert twinset("build", recipe, "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")

    assert theirs.wait() == 0 and live.wait() == 0, (tmp_path / "log").read_text()[-3000:]
    assert states(api, tmp_path / "live") == {"COMPLETED"}
    (other,) = api.ask("/flow_runs/filter", {"flows": {"name": {"any_": ["theirs"]}}})
    assert other["state_type"] == "COMPLETED"


def test_a_worker_that_sees_no_files_says_so(
    start_worker: Any, api: Any, until: Any, twinset: Any, tmp_path: Path
) -> None:
    start_worker("render")
    absent = tmp_path / "elsewhere"
    run = api.start_run("build-shards/render", out=str(absent), subset="eq-ag", first=0, last=3)
    until(lambda: api.state(run) in ENDED, pause=1)
    assert api.state(run) == "FAILED"
    message = api.ask(f"/flow_runs/{run}")["state"]["message"]
    assert f"{absent}/eq-ag: {os.uname().nodename} sees no plan there; OUT must be a folder that all workers" in message

    (tmp_path / "media").mkdir()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(json.dumps({"name": "mine", "subsets": {"eq-ag": {"source": {
        "kind": "action-genome", "annotations": "miniature:action_genome/annotations.pkl",
        "media": str(tmp_path / "media")}, "shard_size": 1}}}))  # fmt: skip
    assert twinset("build", recipe, "--out", tmp_path / "out", "--stage", "eq-ag", "--plan-only").returncode == 0
    (tmp_path / "media").rmdir()
    run = api.start_run("build-shards/render", out=str(tmp_path / "out"), subset="eq-ag", first=0, last=3)
    until(lambda: api.state(run) in ENDED, pause=1)
    message = api.ask(f"/flow_runs/{run}")["state"]["message"]
    assert f"on {os.uname().nodename}: " in message and str(tmp_path / "media") in message


def test_what_a_stage_warns_of_stands_in_the_log_of_its_run(
    start_worker: Any, api: Any, until: Any, small_recipe: Path, tmp_path: Path
) -> None:
    """Here of a subset of another build, whose record is damaged."""
    out = tmp_path / "out"
    (out / "eq-older/_meta").mkdir(parents=True)
    (out / "eq-older/_meta/stage.json").write_text("{}")
    start_worker("main")
    run = api.start_run("build-eqben/local", recipe=str(small_recipe), out=str(out))
    until(lambda: api.state(run) in ENDED, pause=1)
    assert api.state(run) == "COMPLETED", (tmp_path / "main.log").read_text()[-3000:]

    def warned() -> list[str]:
        asked = {"logs": {"flow_run_id": {"any_": [run]}, "level": {"ge_": 30}}, "limit": 200}
        return [line["message"] for line in api.ask("/logs/filter", asked)]

    until(lambda: any("eq-older is left as it is" in message for message in warned()), pause=1)
