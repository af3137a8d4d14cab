"""``twinset eval demo`` on the demo that ``twinset build demo`` makes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120  # of one processor; a busy machine takes longer


@pytest.mark.slow
def test_the_demo_is_scored_in_two_minutes_of_a_processor(built_demo: Any, twinset: Any, tmp_path: Path) -> None:
    before = os.times()
    places = ("--data", built_demo[0], "--out", tmp_path / "out", "--cache", tmp_path / "cache")
    result = twinset("eval", "demo", *places, OMP_NUM_THREADS="1")
    after = os.times()
    assert result.returncode == 0, result.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < SECONDS
    found = json.loads((tmp_path / "out" / "results.json").read_text())["benchmarks"]
    assert set(found) == {"demo-pairs", "demo-text-pairs", "demo-galleries"}
    subsets = {name for one in found.values() for model in one["models"].values() for name in model["by_subset"]}
    assert {"eq-ag", "eq-kubric-counting", "eq-sd", "bivlc", "change-object"} <= subsets
