"""What each command prints, and its exit code; everything runs in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
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


def test_verify_names_a_changed_byte(built: Path, capsys: Said) -> None:
    tar = next(built.rglob("00001.tar"))
    content = bytearray(tar.read_bytes())
    content[600] ^= 1
    tar.write_bytes(content)
    assert main(["verify", str(built)]) == 1
    assert "00001.tar" in capsys.readouterr().err


def test_look_and_exports(built: Path, tmp_path: Path, capsys: Said) -> None:
    assert main(["look", str(built), "--count", "2"]) == 0
    assert f"{built}/look-2.html" in capsys.readouterr().out and (built / "look-2.html").stat().st_size > 1000
    assert not (built / "_spool").exists()
    assert main(["look", str(built), "--count", "0"]) == 2
    for format in ("eqben", "openclip"):
        assert main(["export", str(built), "--format", format, "--out", str(tmp_path / format)]) == 0
        assert capsys.readouterr().out == f"samples: 6\nout: {tmp_path / format}\n"


def test_missing_media_is_told_though_all_shards_are_done(recipe: Path, capsys: Said) -> None:
    out = recipe.parent / "out"
    (recipe.parent / "images/3-1.png").unlink()
    assert main(["build", str(recipe), "--out", str(out)]) == 1
    assert "media of 1 of 6 candidates" in capsys.readouterr().err
    assert main(["status", str(out), "--json"]) == 1
    subset = printed(capsys)["subsets"]["pairs"]
    assert (subset["done"], subset["missing"], subset["missing_media"]) == (3, 0, 1)
    assert "media of 1 of 6 candidates" in subset["problems"][0]["message"]
    assert main(["status", str(out)]) == 1
    assert "media of 1 of 6 candidates" in capsys.readouterr().out
    assert main(["verify", str(out)]) == 1


def test_a_kind_that_is_not_installed_says_what_to_install(built: Path, capsys: Said) -> None:
    path = built / "pairs/_meta/log/recipe.json"
    path.write_text(path.read_text().replace('"image-pairs"', '"clevr-change"'))
    assert main(["status", str(built)]) in (0, 1, 2)
    said = capsys.readouterr()
    words = said.out + said.err
    assert "clevr-change" in words and "install" in words and "build it first" not in words
    assert "pydantic" not in words and "Traceback" not in words


@pytest.mark.parametrize("group", ["eval", "train"])
@pytest.mark.parametrize("code", ["import nothing_of_this_name", "1 / 0", "mine = 3"])
def test_a_command_of_a_package_that_fails_fails_alone(
    built: Path, capsys: Said, bring: Callable[..., None], code: str, group: str
) -> None:
    module = f"their_{group}_{len(code)}"
    (built.parent / f"{module}.py").write_text(code)
    bring("unwell", f"twinset.{group}_commands", mine=f"{module}:mine")
    assert main([group, "--help"]) == 0
    said = capsys.readouterr()
    assert "of unwell 1.0" in said.out and said.err == ""
    assert main([group, "mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the command mine: " in line and line.endswith("; correct its package")


def test_a_folder_in_place_of_a_file_is_named_with_what_to_do(built: Path, capsys: Said) -> None:
    receipt = built / "pairs/_meta/receipts/00000.json"
    receipt.unlink()
    receipt.mkdir()
    assert main(["build", str(built.parent / "recipe.yaml"), "--out", str(built)]) == 1
    said = capsys.readouterr().err
    assert str(receipt) in said and "remove" in said


@pytest.mark.slow
def test_parse_writes_relations_and_names_lines_left_out(tmp_path: Path, capsys: Said) -> None:
    lines = [
        b'{"id": "a", "image_id": "i", "caption": "A dog is holding a ball."}',
        b"{oops",
        b'{"id": "b", "image_id": "j", "caption": "A cat."}',
    ]
    (tmp_path / "captions.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    command = ["parse", str(tmp_path / "captions.jsonl"), "--out", str(tmp_path / "graphs"), "--json"]
    assert main(command) == 0
    said = capsys.readouterr()
    counts = json.loads(said.out)["subsets"]["scene-graphs"]
    assert (counts["planned"], counts["kept"], counts["rejected"]) == (2, 1, {"no-relation": 1})
    assert "captions.jsonl line 2: left out, not-json\n" in said.err
    assert main(command) == 0  # resumes
    second = [*command[:2], "-o", str(tmp_path / "second"), "--confirm", "en_ewt_sm"]
    assert main(second) == 0
    assert pq.read_table(tmp_path / "second/scene-graphs/_meta/index.parquet")["confirmed"].to_pylist() == [True]


def test_parse_names_captions_that_are_absent(tmp_path: Path, capsys: Said) -> None:
    assert main(["parse", str(tmp_path / "nothing.tsv"), "--out", str(tmp_path / "graphs")]) == 2
    said = capsys.readouterr().err
    assert said == f"twinset: {tmp_path}/nothing.tsv: there is no such file or folder; name captions that exist\n"


@pytest.mark.parametrize("place", ["", "s3://", "s3:///prefix", "file://", "a\0b", "caf\udce9"])
def test_a_place_that_is_none_is_wrong_use(recipe: Path, place: str, capsys: Said) -> None:
    for arguments in (["build", str(recipe), "--out", place], ["status", place]):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert "name" in said and "Traceback" not in said
