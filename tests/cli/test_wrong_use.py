"""Wrong use, what commands import, and text that would steer a terminal."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.conftest import PUBLISHED
from twinset.cli.main import application, main
from twinset.cli.terminal import LogLines, say

HEAVY = {
    *("torch", "torchvision", "transformers", "diffusers", "spacy", "sklearn", "scipy", "pandas"),
    *("prefect", "pyarrow.dataset", "matplotlib", "cv2", "av", "bpy", "tensorboard", "datasets", "uvicorn"),
}
CODE = f"""
import contextlib, io, json, sys
from twinset.cli.main import main
for line in sys.stdin:
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(shown):
        code = main(json.loads(line))
    print(json.dumps([code, shown.getvalue(), sorted({HEAVY!r} & sys.modules.keys())]), flush=True)
"""
#: By command: what is wrong, and what the message says.
WRONG = [
    ("buidl demo", "Did you mean 'build'?"),
    ("build recipe.yaml", "Missing option '--out'"),
    ("slurm recipe.yaml -o s3://bucket/new --dry-run", "--scripts DIR"),
    ("eval questions --benchmark winoground -o Q", "--benchmark NAME=DIR"),
    ("eval run --benchmark sugarcrepe=. --model random:ViT-B-32 -o s3://b/x", "s3:/b/x: is a URL"),
    ("status absent", "absent holds no dataset"),
    ("export out --format openclipp -o new", "did you mean 'openclip'"),
    ("publish out --to hf://lab/shades", "write hf://datasets/ORG/NAME"),
    ("eval submission --benchmark cirr-tst=. --model random:ViT-B-32 -o new", "did you mean 'cirr-test'"),
    ("train clip --out new", "Missing option '--data'"),
]


def walked(command: Any, context: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and sub-command."""
    yield words
    for name in getattr(command, "list_commands", lambda _: [])(context):
        yield from walked(command.get_command(context, name), context, (*words, name))


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_use_is_told_in_a_line(
    shades: Path, words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shades.parent)
    before = sorted(shades.parent.rglob("*"))
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert message in line and printed.out == ""
    assert sorted(shades.parent.rglob("*")) == before


def test_help_of_every_command_and_a_finished_build_import_nothing_slow(tmp_path: Path, shades: Path) -> None:
    removed = ("PREFECT_API_URL", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    environment |= {"HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": os.pathsep.join(sys.path)}
    commands = [*walked(typer.main.get_command(application()), None)]
    build = ["build", str(shades), "--out", str(shades.parent / "out"), *(f"--set={text}" for text in PUBLISHED)]
    asked = "".join(json.dumps(words) + "\n" for words in (*([*words, "--help"] for words in commands), build))
    done = subprocess.run(
        [sys.executable, "-c", CODE], input=asked, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    )
    *helped, built = map(json.loads, done.stdout.splitlines())
    assert built[0] == 0 and built[2] == [], built
    for words, (code, shown, slow) in zip(commands, helped, strict=True):
        assert (code, slow) == (0, []) and f"Usage: {' '.join(['twinset', *words])}" in shown
        assert "\x1b" not in shown and ("COMMAND" in shown or "--json" in shown)


def test_nothing_that_is_printed_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place := tmp_path / "\x1b]0;title\x07\u202e").mkdir()
    assert main(["status", str(place)]) != 0
    shown = StringIO()
    handler = logging.StreamHandler(shown)
    handler.setFormatter(LogLines())
    handler.handle(logging.makeLogRecord({"msg": "shard %s", "args": ("\x1b]0;title\x07\nnext",)}))
    say("\x1b[2J", Path("\u202e"))
    printed = capsys.readouterr()
    lines = printed.err + shown.getvalue() + printed.out
    assert lines.count("title") == 3 and "\ufffd[2J" in lines and not {"\x1b", "\x07", "\u202e"} & {*lines}
