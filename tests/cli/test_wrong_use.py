"""Wrong use of every command: exit code and message, without an import of anything slow. So with ``--help``.

One process runs all cases. In it a heavy module cannot be imported: who asks for one fails with its name.

Nothing that is printed steers the terminal.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from twinset.cli.main import _parser, main
from twinset.cli.terminal import PlainLines, say

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
    ("buidl demo", "did you mean build?"),
    ("eval rnu", "did you mean run?"),
    ("train clib", "did you mean clip?"),
    ("--verbos plan demo", "did you mean --verbose?"),
    ("build recipe.yaml -o new --runner thread", "did you mean threads?"),
    ("build recipe.yaml --ot new", "did you mean --out?"),
    ("build recipe.yaml", "required: -o/--out"),
    ("build deom -o new", "no recipe 'deom'"),
    ("build absent.yaml -o new", "absent.yaml"),
    ("slurm recipe.yaml -o new --parts 0", "write a number from 1 to"),
    ("slurm recipe.yaml -o s3://bucket/new --dry-run", "--scripts DIR"),
    ("build recipe.yaml -o new --only pears", "pears"),
    ("eval questions --benchmark winoground -o Q", "--benchmark NAME=DIR"),
    ("eval agreement nothing.csv", "nothing.csv"),
    ("eval questions --benchmark winoground=. -o .", "is there already"),
    ("eval scores mine.csv --scores mine.parquet", "name a file that ends in .csv"),
    ("eval scores mine.csv --questions Q", "need --out RUN, --model NAME"),
    ("eval scores mine.csv --benchmark a=. --benchmark b=. --model m -o new", "--benchmark NAME=DIR"),
    ("eval scores mine.csv --questions absent --model m -o new", "benchmarks.json: it is not what"),
    ("eval run --benchmark sugarcrepe=. --model random:ViT-B-32 -o s3://b/x", "s3:/b/x: is a URL"),
    ("train clip --data out -o s3://b/x", "s3:/b/x: is a URL"),
    ("build recipe.yaml -o new --set subsets.pairs.source.medai=x", "medai"),
    ("build recipe.yaml -o new --set subsets.pairs.source.annotations=absent.jsonl", "absent.jsonl"),
    ("build recipe.yaml -o new --set subsets.pairs.source.media=absent", "absent"),
    ("plan eqben --set subsets.eq-ag.source.annotations=absent.csv", "absent.csv"),
    ("plan recipe.yaml --set subsets.pairs.shard_size=0", "shard_size"),
    ("parse absent.tsv -o new", "absent.tsv: there is no such file"),
    ("parse pairs.jsonl -o new --pipeline absent", "absent"),
    ("parse pairs.jsonl -o new --wrokers 2", "did you mean --workers?"),
    ("status absent", "absent holds no dataset"),
    ("status out --jsn", "did you mean --json?"),
    ("verify absent", "absent holds no dataset"),
    ("verify out --only pears", "pears"),
    ("look absent", "absent"),
    ("look out --count 0", "--count 0"),
    ("look out --only pears", "pears"),
    ("export absent --format openclip -o new", "absent"),
    ("export out --format openclipp -o new", "did you mean openclip?"),
    ("export out --format openclip -o out", "out: exists and is not an empty folder"),
    ("export out --format trohn -o new", "--format trohn takes"),
    (f"{' '.join(RUN)} --model clip:absent", "required: --benchmark"),
    (f"{' '.join(RUN)} --benchmark sugarcreep=absent --model clip:absent", "did you mean 'sugarcrepe'"),
    (f"{' '.join(RUN)} --benchmark sugarcrepe=absent --model clip:absent", "absent: there is no such folder"),
    (f"{' '.join(RUN)} --benchmark twinset=absent --model clip:absent", "absent"),
    (f"{' '.join(RUN)} --benchmark twinset=out --only pears --model clip:absent", "pears"),
    (f"{' '.join(RUN)} --benchmark twinset --model clip:absent", "there must be as many"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model clibb:absent", "clibb"),
    (
        f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --model clip:absent",
        "there is no model folder absent",
    ),
    (f"{' '.join(RUN)} --benchmark twinset=out --model blip-itm:out", "the model out lacks config.json"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model open_clip:ViT-B-23:openai", "ViT-B-32"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model open_clip:ViT-B-32:opnai", "near are the tags openai"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model image+text:random:ViT-B-23", "ViT-B-32"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model combiner:absent:random:ViT-B-32", "absent"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model openai-yesno:m", "no environment variable OPENAI_BASE_URL"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --batch 0", "write a number from 1"),
    (f"{' '.join(RUN)} --benchmark twinset=out --model random:ViT-B-32 --device cuda", "'cuda' is none of cpu, gpu"),
    ("eval report absent", "absent"),
    ("eval report out --benchmark sugarcrepe", "write NAME=DIR"),
    ("eval report out --seeds trohn", "write NAME=MODEL,MODEL"),
    ("eval scores absent.csv", "absent.csv"),
    ("eval scores pairs.jsonl", "pairs.jsonl"),
    ("eval scores recipe.yaml --resample 3", "did you mean --resamples?"),
    ("eval compare absent.csv absent.csv", "absent.csv"),
    ("eval answers absent", "absent"),
    ("eval human absent", "absent"),
    ("eval human out --data out", "--data: is for --out RUN"),
    ("eval blind twinset=absent", "absent"),
    ("eval blind twinset=out --detectors absent", "name theirs with --model"),
    ("eval blind twinset=out --model clip:absent", "there is no model folder absent"),
    ("publish out --to hf://lab/shades", "write hf://datasets/ORG/NAME"),
    ("publish absent --to new", "holds no dataset"),
    ("eval benchmarks absent", "absent: there is no such folder"),
    ("eval submission --benchmark cirr-tst=. --model random:ViT-B-32 -o new", "did you mean 'cirr-test'"),
    ("eval submission --benchmark cirr-test=absent --model random:ViT-B-32 -o new", "there is no such folder"),
    ("eval submission --benchmark cirr-test --model random:ViT-B-32 -o new", "write NAME=DIR"),
    ("eval demo --dta x", "did you mean --data?"),
    ("review absent", "absent"),
    ("review out --form parquett", "did you mean parquet?"),
    ("review out --annotator anna", "use --annotators"),
    (f"{' '.join(TRAIN)}", "required: --data"),
    (f"{' '.join(TRAIN)} --data absent", "absent: not a dataset that twinset built"),
    (f"{' '.join(TRAIN)} --data out:pears", "no subset 'pears'"),
    (f"{' '.join(TRAIN)} --data out --validation absent", "absent: not a dataset"),
    (f"{' '.join(TRAIN)} --data out --lr fast", "lr: Input should be a valid number"),
    (f"{' '.join(TRAIN)} --data out --objective infonec", "did you mean infonce?"),
    (f"{' '.join(TRAIN)} --data out --model ViT-B-23", "ViT-B-32"),
    (f"{' '.join(TRAIN)} --data out --weights absent", "absent"),
    (f"{' '.join(TRAIN)} --data out", "twinset downloads nothing"),
    ("train clip --data out --out out", "out: holds other files"),
    ("train clip --data out --out recipe.yaml", "recipe.yaml: not a folder"),
    ("train combiner --data out --out new", "training on triplets reads triplet"),
    ("train combiner --data absent --out new --validation cirr=absent", "absent"),
    ("train fusion --data out --out new --model blip-itm:absent", "there is no model folder absent"),
    ("train fusion --data absent --out new --model blip-itm:absent", "absent: not a dataset"),
    ("train detectors --data absent --out new", "absent: not a dataset"),
    ("train grid absent.yaml --out new", "absent.yaml: cannot be read"),
    ("train detectors --data out --out new --model clip:absent", "there is no model folder absent"),
    ("train demo --ot new", "did you mean --out?"),
    ("completion bsh", "did you mean bash?"),
]


def walked(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and sub-command."""
    yield words
    for one in parser._actions:
        if isinstance(one, argparse._SubParsersAction):
            for name, below in one.choices.items():
                yield from walked(below, (*words, name))


