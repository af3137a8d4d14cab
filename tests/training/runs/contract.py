"""What every task of the trainer passes: killed at some steps it ends with the same bytes as without."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from twinset.training.runs import checkpoint
from twinset.training.runs.trainer import OnProgress


class Killed(Exception):
    """Instead of SIGKILL: nothing of the run catches it."""


def killed_after(step: int) -> OnProgress:
    def stop(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == step:
            raise Killed

    return stop


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


def sha256(path: Path | str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def resumes_exactly(train: Callable[..., Any], settings: Any, out: Path, kills: Sequence[int]) -> list[dict[str, Any]]:
    """Kill a run after some steps and let it end in ``out/killed``; returns the rows of its history."""
    straight = train(settings, out / "straight", report=False)
    for step in kills:
        with pytest.raises(Killed):
            train(settings, out / "killed", killed_after(step), report=False)
    assert (out / "killed" / checkpoint.FILE).is_file()
    resumed = train(settings, out / "killed", report=False)
    assert 0 < resumed["resumed_at"] <= kills[-1] and resumed["sha256"] == straight["sha256"]
    assert sha256(resumed["best"]) == sha256(straight["best"])
    rows = rows_of(out / "killed")
    assert rows == rows_of(out / "straight")  # logged values too, to the last bit
    assert all(0 <= row[name] <= 100 for row in rows for name in row if name.endswith("accuracy"))
    before = {path: path.read_bytes() for path in (out / "killed").iterdir() if path.is_file()}
    assert (out / "killed" / checkpoint.FILE) not in before
    again = train(settings, out / "killed", lambda *_: pytest.fail("a step was taken"))
    assert again == {**resumed, "resumed_at": again["steps"]}
    assert {path: path.read_bytes() for path in before} == before
    for name in ("README.md", "data.json"):  # what is published beside the weights
        assert str(out) not in (out / "killed" / name).read_text()
    return rows
