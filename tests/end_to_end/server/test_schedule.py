"""Schedules on a real server: one of a minute makes a run that builds, and neither kind is lost by the next deploy."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import CHECKOUT, contents
from tests.end_to_end.server.conftest import Cluster
from tests.waiting import wait_until

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


def crons(cluster: Cluster, deployment: str) -> list[str]:
    shown = cluster.prefect("deployment", "inspect", deployment, "--output", "json")
    return [kept["schedule"]["cron"] for kept in json.loads(shown.stdout)["schedules"] if kept["active"]]


def test_a_schedule_of_a_minute_builds_and_outlives_the_next_deploy(
    cluster: Cluster, with_weekly: Path, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for pool in ("main", "cpu"):
        cluster.start(pool)
    deploy = ("--no-prompt", "deploy", "--prefect-file", str(with_weekly), "--all")
    cluster.prefect(*deploy)
    assert crons(cluster, "build-eqben/weekly") == ["0 3 * * 0"]
    for name, cron in (("weekly", "* * * * *"), ("local", "0 4 1 1 *")):
        made = ("deployment", "schedule", "create", f"build-eqben/{name}", "--timezone", "UTC", "--cron", cron)
        cluster.prefect(*made)

    def built() -> list[dict[str, Any]]:
        runs = cluster.api.runs_of("build-eqben/weekly")
        assert not [run for run in runs if run["state_type"] in ("FAILED", "CRASHED")], cluster.log()
        return [run for run in runs if run["state_type"] == "COMPLETED"]

    (first, *_) = wait_until(built, pause=1)
    assert first["auto_scheduled"] and first["parameters"]["out"] == str(out)
    assert contents(out) == contents(reference)

    cluster.prefect(*deploy)
    assert crons(cluster, "build-eqben/weekly") == ["0 3 * * 0"]
    assert crons(cluster, "build-eqben/local") == ["0 4 1 1 *"]
