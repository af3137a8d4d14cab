"""Progress: bars on a terminal, and lines in a log."""

import re
from pathlib import Path

import pytest

from twinset.cli.bars import Bars, Lines
from twinset.cli.main import main

Said = pytest.CaptureFixture[str]


def test_a_log_has_a_line_where_a_stage_begins_and_one_where_it_ends(recipe: Path, capsys: Said) -> None:
    command = ["build", str(recipe), "--out", str(recipe.parent / "out")]
    assert main(command) == 0
    first, last, took = capsys.readouterr().err.splitlines()
    assert first == "pairs: making 3 of 3 shards" and re.fullmatch(r"pairs: done in \d+ s", last)
    assert re.fullmatch(r"pairs: 6 samples, [\d.]+ kB, [\d.]+ s of a core \(no estimate\)", took)
    assert main(command) == 0
    assert capsys.readouterr().err == ""  # nothing to do


def test_a_log_has_a_line_a_minute_while_shards_are_made(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    now = [0.0]
    monkeypatch.setattr("twinset.cli.bars.time.monotonic", lambda: now[0])
    lines = Lines()
    lines.begin("pairs", 5, 1)
    for now[0] in (30.0, 61.0, 90.0):
        lines.advance("pairs")
    assert capsys.readouterr().err.splitlines() == ["pairs: making 4 of 5 shards", "pairs: 3 of 5 shards after 61 s"]
    lines.begin("one", 1, 0)
    for now[0] in (100.0, 151.0, 160.0):
        lines.samples("one", int(now[0]), 2000)
    assert capsys.readouterr().err.splitlines()[1:] == ["one: 0 of 1 shards, 151 of 2,000 samples after 61 s"]


def test_the_bar_of_a_stage_of_one_shard_moves() -> None:
    bars = Bars()
    bars.begin("one", 1, 0)
    for made in (0, 300):
        bars.samples("one", made, 2000)
    (task,) = bars.progress.tasks
    assert (task.completed, task.total) == (300, 2000)
    assert task.fields["shown"].startswith("300 of 2,000 samples, 0 of 1 shards, ")
