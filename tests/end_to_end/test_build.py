"""The miniature as a user builds it without a server: real decoding, faces and renders."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SMALLER_DEMO
from twinset.cli.main import main
from twinset_demo import MINIATURE

NATURAL = ("eq-ag", "eq-gebc", "eq-youcook2")
RENDERED = ("eq-kubric-location", "eq-kubric-counting", "eq-kubric-attribute")
DRAWN = ("eq-sd",)
MINED = ("triplets",)
NEGATIVES = ("trohn-text", "trohn-img", "bivlc")
TEMPLATES = ("focus-attribute", "change-attribute", "focus-object", "change-object")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, smaller_demo: Any) -> tuple[Path, dict[str, Any]]:
    """A copy of the smaller demo's build, and what the build counted."""
    out = tmp_path_factory.mktemp("demo") / "out"
    shutil.copytree(smaller_demo[0], out)
    return out, smaller_demo[1]


def test_demo_makes_all_subsets(demo: Any) -> None:
    _, counts = demo
    assert set(counts) == {*NATURAL, *RENDERED, *DRAWN, *MINED, *TEMPLATES, *NEGATIVES}
    for subset in counts.values():
        assert subset["kept"] > 0
        assert subset["planned"] == subset["kept"] + sum(subset["rejected"].values())
    assert counts["eq-youcook2"]["rejected"]["face"] > 0
    assert {"motion-word", "equal-captions"} <= set(counts["eq-gebc"]["rejected"])


def test_demo_verifies_and_status_agrees(demo: Any, twinset: Any, counts_of: Any) -> None:
    out, counts = demo
    verified = counts_of(twinset("verify", out, "--media", "--json"))
    assert all(subset["problems"] == [] for subset in verified.values())
    status = counts_of(twinset("status", out, "--json"))  # stdout is JSON alone
    assert status.keys() == counts.keys()
    for name, subset in status.items():
        assert subset["done"] == subset["shards"]
        assert subset["missing"] == 0 and subset["stale"] == {}
        assert {key: subset[key] for key in counts[name]} == counts[name]


def test_look_and_exports(demo: Any, twinset: Any, tmp_path: Path) -> None:
    out, counts = demo
    look = twinset("look", out, "--count", "4")
    assert look.returncode == 0, look.stderr
    assert (out / "look-4.html").stat().st_size > 10_000
    pairs = (*NATURAL, *RENDERED, *DRAWN)
    for format, names in (("eqben", pairs), ("openclip", pairs), ("genecis", TEMPLATES)):
        only = [argument for name in names for argument in ("--only", name)]
        export = twinset("export", out, *only, "--format", format, "--out", tmp_path / format)
        assert export.returncode == 0, export.stderr
        assert f"samples: {sum(counts[name]['kept'] for name in names):,}\n" in export.stdout


def test_a_changed_byte_is_found_and_mended_and_nothing_else_made_anew(
    demo: Any, twinset: Any, contents: Any, counts_of: Any, tmp_path: Path
) -> None:
    out, counts = demo
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    made = [path for path in contents(copy) if path.endswith(".tar") or "/receipts/" in path]
    assert {Path(path).suffix for path in made} == {".tar", ".json"}
    tar = next((copy / "eq-ag/test").glob("*.tar"))
    content = bytearray(tar.read_bytes())
    content[len(content) // 2] ^= 1
    tar.write_bytes(content)
    sound = [path for path in made if not (path.startswith("eq-ag/") and Path(path).stem == tar.stem)]
    before = {path: os.stat(copy / path).st_mtime_ns for path in sound}
    verify = twinset("verify", copy)
    assert verify.returncode == 1 and tar.name in verify.stderr
    assert counts_of(twinset("build", "demo", "--out", copy, "--json", *SMALLER_DEMO)) == counts
    assert contents(copy) == contents(out)
    assert {path: os.stat(copy / path).st_mtime_ns for path in sound} == before


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "runner"), [("1", "threads"), ("4", "threads"), ("2", "processes")])
def test_bytes_do_not_depend_on_workers_and_their_kind(
    workers: str, runner: str, small_recipe: Path, twinset: Any, contents: Any, reference: Path, tmp_path: Path
) -> None:
    command = ("build", small_recipe, "--out", tmp_path / "out", "--workers", workers, "--runner", runner)
    assert twinset(*command).returncode == 0
    assert contents(tmp_path / "out") == contents(reference)


@pytest.mark.slow  # tests/stages says it of drawn sources
def test_only_one_subset_then_all_equals_all_at_once(
    small_recipe: Path, twinset: Any, contents: Any, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert twinset("build", small_recipe, "--out", out, "--only", "eq-gebc").returncode == 0
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["eq-gebc"]
    assert twinset("build", small_recipe, "--out", out).returncode == 0
    assert contents(out) == contents(reference)


@pytest.mark.slow  # tests/stages says it of drawn sources
def test_wrong_media_folder_fails_and_completes_once_corrected(
    small_recipe: Path, twinset: Any, contents: Any, reference: Path, tmp_path: Path
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "media"
    elsewhere.mkdir()
    command = ("build", small_recipe, "--out", out, "--set", f"subsets.eq-ag.source.media={elsewhere}")
    failed = twinset(*command)
    assert failed.returncode == 1
    assert "eq-ag: media of " in failed.stderr and str(elsewhere) in failed.stderr
    for video in (MINIATURE / "action_genome/videos").iterdir():
        shutil.copy(video, elsewhere)
    assert twinset(*command).returncode == 0
    made, expected = contents(out), contents(reference)
    del made["eq-ag/README.md"], expected["eq-ag/README.md"]  # whose recipe names the folder
    assert made == expected


def test_wrong_use_exits_with_2(
    twinset: Any,
    small_recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    recipe, to = tmp_path / "wrong.yaml", ["--out", str(tmp_path / "out")]
    recipe.write_text(small_recipe.read_text().replace("shard_size", "shard_sise"))
    assert main(["build", str(recipe), *to]) == 2
    said = capsys.readouterr().err
    assert "subsets.eq-ag" in said and "did you mean 'shard_size'" in said
    assert main(["build", str(small_recipe), *to, "--set", "subsets.eq-ag.source.media=/nowhere"]) == 2
    assert "subsets.eq-ag.source.media" in capsys.readouterr().err
    assert main(["build", "no-such-recipe", *to]) == 2
    assert not (tmp_path / "out").exists()
    assert twinset("status", tmp_path / "nothing").returncode == 2  # the process's own code, once


@pytest.mark.slow  # tests/stages says it of drawn sources
def test_a_damaged_plan_is_planned_again_and_finished_shards_stay(
    reference: Path, small_recipe: Path, twinset: Any, contents: Any, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(reference, copy)
    (copy / "eq-ag/_meta/stage.json").write_bytes(b"{")
    (copy / "eq-gebc/_meta/plan/shards.parquet").write_bytes(b"PAR1")
    tars = {path: path.stat().st_mtime_ns for path in copy.rglob("*.tar")}
    result = twinset("build", small_recipe, "--out", copy)
    assert result.returncode == 0, result.stderr
    assert contents(copy) == contents(reference)
    assert {path: path.stat().st_mtime_ns for path in tars} == tars
