"""Builds that are killed a few times end as if nothing had happened; `tests.trials.kills` kills more, and all else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import of_checkout


@pytest.mark.slow
def test_killed_builds_end_in_the_same_bytes_and_leave_no_process(tmp_path: Path) -> None:
    trial = [sys.executable, "-m", "tests.trials.kills", "--what", "build-threads,build-processes", "--kills", "20"]
    done = subprocess.run([*trial, "--folder", tmp_path], env=of_checkout(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
