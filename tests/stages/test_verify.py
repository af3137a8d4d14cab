"""The audit names every kind of damage, with file and remedy."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE
from twinset.cli.main import main
from twinset.shards.media.media_folder import MediaFolder
from twinset.shards.storage.store import Store
from twinset.stages.description_record import changed_descriptions
from twinset.stages.index import write_index
from twinset.stages.run_here import build_here
from twinset.stages.verify import verify_stage

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 7, 8)]


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=1)
    build.make_all()
    return build


def problems(build: Any, media: MediaFolder | None = None) -> list[str]:
    return [str(problem) for problem in verify_stage(build.store, build.state(), media)]


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("at", [0, 300, 512, 1000, -1])
def test_a_flipped_bit_in_a_tar_is_found_wherever_it_is(built: Any, tmp_path: Path, at: int) -> None:
    flip(tmp_path / "out/eq-x/test/00001.tar", at)
    (problem,) = problems(built)
    assert "eq-x/test/00001.tar: sha256" in problem and "receipts/00001.json and run the same build again" in problem


def test_another_plan_than_the_stage_records_is_found(built: Any) -> None:
    built.store.write("eq-x/_meta/stage.json", built.stage.model_copy(update={"plan": "0" * 32}).to_bytes())
    (problem,) = problems(built)
    assert "plan/shards.parquet: not the plan of stage.json" in problem and "remove eq-x/_meta/stage.json" in problem


def test_changed_and_missing_media_are_found(built: Any, media: Path) -> None:
    assert problems(built, MediaFolder(media)) == []
    (media / "a.mp4").write_bytes(b"A" * 100)
    (media / "b.mp4").unlink()
    first, second = problems(built, MediaFolder(media))
    assert "a.mp4: not the file that the samples were made from" in first
    assert "remove eq-x/_meta/receipts/00000.json and run the same build again" in first
    assert "b.mp4: the source is gone" in second
    assert "remove eq-x/_meta/receipts/00001.json and run the same build again" in second


@pytest.mark.parametrize("name", ["../../other/stage.json", "/dev/zero", "log", "a" * 5000, "\0", "\ud800"])
def test_a_record_of_descriptions_leads_nowhere_else(built: Any, tmp_path: Path, name: str) -> None:
    write_index(built.store, built.state(), "pair")
    path = tmp_path / "out/eq-x/_meta/log/described.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"digest": "", "look": "", "words": "", "files": {name: "0" * 64}}))
    assert [*changed_descriptions(built.store, "eq-x")] == [] and problems(built) == []


def test_damage_that_no_stamp_tells_of_is_mended_as_the_audit_says(
    tmp_path: Path, greys: Any, no_cards: Any, files_below: Any
) -> None:
    """... as when a disk fails: a build trusts what it has hashed, and looks again when it is told to."""
    recipe, out = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out"
    build_here(recipe, str(out))
    whole = files_below(out)
    for damaged in ("eq-x/test/00001.tar", "eq-x/_meta/rows/00001.parquet"):
        times = (out / damaged).stat()
        flip(out / damaged, 600)
        os.utime(out / damaged, ns=(times.st_atime_ns, times.st_mtime_ns))
        ((_, found),) = twinset.verify(str(out))["subsets"].items()
        problem = str(found["problems"][0])
        assert len(found["problems"]) == 1
        assert f"{damaged}: sha256" in problem and "remove eq-x/_meta/receipts/00001.json and run" in problem
        (out / "eq-x/_meta/receipts/00001.json").unlink()
        build_here(recipe, str(out))
        assert files_below(out) == whole


def test_any_flipped_bit_of_a_receipt_is_found_and_mended_as_the_audit_says(
    tmp_path: Path, greys: Any, no_cards: Any, files_below: Any
) -> None:
    recipe, out = recipe_of({"eq-x": greys("eq-x", [*SCENES, ("gone", 1, 9)], 1)}), tmp_path / "out"
    build_here(recipe, str(out))
    whole = files_below(out)
    receipt = out / "eq-x/_meta/receipts/00003.json"  # of the missing video: also its name and the reason are held
    times, content = receipt.stat(), receipt.read_bytes()
    for at in range(0, len(content), 7):
        flip(receipt, at)
        os.utime(receipt, ns=(times.st_atime_ns, times.st_mtime_ns))
        ((_, found),) = twinset.verify(str(out))["subsets"].items()
        said = "eq-x/_meta/receipts/00003.json: not what eq-x/_meta/log/ledger.parquet says was read from it; one of"
        assert [problem for problem in found["problems"] if str(problem).startswith(said)], at
        flip(receipt, at)
        os.utime(receipt, ns=(times.st_atime_ns, times.st_mtime_ns))
    flip(receipt, 40)
    os.utime(receipt, ns=(times.st_atime_ns, times.st_mtime_ns))
    receipt.unlink()
    (out / "eq-x/_meta/log/ledger.parquet").unlink()
    build_here(recipe, str(out))
    assert files_below(out) == whole


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("croissant.json", b'"eq-x"', b'"eq-y"'),
        ("log/recipe.json", b'"shard_size": 1', b'"shard_size": 3'),
        ("stage.json", b'"excluded":{}', b'"excluded":{"odd":1}'),
    ],
)
def test_a_flipped_bit_beside_the_tars_is_found_and_mended_as_the_audit_says(
    tmp_path: Path, greys: Any, monkeypatch: pytest.MonkeyPatch, files_below: Any, name: str, old: bytes, new: bytes
) -> None:
    def describe(store: Store, subset: str, summary: Any) -> None:
        store.write(f"{subset}/README.md", b"words")
        store.write(f"{subset}/_meta/croissant.json", b'{"name": "eq-x"}')

    monkeypatch.setattr("twinset.cards.describe.describe", describe)
    monkeypatch.setattr("twinset.cards.describe.show", lambda *_: None)
    recipe, out = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out"
    build_here(recipe, str(out))
    whole, path = files_below(out), out / "eq-x/_meta" / name
    assert twinset.verify(str(out))["subsets"]["eq-x"]["problems"] == []
    damaged = path.read_bytes().replace(old, new)
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    (problem,) = twinset.verify(str(out))["subsets"]["eq-x"]["problems"]
    assert str(problem).startswith(
        f"eq-x/_meta/{name}: absent, or not the one that the build wrote; remove eq-x/_meta/stage"
    )
    (out / "eq-x/_meta/stage.json").unlink()
    MADE.clear()
    build_here(recipe, str(out))
    assert files_below(out) == whole and not MADE


def test_bytes_are_checked_without_the_package_that_made_them(
    tmp_path: Path, greys: Any, no_cards: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), out)
    with monkeypatch.context() as patched:
        patched.setattr("twinset.contracts.doors.installed", lambda group: {})
        ((_, found),) = twinset.verify(out)["subsets"].items()
        assert (found["kept"], found["problems"]) == (3, [])
        assert main(["verify", out]) == 0
        assert main(["verify", out, "--media"]) == 1
        assert "there is no source 'test-greys' here" in capsys.readouterr().err
        flip(tmp_path / "out/eq-x/test/00001.tar", 600)
        assert main(["verify", out]) == 1 and "eq-x/test/00001.tar: sha256" in capsys.readouterr().err
