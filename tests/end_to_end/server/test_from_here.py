"""``twinset build`` where ``PREFECT_API_URL`` names a server: the same flow, in the command's own process."""

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import contents, counts_of
from tests.end_to_end.server.conftest import Cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_a_build_reports_to_the_server(
    cluster: Cluster, server: dict[str, str], twinset: Any, dag_recipe: Path, dag_reference: Path, tmp_path: Path
) -> None:
    counts = counts_of(twinset("build", dag_recipe, "--out", tmp_path / "out", "--workers", "2", "--json", **server))
    assert set(counts) == {"triplets", "focus-object"}
    assert contents(tmp_path / "out") == contents(dag_reference)
    done = dict.fromkeys(("scene-graphs", "triplets", "focus-object", "finish"), "COMPLETED")
    api = cluster.api
    wait_until(lambda: any(done.items() <= api.tasks(run["id"]).items() for run in api.ask("/flow_runs/filter", {})))


@pytest.mark.parametrize("runner", ["processes", "dask"])
def test_bytes_do_not_depend_on_the_runner(
    runner: str, server: dict[str, str], small_recipe: Path, twinset: Any, reference: Path, tmp_path: Path
) -> None:
    result = twinset("build", small_recipe, "--out", tmp_path / "out", "--workers", "2", "--runner", runner, **server)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(reference)


def test_a_wrong_input_is_a_sentence(server: dict[str, str], twinset: Any, small_recipe: Path, tmp_path: Path) -> None:
    wrong = ("--set", "subsets.eq-ag.source.annotations=/nowhere.pkl")
    result = twinset("build", small_recipe, "--out", tmp_path / "out", *wrong, **server)
    assert result.returncode == 2
    assert "\ntwinset: subsets.eq-ag.source.annotations: there is no file /nowhere.pkl" in result.stderr


def test_a_server_that_does_not_answer_is_named(twinset: Any, small_recipe: Path, tmp_path: Path) -> None:
    result = twinset("build", small_recipe, "--out", tmp_path / "out", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert result.returncode == 1 and not (tmp_path / "out").exists()
    assert "http://127.0.0.1:9/api" in result.stderr and "unset PREFECT_API_URL" in result.stderr
    assert "Traceback" not in result.stderr
