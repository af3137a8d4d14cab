"""Single commands: progress, completion, ``eval blind`` and ``scores``, Ctrl-C, ``--log json``, ``train clip``."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.evaluation.blind_probes.made_benchmark import sentences
from twinset.cli.bars import Bars, Lines
from twinset.cli.main import main
from twinset.cli.train.run import progress
from twinset.evaluation.report.model_answers import probes_of

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


ASK = """
{script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_twinset
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("twinset bui", "build"),
        ("twinset train co", "combiner"),
        ("twinset build demo --run", "--runner"),
        ("twinset build demo --runner thr", "threads"),
        ("twinset build demo --out tr", ""),
        ("twinset export out --format eq", "eqben"),
        ("twinset eval run --device g", "gpu"),
        ("twinset --verbose eval sc", "scores"),
        ("twinset eval run --only build --mo", "--model"),
        ("twinset completion z", "zsh"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_words_are_completed(words: str, completed: str, shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """zsh runs bash's function by its own bashcompinit, where both shells have the same arrays."""
    if (program := shutil.which("bash")) is None:
        pytest.skip("no bash here")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    begins = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" if shell == "zsh" else ""
    assert script.startswith(begins)
    asked = ASK.format(script=script.removeprefix(begins), words=words)
    done = subprocess.run([program, "-c", asked], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{completed}\n", "")


@pytest.fixture
def crepe(tmp_path: Path) -> Path:
    """SugarCrepe's layout without any image: additions that length solves, and swaps that nothing does."""
    for kind, extra in (("add_obj", " And a kite."), ("swap_obj", "")):
        records = {
            str(number): {"filename": f"{number // 2:012d}.jpg", "caption": first, "negative_caption": second + extra}
            for number, (first, second) in enumerate(sentences(60, len(kind)))
        }
        (tmp_path / f"{kind}.json").write_text(json.dumps(records), "utf-8")
    return tmp_path


def test_the_table_flags_what_is_solved_without_any_image(crepe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "blind", f"sugarcrepe={crepe}"]) == 0
    shown = capsys.readouterr()
    first, *rows = shown.out.splitlines()
    assert first == "SugarCrepe (2023): 120 pairs of 30 groups, chance 50 %"
    subset, flagged = "", set[tuple[str, str]]()
    for row in rows:
        subset = next((name for name in ("all", "swap_obj", "add_obj") if row.startswith(name)), subset)
        flagged |= {(subset, said) for said in ("shorter", "text classifier") if said in row and row.endswith("SOLVED")}
    assert {("add_obj", "shorter"), ("add_obj", "text classifier")} <= flagged
    assert not any(subset == "swap_obj" for subset, _ in flagged) and "above 55 %" in rows[-2]
    assert "sugarcrepe: images: not asked for" in shown.err


def test_json_has_all_and_every_subset(crepe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "blind", f"sugarcrepe={crepe}", "--only", "add_obj", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["all"]["pairs"] == 60 and found["by"] == {} and found["rule"]["margin"] == 5
    assert [one["row"] for one in found["solved"]] == ["all"] and found["all"]["probes"]["characters"]["solves"]


def test_the_report_of_a_run_reads_what_is_written(crepe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["eval", "blind", f"sugarcrepe={crepe}", "--out", str(out)]) == 0
    probes = probes_of(out, "sugarcrepe")
    assert probes is not None and "add_obj: characters, shorter" in probes.solved
    assert [path.name for path in (out / "probes").iterdir()] == ["sugarcrepe.json"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["sugarcrepe"], "write NAME=DIR"),
        (["sugarcrepe=a", "sugarcrepe=b", "--out", "run"], "sugarcrepe: is named twice"),
        (["sugarcrep=."], "did you mean 'sugarcrepe'"),
        (["sugarcrepe={crepe}", "--only", "add_ob"], "did you mean 'add_obj'?"),
        (["sugarcrepe={crepe}", "--images"], "all 60 examples are left out"),
        (["sugarcrepe={crepe}", "--model", "random"], "--model random"),
    ],
)
def test_wrong_use_is_told_with_exit_code_2(
    crepe: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (crepe / "swap_obj.json").unlink()
    try:
        code = main(["eval", "blind", *(one.format(crepe=crepe) for one in arguments)])
    except SystemExit as ended:  # argparse
        code = int(ended.code or 0)
    assert code == 2 and said in capsys.readouterr().err


RELEASED = (
    '"caption","type","subtype","text_score_i0","text_score_i1","image_score_c0","image_score_c1"\n'
    '"a","add","obj","True","True","False","True"\n'
    '"b","add","att","True","True","True","True"\n'
    '"c","swap","obj","False","True","True","True"\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "BiVLC_model.csv"
    path.write_text(RELEASED)
    return path


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(file), "--by", "type", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    third = pytest.approx(100 / 3)
    assert {name: found["all"][name] for name in ("n", "text", "image", "group", "ties")} == {
        "n": 3,
        "text": pytest.approx(200 / 3),
        "image": pytest.approx(200 / 3),
        "group": third,
        "ties": None,
    }
    assert [*found["by"]] == ["add", "swap"] and found["by"]["add"]["group"] == 50
    low, high = found["all"]["interval"]["group"]
    assert 0 <= low <= 100 / 3 <= high <= 100
    assert any("own group" in note for note in found["notes"])


def test_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(file), "--by", "type,subtype", "--resamples", "0"]) == 0
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["all", "3", "group", "33.33", "?"] in lines and ["add", "/", "obj", "1", "tpos2i", "0.00", "?"] in lines
    assert "ties are not known" in said.err


def test_compare(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text(RELEASED.replace("False", "True"))
    options = ["eval", "compare", str(file), str(other), "--key", "caption,type"]
    assert main([*options, "--json", "--by", "type"]) == 0
    found = json.loads(capsys.readouterr().out)
    line = next(line for line in found["table"] if (line["rows"], line["figure"]) == ("all", "group"))
    assert (line["only_a"], line["only_b"], line["p"], found["only_in_a"]) == (0, 2, 0.5, 0)
    assert line["difference"] == pytest.approx(-200 / 3) and line["p_holm"] == 1
    assert main([*options, "--figures", "ineg2t"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].split()[:6] == ["all", "3", "ineg2t", "100.00", "100.00", "+0.00"]
    assert main(["eval", "compare", str(file), str(other), "--in-order"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--by", "kind"], "no column 'kind' for --by; it has caption, type"),
        (["--group", "image"], "no column 'image' for --group"),
    ],
)
def test_wrong_use_names_the_remedy(
    file: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "scores", str(file), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--by", "a,,b"], ["--by", "a,a"], ["--seed", "-1"], ["--threshold", "nan"]])
def test_options_that_cannot_be(file: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["eval", "scores", str(file), *options])
    assert ended.value.code == 2 and "write" in capsys.readouterr().err


def test_values_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.csv"
    path.write_text('correct,type\n1,"\x1b[31mred"\n0,"two\nlines"\n', newline="")
    assert main(["eval", "scores", str(path), "--by", "type"]) == 0
    out = capsys.readouterr().out
    assert "\ufffd[31mred" in out and "two\ufffdlines" in out and "\x1b" not in out and len(out.splitlines()) == 4


CHECKOUT = Path(__file__).parents[2]
CODE = """
import atexit, sys
from twinset.cli import commands, main

class Large:
    def __del__(self):
        print("collected")

def interrupted(asked):
    error = KeyboardInterrupt()
    error.add_note("run the same command again")
    raise error

large = Large()
atexit.register(print, "at exit")
commands.status = interrupted
sys.argv[1:] = ["status", "out"]
sys.exit(main.main())
"""


def test_ctrl_c_does_not_wait_for_a_last_collection() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=CHECKOUT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "at exit\n")
    assert done.stderr == "twinset: interrupted; run the same command again\n"


def build(recipe: Path, *options: str, **more: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, lines of stderr and stdout of ``twinset build --log json``."""
    command = ["build", str(recipe), "--out", str(recipe.parent / "out"), "--log", "json", *options]
    done = subprocess.run(
        [sys.executable, "-m", "twinset.cli.main", *command], env={**os.environ, **more}, capture_output=True, text=True
    )
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()], done.stdout


def shards(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((line for line in lines if "shard" in line), key=lambda line: line["shard"])


def test_a_line_of_each_shard_and_the_counts_on_stdout(recipe: Path) -> None:
    (recipe.parent / "images/0-0.png").write_bytes(b"no picture")
    code, lines, stdout = build(recipe, "--json", "--set", "max_missing=0.5")
    assert code == 0 and json.loads(stdout)["subsets"]["pairs"]["kept"] == 5
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert any(line.get("message") == "pairs: making 3 of 3 shards" for line in lines)
    first, *others = shards(lines)
    assert first.keys() - {"time"} == {*("stage", "shard", "kept", "rejected", "seconds", "bytes", "attempts", "error")}
    assert [first[name] for name in ("stage", "shard", "kept", "rejected", "attempts", "error")] == [
        *("pairs", 0, 1, 1, 1),
        None,
    ]
    assert first["seconds"] > 0 and first["bytes"] > 1000 and [one["kept"] for one in others] == [2, 2]
    assert shards(build(recipe, "--set", "max_missing=0.5")[1]) == []  # nothing to do


def test_a_part_that_fails_says_which_shard_and_why(recipe: Path) -> None:
    assert build(recipe, "--plan-only", "--stage", "pairs")[0] == 0
    plan = recipe.parent / "out/pairs/_meta/plan/00000.parquet"
    plan.write_bytes(plan.read_bytes()[:-10])
    code, lines, _ = build(recipe, "--part", "1/3", "--stage", "pairs")
    (failed,) = shards(lines)
    assert code == 1 and failed["shard"] == 1 and "not the candidates of shard 00001" in failed["error"]
    assert (failed["kept"], failed["bytes"]) == (0, 0) and lines[-1]["message"].startswith("pairs shard 00001: ")


def test_wrong_use_is_told_in_json_and_prefect_keeps_its_own_log(recipe: Path, capsys: Any) -> None:
    code, lines, _ = build(recipe, "--set", "subsets.pairs.source.media=nowhere")
    assert code == 2 and "nowhere" in lines[-1]["message"]
    code, lines, _ = build(recipe, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert code == 2 and "unset PREFECT_API_URL, or leave --log out" in lines[-1]["message"]
    assert main(["build", "nothing.yaml", "--out", str(recipe.parent / "out"), "--log", "json"]) == 2
    assert [*map(json.loads, capsys.readouterr().err.splitlines())][-1].keys() == {"time", "message"}
    assert main(["status", str(recipe.parent / "out")]) == 2
    assert capsys.readouterr().err.startswith("twinset: ")


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


@pytest.mark.parametrize("steps", [1, 60, 12_000])
def test_a_log_shows_how_far_the_training_is(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as on_progress:
        for step in range(1, steps + 1):
            on_progress(step, steps, {"loss": 1 / step})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"1 of {steps:,} steps, loss 1.000" and lines[-1].startswith(f"{steps:,} of {steps:,} steps")
    assert len(lines) <= 1 + max(20, steps // 100)
