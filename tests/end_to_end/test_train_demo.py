"""``twinset train demo``: builds its twins, trains, and is done when it is called again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

SECONDS = 180  # of one processor, the build included; a busy machine takes longer
CHANCE = 100 / 6  # of the group score


@pytest.mark.slow
def test_the_demo_trains_in_three_minutes_of_a_processor(twinset: Any, tmp_path: Path) -> None:
    places = ("--data", tmp_path / "data", "--out", tmp_path / "out")
    before = os.times()
    result = twinset("train", "demo", *places, OMP_NUM_THREADS="1")
    after = os.times()
    assert result.returncode == 0, result.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < SECONDS
    out = tmp_path / "out"
    assert result.stdout.splitlines()[-2:] == [str(out / "report.html"), f"open_clip:{out}"]
    rows = [json.loads(line) for line in (tmp_path / "out" / "history.jsonl").read_text().splitlines()]
    assert rows[-1]["validation"]["group"] > 1.5 * CHANCE
    again = twinset("train", "demo", *places, OMP_NUM_THREADS="1")
    assert "nothing was left to do" in again.stdout
