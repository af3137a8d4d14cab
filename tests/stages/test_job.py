"""Receipts alone say what is done: every way in which one stops holding is noticed and named."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Dark, Greys
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed
from twinset.contracts.receipt import Receipt, parse_receipt
from twinset.shards.media.media_folder import MediaFolder
from twinset.stages import job
from twinset.stages.job import Job
from twinset.stages.make import make_shard
from twinset.stages.overview import verify_stage
from twinset.stages.plan import prepare

SCENES = [("a", 1, 2), ("b", 3, 4), ("gone", 5, 6), ("c", 7, 8)]
RECEIPT = "eq-x/_meta/receipts/00001.json"
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def built(planned_build: Any) -> Any:
    """Four shards of one scene each, all made; the media of shard 2 is missing."""
    build = planned_build(SCENES, 1)
    build.make_all()
    return build


def rewritten(**changes: Any) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        receipt = parse_receipt((out / RECEIPT).read_bytes())
        assert receipt is not None
        (out / RECEIPT).write_bytes(Receipt(**{**receipt.model_dump(), **changes}).to_bytes())

    return change


def cut(path: str) -> Callable[[Path], None]:
    return lambda out: (out / path).write_bytes((out / path).read_bytes()[:-512])  # type: ignore[func-returns-value]


TAR, ROWS = "eq-x/test/00001.tar", "eq-x/_meta/rows/00001.parquet"
SPOILED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "empty": ("cannot be read", lambda out: (out / RECEIPT).write_bytes(b"")),
    "of another shard": ("cannot be read", rewritten(shard=3)),
    "of another split": ("another shard", rewritten(split="train")),
    "of other settings": ("recipe, its inputs or a version", rewritten(content="0" * 32)),
    "of other candidates": ("recipe, its inputs or a version", rewritten(slice="0" * 32)),
    "of media elsewhere": ("has changed", rewritten(missing={"../../elsewhere": 5})),
    "tar gone": ("tar is missing", lambda out: (out / TAR).unlink()),
    "tar cut short": ("tar is missing or has another size", cut(TAR)),
    "rows cut short": ("rows are missing or have another size", cut(ROWS)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_every_way_of_going_stale_is_named_and_mended(built: Any, tmp_path: Path, files_below: Any, how: str) -> None:
    before = files_below(tmp_path / "out")
    reason, spoil = SPOILED[how]
    spoil(tmp_path / "out")
    state = built.state()
    assert list(state.stale) == [1] and reason in state.stale[1]
    assert state.todo == [1] and sorted(state.done) == [0, 2, 3]
    built.make_all()
    assert files_below(tmp_path / "out") == before


PAIR = [("a", 1, 2), ("b", 1, 3)]
Change = Callable[[pytest.MonkeyPatch, Path], Any]


CHANGES: dict[str, Change] = {
    "generator": lambda patch, _: patch.setattr(Greys, "version", 2),
    "generator; bring": lambda patch, _: patch.setattr(Greys, "weights", lambda self: {"model": "1" * 64}),
    "filters": lambda patch, _: patch.setattr(Dark, "version", 2),
    r"numpy \(\S+ in the plan, 0 here\)": lambda patch, _: patch.setattr(
        "twinset.contracts.stage.version", lambda name: "0"
    ),
}


@pytest.fixture(autouse=True)
def another_process() -> None:
    job._worker_of.cache_clear()


@pytest.mark.parametrize("differs", CHANGES)
def test_what_would_change_the_bytes_is_named(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    build = planned_build(PAIR, 1, ["test-dark"])
    assert build.stage.facts["generator"]["distribution"] == "twinset-tests 1.0"
    CHANGES[differs](monkeypatch, tmp_path)
    with pytest.raises(BuildFailed, match=f"differs in {differs}"):
        make_shard(build.store.root, "eq-x", 0)
    assert build.state().todo == [0, 1]


def test_shards_of_two_kinds_of_machine_do_not_mix(planned_build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    build = planned_build(PAIR, 1, micro_batch=4)
    make_shard(build.store.root, "eq-x", 0)
    monkeypatch.setattr(Greys, "runs_on", lambda self: "NVIDIA H100")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"out/eq-x: made on different types of machine"):
        make_shard(build.store.root, "eq-x", 1)
    allowed = recipe_of({"eq-x": build.job.recipe["eq-x"].model_dump(mode="json")}, allow_mixed_runtimes=True)
    prepare(Job(allowed, build.store), "eq-x")
    assert make_shard(build.store.root, "eq-x", 1).kept == 1


def damage(path: Path, at: int = 600) -> None:
    """Flip a bit as a failing disk does: no stamp tells of it, and a build trusts what it has hashed."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_changed_and_missing_media_are_found(built: Any, media: Path) -> None:
    assert [*verify_stage(built.store, built.state(), MediaFolder(media))] == []
    (media / "a.mp4").write_bytes(b"A" * 100)
    (media / "b.mp4").unlink()
    first, second = map(str, verify_stage(built.store, built.state(), MediaFolder(media)))
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
    tmp_path: Path, greys: Any, files_below: Any, file: str, at: int, message: str, remove: list[str]
) -> None:
    recipe, out = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out"
    twinset.build(recipe, str(out))
    whole = files_below(out)
    damage(out / "eq-x" / file, at)
    lines = [str(problem) for problem in twinset.verify(str(out))["subsets"]["eq-x"]["problems"]]
    assert any(line.startswith(f"eq-x/{file}: {message}") for line in lines), lines
    for path in remove:
        (out / "eq-x" / path).unlink()
    twinset.build(recipe, str(out))
    assert files_below(out) == whole


def test_bytes_are_checked_without_the_package_that_made_them(
    tmp_path: Path, greys: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    twinset.build(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), out)
    with monkeypatch.context() as patched:
        patched.setattr("twinset.contracts.doors.installed", lambda group: {})
        assert main(["verify", out]) == 0
        assert main(["verify", out, "--media"]) == 1
        assert "there is no source 'test-greys' here" in capsys.readouterr().err
        damage(tmp_path / "out/eq-x/test/00001.tar")
        assert main(["verify", out]) == 1 and "eq-x/test/00001.tar: sha256" in capsys.readouterr().err
