"""``prefect deployment run`` on a real server and real workers, from the shipped prefect.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def parameters(**given: Any) -> list[str]:
    return [f"--param={key}={json.dumps(value)}" for key, value in given.items()]


def test_local_deployment_builds_the_same_bytes(
    prefect: Any, start_worker: Any, small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    start_worker("main")
    given = parameters(recipe=str(small_recipe), out=str(out))
    result = prefect("deployment", "run", "build-eqben/local", "--watch", *given)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(out) == contents(reference)


def test_shards_in_a_work_pool_make_the_same_bytes(
    prefect: Any, start_worker: Any, small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    start_worker("main")
    start_worker("cpu")
    given = parameters(recipe=str(small_recipe), out=str(out), shards_a_run=4)
    result = prefect("deployment", "run", "build-eqben/cpu", "--watch", *given)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(out) == contents(reference)
