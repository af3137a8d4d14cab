"""Builds that are killed a few times end as if nothing had happened; `tests.trials.kills` kills more, and all else."""

import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CHECKOUT, of_checkout
from tests.made_recipe import run


@pytest.mark.slow
def test_killed_builds_end_in_the_same_bytes_and_leave_no_process(tmp_path: Path) -> None:
    trial = [sys.executable, "-m", "tests.trials.kills", "--what", "build-threads,build-processes", "--kills", "20"]
    run([*trial, "--folder", tmp_path], CHECKOUT, of_checkout())
