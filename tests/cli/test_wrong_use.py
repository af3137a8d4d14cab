"""Wrong use of every command: exit code and message, without an import of anything slow. So with ``--help``.

One process runs all cases. In it a heavy module cannot be imported: who asks for one fails with its name.

Nothing that is printed steers the terminal.
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

HEAVY = (
    *("torch", "torchvision", "transformers", "diffusers", "spacy", "sklearn", "scipy", "pandas"),
    *("prefect", "pyarrow.dataset", "matplotlib", "cv2", "av", "bpy", "tensorboard", "datasets", "uvicorn"),
)
CODE = f"""
import contextlib, importlib.machinery, io, json, sys
class Heavy(BaseException):
    pass
class Watch:  # a library may ask whether another is installed: its import alone is slow
    def find_spec(self, name, *_):
        return importlib.machinery.ModuleSpec(name, self) if name in {HEAVY!r} else None
    def create_module(self, spec):
        raise Heavy(spec.name)
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, Watch())
from twinset.cli.main import main
for line in sys.stdin:
    said, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
        try:
            code = main(json.loads(line))
        except SystemExit as ended:
            code = ended.code
        except Heavy as heavy:
            import traceback
            code = f"imports {{heavy}}: " + "".join(traceback.format_tb(heavy.__traceback__)[-6:])
    print(json.dumps([code, said.getvalue(), shown.getvalue()]), flush=True)