def run(cases: list[list[str]], folder: Path) -> list[tuple[int | str, str, str]]:
    """Exit code, stderr and stdout of each."""
    removed = ("PREFECT_API_URL", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    environment |= {"HF_HOME": str(folder / "hf"), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
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
    commands = {*walked(_parser())}
    leaves = [" ".join(words) for words in commands if not any(one[:-1] == words for one in commands)]
    assert [one for one in leaves if not any(f"{words} ".startswith(f"{one} ") for words, _ in WRONG)] == []


def test_help_of_every_command_imports_nothing_slow(tmp_path: Path) -> None:
    cases = [[*words, "--help"] for words in walked(_parser())]
    for case, (code, error, shown) in zip(cases, run(cases, tmp_path), strict=True):
        assert (code, error) == (0, "") and f"usage: {' '.join(['twinset', *case[:-1]])}" in shown
        if "COMMAND" not in shown:
            assert "--json" in shown


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("buidl", "usage: twinset COMMAND ... [OPTION …]\n"),
        ("eval rnu", "usage: twinset eval COMMAND ... [OPTION …]\n"),
        ("build demo --runer threads", "usage: twinset build -o OUT RECIPE [OPTION …]\n"),
        ("eval scores f --resample 3", "usage: twinset eval scores FILE [OPTION …]\n"),
        ("export out --format eqben -o d too-many", "usage: twinset export --format"),
    ],
)
def test_an_error_shows_the_usage_of_its_command(words: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    from twinset.cli.main import main

    with pytest.raises(SystemExit):
        main(words.split())
    told = " ".join(capsys.readouterr().err.split())  # Python 3.13 breaks lines elsewhere
    assert told.startswith(" ".join(usage.split()))


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
