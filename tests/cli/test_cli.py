"""Single commands: progress, completion, ``kinds``, ``--log json``, ``train clip``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import twinset
from twinset.cli import terminal
from twinset.cli.main import main

Said = pytest.CaptureFixture[str]


def test_words_are_completed() -> None:
    asked = {"_TWINSET_COMPLETE": "complete_bash", "COMP_WORDS": "twinset build demo --runner thr", "COMP_CWORD": "4"}
    command = [sys.executable, "-m", "twinset.cli.main"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asked})
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["threads"], "")


def test_a_kind_is_explained_as_its_docstring_says(capsys: Said) -> None:
    assert main(["kinds"]) == 0
    rows = [line.split(maxsplit=2)[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["source", "image-pairs"] in rows and ["filter", "faces"] in rows and ["training", "clip"] in rows
    assert main(["kinds", "image-pairs"]) == 0
    shown = capsys.readouterr().out
    assert (
        shown.startswith("image-pairs, source: ") and "\n  media: folder; required\n      folder of the images" in shown
    )
    assert main(["kinds", "vlm", "--json"]) == 0
    assert {one["door"] for one in json.loads(capsys.readouterr().out)} == {"language model", "kind of model"}
    assert main(["kinds", "image-pair"]) == 2 and "did you mean 'image-pairs'?" in capsys.readouterr().err


def test_a_json_log_has_a_line_of_each_shard(recipe: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    build = ["build", str(recipe), "--out", str(recipe.parent / "out"), "--log", "json"]
    (recipe.parent / "images/0-0.png").write_bytes(b"no picture")
    assert main([*build, "--json", "--set", "max_missing=0.5"]) == 0
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert json.loads(printed.out)["subsets"]["pairs"]["kept"] == 5
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert any(line.get("message") == "pairs: making 3 of 3 shards" for line in lines)
    first, *others = sorted((line for line in lines if "shard" in line), key=lambda line: line["shard"])
    assert first.keys() - {"time"} == {*("stage", "shard", "kept", "rejected", "seconds", "bytes", "error")}
    assert (first["kept"], first["rejected"], [line["kept"] for line in others]) == (1, 1, [2, 2])
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert main(build) == 2
    message = json.loads(capsys.readouterr().err.splitlines()[-1])["message"]
    assert "unset PREFECT_API_URL, or leave --log out" in message


def test_only_what_was_said_is_a_setting(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    asked: list[Any] = []
    found = {"best": "out/best.safetensors", "loss": 1.25, "validation": {"accuracy": 50.0}}

    def train(data: Any, out: Path, task: str, on_progress: Any, **settings: Any) -> dict[str, Any]:
        asked.append((task, [*data], out, settings))
        return found

    monkeypatch.setattr(twinset, "train", train)
    assert main(["train", "clip", "--data", "a:b", "--data", "c*2", "--out", "out"]) == 0
    options = ("--weights", "random", "--lr", "1e-4", "--betas", ".9", ".95", "--allow-mixed-runtimes", "--json")
    assert main(["train", "clip", "--data", "a", "--out", "out", "--validation", "v", *options]) == 0
    assert asked[0] == ("clip", ["a:b", "c*2"], Path("out"), {})
    said = {"validation": ("v",), "weights": None, "lr": "1e-4", "betas": (".9", ".95"), "allow_mixed_runtimes": True}
    assert asked[1][3] == said
    printed = capsys.readouterr().out
    assert "best: out/best.safetensors\n" in printed and "validation accuracy: 50\n" in printed
    assert json.loads(printed.splitlines()[-1]) == found


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
