"""What commands print, and their exit codes."""

import json
import logging
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

Printed = pytest.CaptureFixture[str]


def test_status_verify_and_a_resume_agree_with_a_build(recipe: Path, out: Path, capsys: Printed) -> None:
    assert main(["status", str(out), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)["subsets"]["pairs"]
    assert (status["planned"], status["kept"], status["done"], status["shards"]) == (6, 6, 3, 3)
    assert main(["verify", str(out), "--media"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["pairs", "3", "6", "0"]
    (out / "pairs/_meta/receipts/00001.json").unlink()
    assert main(["status", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["stage", "planned", "kept", "shards", "rejected"] and "2 of 3" in lines[1]
    assert lines[-1] == "Not finished: unless a build is running, run the same twinset build again"
    assert main(["build", str(recipe), "--out", str(out), "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["subsets"]["pairs"]
    assert counts == {"planned": 6, "kept": 6, "rejected": {}, "shards": 3, "excluded": {}}


def test_a_kind_that_is_not_installed_says_what_to_install(out: Path, capsys: Printed) -> None:
    path = out / "pairs/_meta/log/recipe.json"
    path.write_text(path.read_text().replace('"image-pairs"', '"clevr-change"'))
    assert main(["status", str(out)]) in (0, 1, 2)
    printed = "".join(capsys.readouterr())
    assert "clevr-change" in printed and "install" in printed
    assert not [word for word in ("build it first", "pydantic", "Traceback") if word in printed]


@pytest.mark.parametrize(("group", "code"), [("eval", "import nothing_of_this_name"), ("train", "mine = 3")])
def test_a_broken_command_fails_alone(tmp_path: Path, capsys: Printed, bring: Any, code: str, group: str) -> None:
    module = f"their_{group}"
    (tmp_path / f"{module}.py").write_text(code)
    bring("unwell", f"twinset.{group}_commands", mine=f"{module}:mine")
    assert main([group, "--help"]) == 0
    assert "of unwell 1.0" in capsys.readouterr().out
    assert main([group, "mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the command mine: " in line and line.endswith("; correct its package")


@pytest.mark.slow
def test_parse_writes_relations_and_names_lines_left_out(tmp_path: Path, capsys: Printed) -> None:
    captions = {"A dog is holding a ball.": "i", "A cat.": "j"}
    lines = [json.dumps({"id": image, "image_id": image, "caption": caption}) for caption, image in captions.items()]
    (tmp_path / "captions.jsonl").write_text("\n{oops\n".join(lines) + "\n")
    command = ["parse", str(tmp_path / "captions.jsonl"), "--out", str(tmp_path / "graphs"), "--json"]
    assert main(command) == 0
    printed = capsys.readouterr()
    counts = json.loads(printed.out)["subsets"]["scene-graphs"]
    assert (counts["planned"], counts["kept"], counts["rejected"]) == (2, 1, {"no-relation": 1})
    assert "captions.jsonl line 2: left out, not-json\n" in printed.err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(out: Path) -> None:
    for number in range(3):
        (out / f"pairs/_meta/receipts/0000{number}.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "twinset.cli.main", "status", str(out)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_words_are_completed(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    asked = {"_TWINSET_COMPLETE": "complete_bash", "COMP_WORDS": "twinset build demo --runner thr", "COMP_CWORD": "4"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert (ended.value.code, *capsys.readouterr()) == (0, "threads\n", "")


def test_a_kind_is_explained_as_its_docstring_says(capsys: Printed) -> None:
    assert main(["kinds"]) == 0
    rows = [line.split(maxsplit=2)[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["source", "image-pairs"] in rows and ["filter", "faces"] in rows and ["training", "clip"] in rows
    assert main(["kinds", "image-pairs"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("image-pairs, source: ")
    assert "\n  media: folder; required\n      folder of the images" in shown
    assert main(["kinds", "vlm", "--json"]) == 0
    assert {kind["door"] for kind in json.loads(capsys.readouterr().out)} == {"language model", "kind of model"}
    assert main(["kinds", "image-pair"]) == 2 and "did you mean 'image-pairs'?" in capsys.readouterr().err


def test_json_logs_name_shards(recipe: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, no_cards: Any) -> None:
    build = ["build", str(recipe), "--out", str(recipe.parent / "out"), "--log", "json"]
    (recipe.parent / "images/0-0.png").write_bytes(b"no picture")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest, beside which none is added
    assert main([*build, "--json", "--set", "max_missing=0.5"]) == 0
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert json.loads(printed.out)["subsets"]["pairs"]["kept"] == 5
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert any(line.get("message") == "pairs: making 3 of 3 shards" for line in lines)
    first, *rest = sorted((line for line in lines if "shard" in line), key=lambda line: line["shard"])
    assert first.keys() - {"time"} == {*("stage", "shard", "kept", "rejected", "seconds", "bytes", "error")}
    assert (first["kept"], first["rejected"], [line["kept"] for line in rest]) == (1, 1, [2, 2])
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert main(build) == 2
    message = json.loads(capsys.readouterr().err.splitlines()[-1])["message"]
    assert "unset PREFECT_API_URL, or leave --log out" in message


def test_only_what_was_said_is_a_setting(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    asked: list[Any] = []
    result = {"best": "out/best.safetensors", "loss": 1.25, "validation": {"accuracy": 50.0}}

    def train(data: Any, out: Path, task: str, on_progress: Any, **settings: Any) -> dict[str, Any]:
        asked.append((task, [*data], out, settings))
        return result

    monkeypatch.setattr(twinset, "train", train)
    assert main(["train", "clip", "--data", "a:b", "--data", "c*2", "--out", "out"]) == 0
    options = ("--weights", "random", "--lr", "1e-4", "--betas", ".9", ".95", "--allow-mixed-runtimes", "--json")
    assert main(["train", "clip", "--data", "a", "--out", "out", "--validation", "v", *options]) == 0
    assert asked[0] == ("clip", ["a:b", "c*2"], Path("out"), {})
    given = {"validation": ("v",), "weights": None, "lr": "1e-4", "betas": (".9", ".95"), "allow_mixed_runtimes": True}
    assert asked[1][3] == given
    printed = capsys.readouterr().out
    assert "best: out/best.safetensors\n" in printed and "validation accuracy: 50\n" in printed
    assert json.loads(printed.splitlines()[-1]) == result


def test_a_training_says_each_minute_where_it_is(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
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
