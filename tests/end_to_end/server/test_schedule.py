"""Schedules on a real server: one of a minute makes a run that builds, and neither kind is lost by the next deploy."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cached_builds import CHECKOUT

pytestmark = pytest.mark.slow


@pytest.fixture
def with_weekly(small_recipe: Path, tmp_path: Path) -> Iterator[Path]:
    """prefect.yaml and the deployment that docs/cluster.md shows, of a small recipe.

    It lies beside the shipped one: Prefect takes the folder of the file for the checkout.
    """
    (shown,) = re.findall(r"```yaml\n(  - name: weekly\n.*?)```", (CHECKOUT / "docs/cluster.md").read_text(), re.DOTALL)
    shown = shown.replace("/data/mine.yaml", str(small_recipe)).replace("s3://bucket/mine", str(tmp_path / "out"))
    path = CHECKOUT / f"prefect-{tmp_path.name}.yaml"
    path.write_text((CHECKOUT / "prefect.yaml").read_text() + shown)
    yield path
    path.unlink()


def schedules(prefect: Any, deployment: str) -> list[dict[str, Any]]:
    shown: subprocess.CompletedProcess[str] = prefect("deployment", "inspect", deployment, "--output", "json")
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, Any]] = json.loads(shown.stdout)["schedules"]
    return found


def test_a_schedule_of_a_minute_builds_and_outlives_the_next_deploy(
    prefect: Any,
    start_worker: Any,
    api: Any,
    with_weekly: Path,
    reference: Path,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    for pool in ("main", "cpu"):
        start_worker(pool)
    deploy = ("--no-prompt", "deploy", "--prefect-file", str(with_weekly), "--all")
    assert (deployed := prefect(*deploy)).returncode == 0, deployed.stdout + deployed.stderr
    (sundays,) = schedules(prefect, "build-eqben/weekly")
    assert sundays["active"] and sundays["schedule"]["cron"] == "0 3 * * 0"

    for name in ("weekly", "local"):
        asked = ("deployment", "schedule", "create", f"build-eqben/{name}", "--timezone", "UTC")
        cron = "* * * * *" if name == "weekly" else "0 4 1 1 *"
        created = prefect(*asked, "--cron", cron)
        assert created.returncode == 0, created.stdout + created.stderr

    def built() -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = api.runs_of("build-eqben/weekly")
        assert not [run for run in runs if run["state_type"] in ("FAILED", "CRASHED")], (
            tmp_path / "main.log"
        ).read_text()
        return [run for run in runs if run["state_type"] == "COMPLETED"]

    (first, *_) = until(built, pause=1)
    assert first["auto_scheduled"] and first["parameters"]["out"] == str(out)
    assert contents(out) == contents(reference)

    assert (deployed := prefect(*deploy)).returncode == 0, deployed.stdout + deployed.stderr
    assert [found["schedule"]["cron"] for found in schedules(prefect, "build-eqben/weekly")] == ["0 3 * * 0"]
    (yearly,) = schedules(prefect, "build-eqben/local")
    assert yearly["active"] and yearly["schedule"]["cron"] == "0 4 1 1 *"
