"""``twinset train demo``: trains on a built demo, and is done when it is called again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60  # of one processor; a busy machine takes longer


@pytest.mark.slow
def test_the_demo_trains_in_a_minute_of_a_processor(smaller_demo: Any, twinset: Any, tmp_path: Path) -> None:
    places = ("--data", smaller_demo[0], "--out", tmp_path / "out")
    before = os.times()
    result = twinset("train", "demo", *places, OMP_NUM_THREADS="1")
    after = os.times()
    assert result.returncode == 0, result.stderr
    assert after.children_user + after.children_system - before.children_user - before.children_system < SECONDS
    out = tmp_path / "out"
    assert {f"report: {out / 'report.html'}", f"model: open_clip:{out}"} <= {*result.stdout.splitlines()}
    losses = [json.loads(line)["loss"] for line in (out / "history.jsonl").read_text().splitlines()]
    assert len(losses) == 40 and losses[-1] < losses[0] / 1.5
    again = twinset("train", "demo", *places, OMP_NUM_THREADS="1")
    assert "resumed_at: 40" in again.stdout
