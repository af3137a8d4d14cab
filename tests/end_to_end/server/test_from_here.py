"""``twinset build`` where ``PREFECT_API_URL`` names a server: the same flow, in the command's own process."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow  # test_deployment.py runs the same flow in a worker
def test_a_build_reports_to_the_server(
    server: dict[str, str],
    twinset: Any,
    api: Any,
    counts_of: Any,
    dag_recipe: Path,
    dag_reference: Path,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    counts = counts_of(twinset("build", dag_recipe, "--out", tmp_path / "out", "--workers", "2", "--json", **server))
    assert set(counts) == {"triplets", "focus-object"}
    assert contents(tmp_path / "out") == contents(dag_reference)
    done = dict.fromkeys(("scene-graphs", "triplets", "focus-object", "finish"), "COMPLETED")
    until(lambda: any(done.items() <= api.tasks(run["id"]).items() for run in api.ask("/flow_runs/filter", {})))


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["processes", "dask"])
def test_bytes_do_not_depend_on_the_runner(
    runner: str,
    server: dict[str, str],
    small_recipe: Path,
    twinset: Any,
    contents: Any,
    reference: Path,
    tmp_path: Path,
) -> None:
    result = twinset("build", small_recipe, "--out", tmp_path / "out", "--workers", "2", "--runner", runner, **server)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(reference)


def test_a_server_that_does_not_answer_is_named(twinset: Any, small_recipe: Path, tmp_path: Path) -> None:
    result = twinset("build", small_recipe, "--out", tmp_path / "out", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert result.returncode == 1 and not (tmp_path / "out").exists()
    assert "http://127.0.0.1:9/api" in result.stderr and "unset PREFECT_API_URL" in result.stderr
    assert "Traceback" not in result.stderr
