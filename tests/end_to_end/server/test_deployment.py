"""``prefect deployment run`` on a real server and real workers, from the shipped prefect.yaml."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import contents
from tests.end_to_end.server.conftest import Cluster

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("runner", ["threads", "ray"])
def test_local_deployment_builds_the_same_bytes(
    runner: str, cluster: Cluster, small_recipe: Path, reference: Path, tmp_path: Path
) -> None:
    """Workers of Ray import the flow by its module's name."""
    out = tmp_path / "out"
    cluster.start("main")
    result = cluster.run("build-eqben/local", recipe=str(small_recipe), out=str(out), runner=runner)
    assert result.returncode == 0, result.stdout + cluster.log()
    assert contents(out) == contents(reference)


def test_stages_in_two_pools_make_the_same_bytes_in_the_order_of_the_dag(
    cluster: Cluster, dag_recipe: Path, dag_reference: Path, tmp_path: Path
) -> None:
    """The deployment that is named as its flow; scene graphs in one pool, what reads them and another stage in both."""
    out = tmp_path / "out"
    for pool in ("main", "cpu", "render"):
        cluster.start(pool)
    settings = ["subsets.focus-object.pool=render"]
    parameters = {"recipe": str(dag_recipe), "out": str(out), "shards_a_run": 3, "settings": settings}
    result = cluster.run("build-genecis/build-genecis", **parameters)
    assert result.returncode == 0, result.stdout + cluster.log()
    assert contents(out) == contents(dag_reference)

    runs = {pool: cluster.api.runs_of(f"build-shards/{pool}") for pool in ("cpu", "render")}
    ranges = {
        pool: {tuple(run["parameters"][key] for key in ("subset", "first", "last")) for run in those}
        for pool, those in runs.items()
    }
    graphs = "_stages/scene-graphs"
    assert {(graphs, 0, 2), (graphs, 3, 5), (graphs, 6, 6), ("triplets", 0, 2)} <= ranges["cpu"]
    assert {("focus-object", 0, 2), ("focus-object", 3, 3)} <= ranges["render"]
    ours = [run for run in runs["cpu"] if run["parameters"]["out"] == str(out)]
    parsed = max(run["end_time"] for run in ours if run["parameters"]["subset"] == graphs)
    assert parsed <= min(run["start_time"] for run in ours if run["parameters"]["subset"] == "triplets")
    assert {"triplets-card", "focus-object-card", "build-genecis"} <= cluster.api.artifacts().keys()


def test_a_failed_stage_is_named_and_what_reads_it_does_not_run(
    cluster: Cluster, dag_recipe: Path, dag_reference: Path, tmp_path: Path
) -> None:
    """Captions that cannot be read, which their plan finds out; the stage beside it is built."""
    out, captions = tmp_path / "out", tmp_path / "captions.jsonl"
    captions.write_bytes(b"{oops\n")
    cluster.start("main")
    settings = [f"stages.scene-graphs.source.captions={captions}"]
    result = cluster.run("build-eqben/local", recipe=str(dag_recipe), out=str(out), settings=settings)
    assert result.returncode == 1
    log = cluster.log()
    assert f"{captions}: not one" in log and "Traceback" not in log, log[-3000:]
    assert not (out / "triplets").exists()
    made = contents(out / "focus-object")
    tars = {name: content for name, content in contents(dag_reference / "focus-object").items() if ".tar" in name}
    assert tars and tars.items() <= made.items()
