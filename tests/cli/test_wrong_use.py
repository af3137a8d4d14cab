"""Wrong use of every command: exit code and message, without an import of anything slow. So with ``--help``.

One process runs all cases. Nothing that is printed steers the terminal.
"""

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
    said, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
        try:
            code = main(json.loads(line))
        except SystemExit as ended:
            code = ended.code
    slow = sorted({HEAVY!r} & sys.modules.keys())
    print(json.dumps([f"imports {{slow}}" if slow else code, said.getvalue(), shown.getvalue()]), flush=True)
"""
RUN = ("eval", "run", "--out", "new")
TRAIN = ("train", "clip", "--out", "new")
#: By command: what is wrong, and what the message says.
WRONG = [
    ("buidl demo", "Did you mean 'build'?"),
    ("build recipe.yaml", "Missing option '--out'"),
    ("slurm recipe.yaml -o s3://bucket/new --dry-run", "--scripts DIR"),
    ("eval questions --benchmark winoground -o Q", "--benchmark NAME=DIR"),
    ("eval agreement nothing.csv", "nothing.csv"),
    ("eval run --benchmark sugarcrepe=. --model random:ViT-B-32 -o s3://b/x", "s3:/b/x: is a URL"),
    ("build recipe.yaml -o new --set subsets.pairs.source.medai=x", "medai"),
    ("plan recipe.yaml --set subsets.pairs.shard_size=0", "shard_size"),
    ("parse absent.tsv -o new", "absent.tsv: there is no such file"),
    ("status absent", "absent holds no dataset"),
    ("look out --count 0", "--count 0"),
    ("export out --format openclipp -o new", "did you mean 'openclip'"),
    ("eval report absent", "absent"),
    ("eval scores pairs.jsonl", "pairs.jsonl"),
    ("eval answers absent", "absent"),
    ("eval compare absent.csv absent.csv", "absent.csv"),
    ("verify absent", "absent holds no dataset"),
    ("eval human out --data out", "--data: is for --out RUN"),
    ("eval blind twinset=absent", "absent"),
    ("publish out --to hf://lab/shades", "write hf://datasets/ORG/NAME"),
    ("eval benchmarks absent", "absent: there is no such folder"),
    ("eval submission --benchmark cirr-tst=. --model random:ViT-B-32 -o new", "did you mean 'cirr-test'"),
    ("eval demo --dta x", "--data"),
    ("kinds image-pair", "did you mean 'image-pairs'"),
    ("review out --annotator anna", "use --annotators"),
    (f"{' '.join(TRAIN)}", "Missing option '--data'"),
    (f"{' '.join(TRAIN)} --data out --model absent.json", "there is no configuration absent.json"),
    ("train combiner --data out --out new", "training on triplets reads triplet"),
    ("train fusion --data out --out new --model blip-itm:absent", "there is no model folder absent"),
    ("train grid absent.yaml --out new", "absent.yaml: cannot be read"),
    ("train detectors --data out --out new --model clip:absent", "there is no model folder absent"),
    ("train demo --ot new", "--out"),
]


def walked(found: Any, context: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and sub-command."""
    yield words
    for name in getattr(found, "list_commands", lambda _: [])(context):
        yield from walked(found.get_command(context, name), context, (*words, name))


COMMANDS = [*walked(typer.main.get_command(application()), None)]


def run(cases: list[list[str]], folder: Path) -> list[tuple[int | str, str, str]]:
    """Exit code, stderr and stdout of each."""
    removed = ("PREFECT_API_URL", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    environment |= {"HF_HOME": str(folder / "hf"), "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [sys.executable, "-c", CODE], input=asked, capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    return [(code, said, shown) for code, said, shown in map(json.loads, done.stdout.splitlines())]


@pytest.mark.slow
def test_wrong_use_is_told_without_a_slow_import(built: Path) -> None:
    folder = built.parent
    before = sorted(folder.rglob("*"))
    problems = []
    for (words, said), (code, error, shown) in zip(
        WRONG, run([words.split() for words, _ in WRONG], folder), strict=True
    ):
        if code != 2 or said not in error or shown or len(error.splitlines()) != 1:
            problems.append(f"twinset {words}\n    {code} {error}{shown}")
    assert not problems, "\n".join(problems)
    assert sorted(folder.rglob("*")) == before


def test_every_command_is_tried() -> None:
    leaves = [" ".join(words) for words in COMMANDS if not any(other[:-1] == words for other in COMMANDS)]
    assert [one for one in leaves if not any(f"{words} ".startswith(f"{one} ") for words, _ in WRONG)] == []


def test_help_of_every_command_imports_nothing_slow(tmp_path: Path) -> None:
    cases = [[*words, "--help"] for words in COMMANDS]
    for case, (code, error, shown) in zip(cases, run(cases, tmp_path), strict=True):
        assert (code, error) == (0, "") and f"Usage: {' '.join(['twinset', *case[:-1]])}" in shown
        assert "\x1b" not in shown and ("COMMAND" in shown or "--json" in shown)


Said = pytest.CaptureFixture[str]


def test_nothing_that_is_printed_steers_the_terminal(tmp_path: Path, capsys: Said) -> None:
    (place := tmp_path / "\x1b]0;title\x07\u202e").mkdir()
    assert main(["status", str(place)]) != 0
    shown = StringIO()
    handler = logging.StreamHandler(shown)
    handler.setFormatter(LogLines())
    handler.handle(logging.makeLogRecord({"msg": "shard %s", "args": ("\x1b]0;title\x07\nnext",)}))
    say("\x1b[2J", Path("\u202e"))
    printed = capsys.readouterr()
    said = printed.err + shown.getvalue() + printed.out
    assert said.count("title") == 3 and "\ufffd[2J" in said and not {"\x1b", "\x07", "\u202e"} & {*said}
