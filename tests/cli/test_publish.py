"""`twinset publish` into a folder: what it holds, and what is refused.

What ``twinset plan`` prints.
"""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.cli.published import SAID, is_whole, run
from twinset.cli.main import main
from twinset.generators.image_pairs import ImagePairs, NamedPairCandidate


def test_a_folder_is_laid_out_as_the_hub_shows_it(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = out.parent / "published"
    (out / "pairs/_meta/mine.txt").write_text("a note")
    (out / "pairs/_meta/look-4.png").write_bytes(b"a sheet")
    for name in ("mine.json", "mine.png", "rows/.mine", "rows/mine.parquet", "plan/mine.parquet", "receipts/mine.json"):
        (out / "pairs/_meta" / name).write_bytes(b"{}")
    assert run(out, "--to", to) == 0
    files = {path.relative_to(to).as_posix(): path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert is_whole(files)
    assert "preview/pairs/data/test-00000-of-00001.parquet" in files
    assert not [path for path in files if "/log/" in path or "mine" in path or "look-4" in path]
    front = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    assert [(one["config_name"], one["data_files"]) for one in front["configs"]] == [
        ("pairs", [{"split": "test", "path": "pairs/test/*.tar"}])
    ]
    assert yaml.safe_load(files["CITATION.cff"])["authors"] == [
        {"family-names": "Doe", "given-names": "Jane"},
        {"name": "The shades group"},
    ]
    croissant = json.loads(files["pairs/_meta/croissant.json"])
    assert [one["name"] for one in croissant["creator"]] == ["Doe, Jane", "The shades group"]
    assert len(list(twinset.load(to, "pairs"))) == 6
    assert twinset.verify(out)["subsets"]["pairs"]["problems"] == []
    assert run(out, "--to", to) == 2
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["pairs/_meta/look.png", "pairs/_meta/rows", "pairs"])
def test_links_are_not_published(out: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    (out / path).rename(out.parent / "elsewhere")
    (out / path).symlink_to(out.parent / "elsewhere")
    assert run(out, "--to", out.parent / "x") == 2
    assert f"{out / path}: a link" in capsys.readouterr().err
    assert not (out.parent / "x").exists()


def test_what_is_missing_is_named_with_its_key(built: Path, recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(built, "--to", built.parent / "x") == 2
    said = capsys.readouterr().err
    assert "set authors" in said and "pairs: nothing to cite; set citation" in said
    (built / "pairs/test/00001.tar").unlink()
    twinset.build(str(recipe), built, settings=SAID)
    (built / "pairs/test/00001.tar").unlink()
    assert run(built, "--to", built.parent / "x") == 2
    assert "00001" in capsys.readouterr().err
    assert not (built.parent / "x").exists()


def test_a_page_is_written_again(out: Path) -> None:
    """Nothing vouches for look.html: somebody may have written into it."""
    page = (out / "look.html").read_text()
    (out / "look.html").write_text("<script>")
    assert run(out, "--to", out.parent / "x") == 0
    assert (out.parent / "x/look.html").read_text() == page


@pytest.mark.parametrize("path", ["../../secrets/*.tar", "/etc/*.tar", "other/test/*.tar", "https://a.example/b.tar"])
def test_a_card_that_would_load_other_files(out: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    card = out / "pairs/README.md"
    card.write_text(card.read_text().replace("test/*.tar", path, 1))
    assert run(out, "--to", out.parent / "x") == 2
    assert "pairs/README.md: no card with the metadata of this build; remove it" in capsys.readouterr().err


@pytest.mark.parametrize("damaged", [b"", b"PAR1 no index"])
def test_a_damaged_index_is_named(out: Path, damaged: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (out / "pairs/_meta/index.parquet").write_bytes(damaged)
    assert run(out, "--to", out.parent / "x") == 2
    said = capsys.readouterr().err
    assert "pairs/_meta/index.parquet" in said and "is not published" in said and "Traceback" not in said


def test_a_full_disk_leaves_no_folder(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfileobj", full)
        assert run(out, "--to", out.parent / "x") == 1
    assert "free some room, or name another --to" in capsys.readouterr().err
    assert {path.name for path in out.parent.iterdir()} == {"out"}


Said = pytest.CaptureFixture[str]


def printed(capsys: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_plan_names_models_and_gpus_that_are_not_here_and_what_left_out_means(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (recipe.parent / "pairs.jsonl").open("a").write("{}\n")
    model = recipe.parent / "no-model"
    drawn = f"{{kind: stable-diffusion, model: {model}, device: gpu, licence: CC0-1.0}}"
    recipe.write_text(f"{recipe.read_text()}  drawn: {{source: {drawn}, count: 1}}\n")
    assert main(["plan", str(recipe)]) == 0
    said = capsys.readouterr()
    lacking = [line for line in said.err.splitlines() if line.startswith("not found here: ")]
    assert f"there is no model folder {model}" in lacking[0] and "device is gpu, but torch finds no" in lacking[1]
    (left_out,) = [line for line in said.out.splitlines() if "left out by the plan" in line]
    assert left_out.endswith("1 left out by the plan: no-id (records without an id, which is text or a whole number)")


def test_a_plan_prints_what_stages_take_and_whose_rates_these_are(recipe: Path, built: Path, capsys: Said) -> None:
    assert main(["plan", str(recipe)]) == 0
    assert "not known; build a few samples, and name their folder with --like" in capsys.readouterr().out
    assert main(["plan", str(recipe), "--like", str(built)]) == 0
    header, row = capsys.readouterr().out.splitlines()[-2:]
    assert header.split()[:4] == ["stage", "candidates", "shards", "samples"]
    assert row.startswith("pairs  6 ") and row.endswith(f"6 candidates in {built}")
    assert main(["plan", str(recipe), "--like", str(recipe.parent / "nowhere")]) == 2


def test_a_plan_that_fails_is_one_line_and_a_traceback_where_it_is_asked_for(
    recipe: Path, capsys: Said, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(self: ImagePairs) -> Iterator[NamedPairCandidate]:
        yield dict[str, NamedPairCandidate]()["lost"]

    monkeypatch.setattr(ImagePairs, "plan", plan)
    assert main(["plan", str(recipe)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pairs: plan() of source 'image-pairs' failed: KeyError: 'lost' (" in line and "test_publish.py:" in line
    assert "Traceback" not in caplog.text
    with caplog.at_level("INFO", "twinset"):
        main(["plan", str(recipe), "--verbose"])
    assert "Traceback" in caplog.text
