"""The audit names every kind of damage, with file and remedy."""

import os
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.cli.main import main
from twinset.shards.media.media_folder import MediaFolder
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.overview import verify_stage

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 7, 8)]


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=1)
    build.make_all()
    return build


def problems(build: Any, media: MediaFolder | None = None) -> list[str]:
    return [str(problem) for problem in verify_stage(build.store, build.state(), media)]


def damage(path: Path, at: int = 600) -> None:
    """Flip a bit as a failing disk does: no stamp tells of it, and a build trusts what it has hashed."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_changed_and_missing_media_are_found(built: Any, media: Path) -> None:
    assert problems(built, MediaFolder(media)) == []
    (media / "a.mp4").write_bytes(b"A" * 100)
    (media / "b.mp4").unlink()
    first, second = problems(built, MediaFolder(media))
    assert "a.mp4: not the file that the samples were made from" in first
    assert "remove eq-x/_meta/receipts/00000.json and run the same build again" in first
    assert "b.mp4: the source is gone" in second and "remove eq-x/_meta/receipts/00001.json" in second


BESIDE = "absent, or not the one that the build wrote; remove eq-x/_meta/stage.json and run"
LEDGER = "eq-x/_meta/log/ledger.parquet"


@pytest.mark.parametrize(
    ("file", "at", "message", "remove"),
    [
        ("test/00001.tar", 600, "sha256", ["_meta/receipts/00001.json"]),
        ("_meta/rows/00001.parquet", 600, "sha256", ["_meta/receipts/00001.json"]),
        ("_meta/receipts/00001.json", 40, f"not what {LEDGER} says was", ["_meta/receipts/00001.json", LEDGER[5:]]),
        ("_meta/log/recipe.json", 20, BESIDE, ["_meta/stage.json"]),
        ("_meta/index.parquet", 600, "absent, or not of the shards", ["_meta/index.json"]),
    ],
)
def test_damage_that_no_stamp_tells_of_is_mended_as_the_audit_says(
    tmp_path: Path, greys: Any, no_cards: Any, files_below: Any, file: str, at: int, message: str, remove: list[str]
) -> None:
    recipe, out = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out"
    build_here(recipe, str(out))
    whole = files_below(out)
    damage(out / "eq-x" / file, at)
    lines = [str(problem) for problem in twinset.verify(str(out))["subsets"]["eq-x"]["problems"]]
    assert any(line.startswith(f"eq-x/{file}: {message}") for line in lines), lines
    for path in remove:
        (out / "eq-x" / path).unlink()
    build_here(recipe, str(out))
    assert files_below(out) == whole


def test_bytes_are_checked_without_the_package_that_made_them(
    tmp_path: Path, greys: Any, no_cards: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), out)
    with monkeypatch.context() as patched:
        patched.setattr("twinset.contracts.doors.installed", lambda group: {})
        assert main(["verify", out]) == 0
        assert main(["verify", out, "--media"]) == 1
        assert "there is no source 'test-greys' here" in capsys.readouterr().err
        damage(tmp_path / "out/eq-x/test/00001.tar")
        assert main(["verify", out]) == 1 and "eq-x/test/00001.tar: sha256" in capsys.readouterr().err


def test_a_stage_that_cannot_be_read_is_named(tmp_path: Path, greys: Any, no_cards: Any) -> None:
    out = tmp_path / "out"
    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), str(out))
    (out / "eq-x/_meta/stage.json").unlink()
    (out / "eq-x/_meta/stage.json").symlink_to("/dev/zero")  # which never ends
    for look in (twinset.status, twinset.verify):
        (problem,) = look(str(out))["subsets"]["eq-x"]["problems"]
        assert "eq-x/_meta/stage.json: a folder, a pipe or a device, not a file; remove it and run" in str(problem)
