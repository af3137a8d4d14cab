"""Kill -9 at random moments, again and again: the dataset ends as if nothing had happened."""

import os
import random
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.conftest import contents
from tests.waiting import wait_until

SEED, KILLS = 20, 20


def listing(out: Path) -> set[str]:
    """Everything below OUT, while others write there."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(out) for name in ("", *names)}


def has_written(out: Path, before: set[str], files: int, process: subprocess.Popen[bytes]) -> bool:
    return len(listing(out) - before) >= files or process.poll() is not None


@pytest.mark.slow
def test_killed_in_every_stage(
    dag_recipe: Path, dag_reference: Path, start_twinset: Any, twinset: Any, tmp_path: Path
) -> None:
    """A build dies some files after it began to write: later ones die later in the DAG."""
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(dag_reference)
    command = ("build", dag_recipe, "--out", out, "--workers", "2")
    for _ in range(KILLS):
        before, process = listing(out), start_twinset(*command)
        wait_until(partial(has_written, out, before, chance.randint(1, 12), process), pause=0.002)
        process.kill()
        assert process.wait() in (0, -9), (tmp_path / "log").read_text()[-2000:]
        if contents(out) == whole:  # so that there is something to do again, in any stage
            receipts = sorted(out.rglob("receipts/*.json"))
            for receipt in chance.sample(receipts, len(receipts) // 2):
                receipt.unlink()
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0


@pytest.mark.slow
def test_children_end_with_a_killed_build(start_twinset: Any, tmp_path: Path) -> None:
    """Faces are found in child processes: those of a build that was killed do not live on."""
    out = tmp_path / "out"
    build = start_twinset("build", "demo", "--only", "eq-youcook2", "--workers", "2", "--out", out)
    wait_until(lambda: list((out / "_spool").glob("*")) and psutil.Process(build.pid).children())
    children = psutil.Process(build.pid).children(recursive=True)
    build.kill()
    build.wait()
    wait_until(lambda: not [child for child in children if child.is_running() and child.status() != "zombie"])
