"""``twinset train clip``: from words to settings, and what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest

import twinset
from twinset.cli.main import main
from twinset.cli.train.run import progress

FOUND = {
    "model": "open_clip:out", "best": "out/best.safetensors", "last": "out/last.safetensors", "sha256": "e",
    "best_step": 4, "steps": 8,
    "resumed_at": 0, "idle": {}, "loss": 1.25, "report": "out/report.html",
    "validation": {"loss": 1.5, "accuracy": 50.0, "chance": 12.5, "text": 40.0},
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `twinset.train` was called with."""
    calls: list[Any] = []

    def train(data: Any, out: Path, task: str, on_progress: Any, **settings: Any) -> dict[str, Any]:
        assert task == "clip"
        calls.append((data, out, settings))
        return FOUND

    monkeypatch.setattr(twinset, "train", train)
    return calls


def test_only_what_was_said_is_a_setting(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "clip", "--data", "a:b", "--data", "c*2", "--out", "out"]) == 0
    options = ("--weights", "random", "--lr", "1e-4", "--betas", ".9", ".95", "--allow-mixed-runtimes", "--json")
    assert main(["train", "clip", "--data", "a", "--out", "out", "--validation", "v", *options]) == 0
    assert asked[0] == (["a:b", "c*2"], Path("out"), {})
    said = {"validation": ["v"], "weights": None, "lr": "1e-4", "betas": [".9", ".95"], "allow_mixed_runtimes": True}
    assert asked[1][2] == said
    printed = capsys.readouterr().out
    assert "8 steps; loss 1.2500" in printed and "best weights: out/best.safetensors (step 4)" in printed
    validated = [line.split(maxsplit=2)[2] for line in printed.splitlines() if "validation" in line][:3]
    assert validated == ["1.5000", "50.00 % (chance 12.50 %)", "40.00 %"]
    assert json.loads(printed.splitlines()[-1]) == FOUND


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--batch", "10", "--accumulate", "3"), "3 parts do not divide a batch of 10"),
        (("--lr", "fast"), "lr: Input should be a valid number"),
        (("--regulariser-weight", "1"), "names no regulariser"),
    ],
)
def test_wrong_settings_are_told_before_any_work(
    tmp_path: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "clip", "--data", "nowhere", "--out", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("steps", [1, 60, 12_000])
def test_a_log_shows_how_far_the_training_is(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as on_progress:
        for step in range(1, steps + 1):
            on_progress(step, steps, {"loss": 1 / step})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"1 of {steps:,} steps, loss 1.000" and lines[-1].startswith(f"{steps:,} of {steps:,} steps")
    assert len(lines) <= 1 + max(20, steps // 100)