"""
RUN = ("eval", "run", "--out", "new")
TRAIN = ("train", "clip", "--out", "new")
#: By command: what is wrong, and what the message says.
WRONG = [
    ("buidl demo", "Did you mean 'build'?"),
    ("plan demo --verbos", "--verbose"),
    ("build recipe.yaml -o new --runner thread", "'threads', 'processes'"),
    ("build recipe.yaml", "Missing option '--out'"),
    ("build deom -o new", "no recipe 'deom'"),
    ("slurm recipe.yaml -o new --parts 0", "greater than or equal to 1"),
    ("slurm recipe.yaml -o s3://bucket/new --dry-run", "--scripts DIR"),
    ("build recipe.yaml -o new --only pears", "pears"),
    ("eval questions --benchmark winoground -o Q", "--benchmark NAME=DIR"),
    ("eval agreement nothing.csv", "nothing.csv"),
    ("eval questions --benchmark winoground=. -o .", "is there already"),
    ("eval scores mine.csv --scores mine.parquet", "name a file that ends in .csv"),
    ("eval scores mine.csv --questions Q", "needs --out RUN, --model NAME"),
    ("eval scores mine.csv --benchmark a=. --benchmark b=. --model m -o new", "--benchmark NAME=DIR"),
    ("eval run --benchmark sugarcrepe=. --model random:ViT-B-32 -o s3://b/x", "s3:/b/x: is a URL"),
    ("train clip --data out -o s3://b/x", "s3:/b/x: is a URL"),
    ("build recipe.yaml -o new --set subsets.pairs.source.medai=x", "medai"),
    ("build recipe.yaml -o new --set subsets.pairs.source.annotations=absent.jsonl", "absent.jsonl"),
    ("plan recipe.yaml --set subsets.pairs.shard_size=0", "shard_size"),
    ("parse absent.tsv -o new", "absent.tsv: there is no such file"),
    ("parse pairs.jsonl -o new --pipeline absent", "absent"),
    ("status absent", "absent holds no dataset"),
    ("look out --count 0", "--count 0"),
    ("export out --format openclipp -o new", "did you mean 'openclip'"),
    ("export out --format openclip -o out", "out: exists and is not an empty folder"),
    ("export out --format trohn -o new", "--format trohn takes"),
    (f"{' '.join(RUN)} --model clip:absent", "Missing option '--benchmark'"),
    (f"{' '.join(RUN)} --benchmark sugarcreep=absent --model clip:absent", "did you mean 'sugarcrepe'"),
    (f"{' '.join(RUN)} --benchmark sugarcrepe=absent --model clip:absent", "absent: there is no such folder"),
    (f"{' '.join(RUN)} --benchmark twinset=out --only pears --model clip:absent", "pears"),
    (f"{' '.join(RUN)} --benchmark twinset --model clip:absent", "there must be as many"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model clibb:absent", "clibb"),
    (
        f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --model clip:absent",
        "there is no model folder absent",
    ),
    (f"{' '.join(RUN)} --benchmark twinset=out --model open_clip:ViT-B-23:openai", "ViT-B-32"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model open_clip:ViT-B-32:opnai", "near are the tags openai"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model combiner:absent:random:ViT-B-32", "absent"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model openai-yesno:m", "no environment variable OPENAI_BASE_URL"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --batch 0", "greater than or equal to 1"),
    (
        f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --device cuda",
        "'cuda' is not one of 'cpu', 'gpu'",
    ),
    ("eval report absent", "absent"),
    ("eval report out --benchmark sugarcrepe", "write NAME=DIR"),
    ("eval report out --seeds trohn", "write NAME=MODEL,MODEL"),
    ("eval scores absent.csv", "absent.csv"),
    ("eval scores pairs.jsonl", "pairs.jsonl"),
    ("eval answers absent", "absent"),
    ("eval compare absent.csv absent.csv", "absent.csv"),
    ("eval human absent", "absent"),
    ("verify absent", "absent holds no dataset"),
    ("eval human out --data out", "--data: is for --out RUN"),
    ("eval blind twinset=absent", "absent"),
    ("eval blind twinset=out --detectors absent", "name theirs with --model"),
    ("eval blind twinset=out --model clip:absent", "there is no model folder absent"),
    ("publish out --to hf://lab/shades", "write hf://datasets/ORG/NAME"),
    ("publish absent --to new", "holds no dataset"),
    ("eval benchmarks absent", "absent: there is no such folder"),
    ("eval submission --benchmark cirr-tst=. --model random:ViT-B-32 -o new", "did you mean 'cirr-test'"),
    ("eval demo --dta x", "--data"),
    ("review absent", "absent"),
    ("review out --out a.csv --import b.csv", "name one"),
    ("kinds image-pair", "did you mean 'image-pairs'"),
    ("review out --annotator anna", "use --annotators"),
    (f"{' '.join(TRAIN)}", "Missing option '--data'"),
    (f"{' '.join(TRAIN)} --data absent", "absent: not a dataset that twinset built"),
    (f"{' '.join(TRAIN)} --data out --lr fast", "lr: Input should be a valid number"),
    (f"{' '.join(TRAIN)} --data out --objective infonec", "infonce"),
    (f"{' '.join(TRAIN)} --data out --model ViT-B-23", "ViT-B-32"),
    (f"{' '.join(TRAIN)} --data out", "twinset downloads nothing"),
    ("train clip --data out --out out", "out: holds other files"),
    ("train combiner --data out --out new", "training on triplets reads triplet"),
    ("train combiner --data absent --out new --validation cirr=absent", "absent"),
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
        if code != 2 or said not in " ".join(error.split()) or shown or "Traceback" in error:
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


@pytest.mark.parametrize(
    "words", ["buidl", "eval rnu", "build demo --runer threads", "export out --format e -o d more", ""]
)
def test_an_error_is_one_line_that_names_its_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    command = words.split()[:1] if words.startswith(("build", "eval", "export")) else []
    path = " ".join(["twinset", *(["build"] if words.startswith("build ") else command if words != "buidl" else [])])
    assert line.startswith(f"{path}: ") and line.endswith(f" {path} --help explains")


Said = pytest.CaptureFixture[str]


def test_a_message_does_not_steer_the_terminal(tmp_path: Path, capsys: Said) -> None:
    (place := tmp_path / "\x1b]0;title\x07\u202e").mkdir()
    assert main(["status", str(place)]) != 0
    said = capsys.readouterr().err
    assert "title" in said and not {"\x1b", "\x07", "\u202e"} & set(said)


def test_lines_of_the_log_and_of_results_do_not_steer_it_either(capsys: Said) -> None:
    shown = StringIO()
    handler = logging.StreamHandler(shown)
    handler.setFormatter(LogLines())
    handler.handle(logging.makeLogRecord({"msg": "shard %s", "args": ("\x1b]0;title\x07\nnext",)}))
    say("\x1b[2J", Path("\u202e"), sep="\n")
    said = shown.getvalue() + capsys.readouterr().out
    assert said.splitlines() == ["shard \ufffd]0;title\ufffd", "next", "\ufffd[2J", "\ufffd"]
