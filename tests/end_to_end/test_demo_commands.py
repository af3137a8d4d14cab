"""``twinset eval demo`` and ``twinset train demo`` on the demo that ``twinset build demo`` makes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def timed(twinset: Any, *arguments: str | Path) -> tuple[float, Any]:
    """Seconds of one processor, which count on a busy machine, and what the command printed."""
    before = os.times()
    result = twinset(*arguments, OMP_NUM_THREADS="1")
    after = os.times()
    assert result.returncode == 0, result.stderr
    return sum(after[2:4]) - sum(before[2:4]), result


def test_the_demo_is_scored_in_two_minutes_of_a_processor(built_demo: Path, twinset: Any, tmp_path: Path) -> None:
    places = ("--data", built_demo, "--out", tmp_path / "out", "--cache", tmp_path / "cache")
    seconds, _ = timed(twinset, "eval", "demo", *places)
    assert seconds < 120
    benchmarks = json.loads((tmp_path / "out" / "results.json").read_text())["benchmarks"]
    assert set(benchmarks) == {"demo-pairs", "demo-text-pairs", "demo-galleries"}
    models = [model for benchmark in benchmarks.values() for model in benchmark["models"].values()]
    subsets = {name for model in models for name in model["by_subset"]}
    assert {"eq-ag", "eq-kubric-counting", "eq-sd", "bivlc", "change-object"} <= subsets


def test_the_demo_trains_in_a_minute_of_a_processor(built_demo: Path, twinset: Any, tmp_path: Path) -> None:
    """It is done when it is called again."""
    out = tmp_path / "out"
    seconds, result = timed(twinset, "train", "demo", "--data", built_demo, "--out", out)
    assert seconds < 60
    assert {f"report: {out / 'report.html'}", f"model: open_clip:{out}"} <= {*result.stdout.splitlines()}
    losses = [json.loads(line)["loss"] for line in (out / "history.jsonl").read_text().splitlines()]
    assert len(losses) == 40 and losses[-1] < losses[0] / 1.5
    _, again = timed(twinset, "train", "demo", "--data", built_demo, "--out", out)
    assert "resumed_at: 40" in again.stdout
