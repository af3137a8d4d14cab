"""Single commands: progress, completion, ``kinds``, ``eval blind`` and ``scores``, ``--log json``, ``train clip``."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.evaluation.blind_probes.made_benchmark import sentences
from twinset.cli.main import main
from twinset.cli.terminal import Rows, progress

Said = pytest.CaptureFixture[str]


def test_a_log_has_a_line_where_a_stage_begins_and_one_where_it_ends(recipe: Path, capsys: Said) -> None:
    command = ["build", str(recipe), "--out", str(recipe.parent / "out")]
    assert main(command) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first == "pairs: making 3 of 3 shards" and re.fullmatch(r"pairs: done in \d+ s", last)
    assert main(command) == 0
    assert capsys.readouterr().err == ""  # nothing to do


def test_a_log_has_a_line_a_minute_while_shards_are_made(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    now = [0.0]
    monkeypatch.setattr("twinset.cli.terminal.time.monotonic", lambda: now[0])
    rows = Rows()
    rows.begin("pairs", 5, 1)
    rows.samples("pairs", 20, 100)
    for now[0] in (30.0, 61.0, 90.0):
        rows.advance("pairs")
    assert capsys.readouterr().err.splitlines() == [
        "pairs: making 4 of 5 shards",
        "pairs: 20 of 100 samples, 3 of 5 shards",
    ]


def test_the_bar_of_a_stage_of_one_shard_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    rows = Rows()
    rows.begin("one", 1, 0)
    for made in (0, 300):
        rows.samples("one", made, 2000)
    (task,) = rows.bars.tasks
    assert (task.completed, task.total) == (300, 2000)
    assert task.fields["text"] == "300 of 2,000 samples, 0 of 1 shards"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("twinset bui", "build"),
        ("twinset train co", "combiner"),
        ("twinset train clip --best", "--best-by"),
        ("twinset build demo --run", "--runner"),
        ("twinset build demo --runner thr", "threads"),
        ("twinset eval sc", "scores"),
        ("twinset eval ag", "agreement"),
    ],
)
def test_words_are_completed(words: str, completed: str) -> None:
    asked = {"_TWINSET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [sys.executable, "-m", "twinset.cli.main"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [completed], "")


def test_a_kind_is_explained_as_its_docstring_says(capsys: Said) -> None:
    assert main(["kinds"]) == 0
    rows = [line.split(maxsplit=2)[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["source", "image-pairs"] in rows and ["filter", "faces"] in rows and ["training", "clip"] in rows
    assert main(["kinds", "image-pairs"]) == 0
    shown = capsys.readouterr().out
    assert (
        shown.startswith("image-pairs, source: ") and "\n  media: folder; required\n      folder of the images" in shown
    )
    assert main(["kinds", "openai", "--json"]) == 0
    assert {one["door"] for one in json.loads(capsys.readouterr().out)} == {"language model", "visual-question engine"}
    assert main(["kinds", "image-pair"]) == 2 and "did you mean 'image-pairs'?" in capsys.readouterr().err


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


@pytest.mark.parametrize("options", [["--by", "kind"], ["--seed", "-1"], ["--threshold", "nan"]])
def test_options_that_cannot_be(file: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "scores", str(file), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert options[0] in line


def test_values_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.csv"
    path.write_text('correct,type\n1,"\x1b[31mred"\n0,"two\nlines"\n', newline="")
    assert main(["eval", "scores", str(path), "--by", "type"]) == 0
    out = capsys.readouterr().out
    assert "\ufffd[31mred" in out and "two\ufffdlines" in out and "\x1b" not in out and len(out.splitlines()) == 4


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
    assert first.keys() - {"time"} == {*("stage", "shard", "kept", "rejected", "seconds", "bytes", "error")}
    assert [first[name] for name in ("stage", "shard", "kept", "rejected", "error")] == ["pairs", 0, 1, 1, None]
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
        calls.append((list(data), out, settings))
        return FOUND

    monkeypatch.setattr(twinset, "train", train)
    return calls


def test_only_what_was_said_is_a_setting(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "clip", "--data", "a:b", "--data", "c*2", "--out", "out"]) == 0
    options = ("--weights", "random", "--lr", "1e-4", "--betas", ".9", ".95", "--allow-mixed-runtimes", "--json")
    assert main(["train", "clip", "--data", "a", "--out", "out", "--validation", "v", *options]) == 0
    assert asked[0] == (["a:b", "c*2"], Path("out"), {})
    said = {"validation": ("v",), "weights": None, "lr": "1e-4", "betas": (".9", ".95"), "allow_mixed_runtimes": True}
    assert asked[1][2] == said
    printed = capsys.readouterr().out
    assert "best: out/best.safetensors\n" in printed and "validation accuracy: 50\n" in printed
    assert json.loads(printed.splitlines()[-1]) == FOUND


@pytest.mark.parametrize("steps", [1, 60, 12_000])
def test_a_log_shows_how_far_the_training_is(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as rows:
        for step in range(1, steps + 1):
            rows.trained(step, steps, {"loss": 1 / step})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"training: 1 of {steps:,} steps, loss 1.000" and len(lines) == (2 if steps > 1 else 1)
    assert lines[-1].startswith(f"training: {steps:,} of {steps:,} steps")
