"""What each command prints, and its exit code; as a process: its pipe, and what it imports."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinset.cli.main import main

Said = pytest.CaptureFixture[str]


def printed(capsys: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_build_then_status_verify_and_a_resume_agree(recipe: Path, built: Path, capsys: Said) -> None:
    assert main(["status", str(built), "--json"]) == 0
    status = printed(capsys)["subsets"]["pairs"]
    assert (status["planned"], status["kept"], status["done"], status["shards"]) == (6, 6, 3, 3)
    assert main(["verify", str(built), "--media"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["pairs", "3", "6", "0"]
    (built / "pairs/_meta/receipts/00001.json").unlink()
    assert main(["status", str(built)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["stage", "planned", "kept", "shards", "rejected"] and "2 of 3" in said[1]
    assert said[-1] == "Not finished: unless a build is running, run the same twinset build again"
    assert main(["build", str(recipe), "--out", str(built), "--json"]) == 0
    assert printed(capsys)["subsets"]["pairs"] == {"planned": 6, "kept": 6, "rejected": {}, "shards": 3, "excluded": {}}


def test_a_kind_that_is_not_installed_says_what_to_install(built: Path, capsys: Said) -> None:
    path = built / "pairs/_meta/log/recipe.json"
    path.write_text(path.read_text().replace('"image-pairs"', '"clevr-change"'))
    assert main(["status", str(built)]) in (0, 1, 2)
    said = "".join(capsys.readouterr())
    assert "clevr-change" in said and "install" in said
    assert not [word for word in ("build it first", "pydantic", "Traceback") if word in said]


@pytest.mark.parametrize(("group", "code"), [("eval", "import nothing_of_this_name"), ("train", "mine = 3")])
def test_a_command_of_a_package_that_fails_fails_alone(
    tmp_path: Path, capsys: Said, bring: Callable[..., None], code: str, group: str
) -> None:
    module = f"their_{group}"
    (tmp_path / f"{module}.py").write_text(code)
    bring("unwell", f"twinset.{group}_commands", mine=f"{module}:mine")
    assert main([group, "--help"]) == 0
    assert "of unwell 1.0" in capsys.readouterr().out
    assert main([group, "mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the command mine: " in line and line.endswith("; correct its package")


@pytest.mark.slow
def test_parse_writes_relations_and_names_lines_left_out(tmp_path: Path, capsys: Said) -> None:
    said = {"A dog is holding a ball.": "i", "A cat.": "j"}
    lines = [json.dumps({"id": image, "image_id": image, "caption": caption}) for caption, image in said.items()]
    (tmp_path / "captions.jsonl").write_text("\n{oops\n".join(lines) + "\n")
    command = ["parse", str(tmp_path / "captions.jsonl"), "--out", str(tmp_path / "graphs"), "--json"]
    assert main(command) == 0
    printed = capsys.readouterr()
    counts = json.loads(printed.out)["subsets"]["scene-graphs"]
    assert (counts["planned"], counts["kept"], counts["rejected"]) == (2, 1, {"no-relation": 1})
    assert "captions.jsonl line 2: left out, not-json\n" in printed.err


CHECKOUT = Path(__file__).parents[2]
TWINSET = [sys.executable, "-m", "twinset.cli.main"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
HEAVY = {"torch", "av", "cv2", "bpy", "spacy", "pandas", "matplotlib", "prefect"}


def test_nothing_to_do_imports_nothing_heavy(recipe: Path, built: Path) -> None:
    code = (
        "import sys; from twinset.cli.main import main; code = main(sys.argv[1:]); "
        f"print(code, sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "build", str(recipe), "--out", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    assert done.stderr == "0 []\n"


def test_a_reader_that_has_seen_enough_is_no_error(built: Path) -> None:
    for number in range(3):
        (built / f"pairs/_meta/receipts/0000{number}.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    command = [*TWINSET, "status", str(built)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
