"""Progress where there is no terminal: lines of a log."""

from types import SimpleNamespace

import pytest

from twinset.cli import terminal


def test_a_training_says_where_it_is_at_once_each_minute_and_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: clock.now))
    rows = terminal.Rows()
    for step in range(1, 21):
        clock.now = 14.0 * step
        rows.trained(step, 20, {"loss": 4.1576})
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("training: ")[2] for line in lines] == [
        f"{step} of 20 steps, loss 4.158" for step in (1, 6, 11, 16, 20)
    ]
