"""``prefect deployment run`` on a real server and real workers, from the shipped prefect.yaml.

Of the tests of test_from_here.py it holds the one that needs a server and is not slow: a file has a server of its own.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server.conftest import parameters

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("runner", ["threads", "ray"])
def test_local_deployment_builds_the_same_bytes(
    runner: str, prefect: Any, start_worker: Any, small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    """Workers of Ray import the flow by its module's name."""
    out = tmp_path / "out"
    start_worker("main")
    given = parameters(recipe=str(small_recipe), out=str(out), runner=runner)
    result = prefect("deployment", "run", "build-eqben/local", "--watch", *given)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(out) == contents(reference)


@pytest.mark.slow
def test_stages_in_two_pools_make_the_same_bytes_in_the_order_of_the_dag(
    prefect: Any, start_worker: Any, api: Any, dag_recipe: Path, dag_reference: Path, contents: Any, tmp_path: Path
) -> None:
    """The deployment that is named as its flow; scene graphs in one pool, what reads them and another stage in both."""
    out = tmp_path / "out"
    for pool in ("main", "cpu", "render"):
        start_worker(pool)
    settings = ["subsets.focus-object.pool=render"]
    given = parameters(recipe=str(dag_recipe), out=str(out), shards_a_run=3, settings=settings)
    result = prefect("deployment", "run", "build-genecis/build-genecis", "--watch", *given)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(out) == contents(dag_reference)

    runs = {pool: api.runs_of(f"build-shards/{pool}") for pool in ("cpu", "render")}
    ranges = {
        pool: {tuple(run["parameters"][key] for key in ("subset", "first", "last")) for run in found}
        for pool, found in runs.items()
    }
    graphs = "_stages/scene-graphs"
    assert {(graphs, 0, 2), (graphs, 3, 5), (graphs, 6, 6), ("triplets", 0, 2)} <= ranges["cpu"]
    assert {("focus-object", 0, 2), ("focus-object", 3, 3)} <= ranges["render"]
    ours = [run for run in runs["cpu"] if run["parameters"]["out"] == str(out)]
    parsed = max(run["end_time"] for run in ours if run["parameters"]["subset"] == graphs)
    assert parsed <= min(run["start_time"] for run in ours if run["parameters"]["subset"] == "triplets")

    artifacts = {found["key"] for found in api.ask("/artifacts/latest/filter", {"limit": 200})}
    assert {"triplets-card", "focus-object-card", "build-genecis"} <= artifacts


@pytest.mark.slow
def test_negatives_and_their_images_are_made_in_pools(
    prefect: Any,
    start_worker: Any,
    negatives_recipe: Path,
    negatives_reference: Path,
    contents: Any,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    for pool in ("main", "cpu", "gpu"):
        start_worker(pool)
    given = parameters(recipe=str(negatives_recipe), out=str(out), settings=["stages.small-images.pool=gpu"])
    result = prefect("deployment", "run", "build-bivlc/build-bivlc", "--watch", *given)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(out) == contents(negatives_reference)


@pytest.mark.slow
def test_a_failed_stage_is_named_and_what_reads_it_does_not_run(
    prefect: Any, start_worker: Any, dag_recipe: Path, contents: Any, dag_reference: Path, tmp_path: Path
) -> None:
    """Captions that cannot be read, which their plan finds out; the stage beside it is built."""
    out, captions = tmp_path / "out", tmp_path / "captions.jsonl"
    captions.write_bytes(b"{oops\n")
    start_worker("main")
    settings = [f"stages.scene-graphs.source.captions={captions}"]
    given = parameters(recipe=str(dag_recipe), out=str(out), settings=settings)
    result = prefect("deployment", "run", "build-eqben/local", "--watch", *given)
    assert result.returncode == 1
    log = (tmp_path / "main.log").read_text()
    assert f"{captions}: not one" in log and "Traceback" not in log, log[-3000:]
    assert not (out / "triplets").exists()
    made = contents(out / "focus-object")
    tars = {name: content for name, content in contents(dag_reference / "focus-object").items() if ".tar" in name}
    assert tars and tars.items() <= made.items()


def test_a_wrong_input_of_a_build_from_here_is_a_sentence(
    server: dict[str, str], twinset: Any, small_recipe: Path, tmp_path: Path
) -> None:
    wrong = ("--set", "subsets.eq-ag.source.annotations=/nowhere.pkl")
    result = twinset("build", small_recipe, "--out", tmp_path / "out", *wrong, **server)
    assert result.returncode == 2
    assert "\ntwinset: subsets.eq-ag.source.annotations: there is no file /nowhere.pkl" in result.stderr
