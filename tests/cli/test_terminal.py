"""Nothing that is printed steers the terminal."""

import logging
from io import StringIO
from pathlib import Path

import pytest

from twinset.cli.main import main
from twinset.cli.terminal import PlainLines, say

Said = pytest.CaptureFixture[str]


def test_a_message_does_not_steer_the_terminal(tmp_path: Path, capsys: Said) -> None:
    (place := tmp_path / "\x1b]0;title\x07\u202e").mkdir()
    assert main(["status", str(place)]) != 0
    said = capsys.readouterr().err
    assert "title" in said and not {"\x1b", "\x07", "\u202e"} & set(said)


def test_lines_of_the_log_and_of_results_do_not_steer_it_either(capsys: Said) -> None:
    shown = StringIO()
    handler = logging.StreamHandler(shown)
    handler.setFormatter(PlainLines())
    handler.handle(logging.makeLogRecord({"msg": "shard %s", "args": ("\x1b]0;title\x07\nnext",)}))
    say("\x1b[2J", Path("\u202e"), sep="\n")
    said = shown.getvalue() + capsys.readouterr().out
    assert said.splitlines() == ["shard \ufffd]0;title\ufffd", "next", "\ufffd[2J", "\ufffd"]
