"""Builds that are killed a few times end as if nothing had happened; `tests.trials.kills` kills more, and all else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trials.killed_processes import of_checkout


@pytest.mark.slow
def test_killed_builds_end_in_the_same_bytes_and_leave_no_process(tmp_path: Path) -> None:
    trial = [sys.executable, "-m", "tests.trials.kills", "--what", "build-threads,build-processes", "--kills", "20"]
    environment = os.environ | of_checkout(tmp_path / "cache")
    done = subprocess.run([*trial, "--folder", tmp_path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
