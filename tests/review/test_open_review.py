"""The review of a real build: pairs that wait to be screened, answered on the page and by file, then built on."""

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.generators.human_baseline.asked_pairs import write_pairs
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.review.desk import ReviewDesk
from twinset.review.opening import open_desk

PAIRS = 4


def wait(folder: Path, out: Path) -> None:
    """Build until people are waited for."""
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    recipe = parse_recipe({"name": "mine", "subsets": {"mine": {"source": source, "screening": True}}})
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe, str(out))


def desk_of(out: Path, **settings: Any) -> ReviewDesk:
    desk = open_desk(str(out), **settings)
    assert desk is not None
    return desk


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screening")
    write_pairs(folder, PAIRS)
    wait(folder, folder / "out")
    return folder


@pytest.fixture
def out(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn / "out", tmp_path / "out")
    return tmp_path / "out"


def test_the_secret_is_the_readers_own(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    (out / "_review").mkdir()
    (out / "_review" / "secret").write_text("ab" * 32)
    (tmp_path / "link").symlink_to(out)
    secrets = [desk_of(place).tasks.secret for place in (out, tmp_path / "link")]
    assert secrets[0] == secrets[1] != b"\xab" * 32
    [file] = (tmp_path / "cache" / "review").glob("*/secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shutil.rmtree(out / "_review")
    (out / "_review").symlink_to(tmp_path)
    with pytest.raises(WrongUse, match="nothing is written through a link"):
        open_desk(str(out))


def test_only_what_changed_in_a_plan_is_asked_again(drawn: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[str] = []
    desk = desk_of(out, on_decided=decided.append)
    for task in desk.next("anna", PAIRS):
        assert decided == []
        for url in task["statement"]["images"]:
            assert desk.tasks.picture(*desk.tasks.now().images[url.rpartition("/")[2]]).startswith(b"\xff\xd8")
        desk.answer("anna", task["id"], "o0", "", 1.0)
    assert decided == ["mine-decisions"]
    changed = out.parent / "changed"
    shutil.copytree(drawn, changed, ignore=shutil.ignore_patterns("out"))
    records = json.loads((changed / "pairs.json").read_bytes())
    records[2]["caption1"] = "now another"
    (changed / "pairs.json").write_text(json.dumps(records))
    wait(changed, out)
    monkeypatch.setattr("twinset.review.tasks.LOOK_SECONDS", 0)
    [again] = desk.next("anna", 9)
    assert again["statement"]["texts"] == ["left 2", "now another"]
    assert again["progress"]["done"] == PAIRS - 1


def test_answers_go_out_and_come_in_by_file(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [task.candidate.key for task in desk_of(out).tasks.now().tasks]
    file = tmp_path / "given.csv"
    file.write_text("\n".join(["task,answer", *(f"{key},keep" for key in keys)]))
    assert main(["review", str(out), "--import", str(file), "--annotator", "anna"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[:2] == ["stage: mine-decisions", "new: 4"]
    assert printed.err == "mine-decisions: all decisions are in; run the same build again\n"
    assert main(["review", str(out)]) == 0
    assert "the decisions are in, run the same build again" in capsys.readouterr().out
    assert main(["review", str(out), "--out", str(tmp_path / "all.parquet")]) == 0
    assert capsys.readouterr().out == f"answers: 4\ntasks: 4\nout: {tmp_path / 'all.parquet'}\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stage", "other"], "no such stage that asks people; those that do: mine-decisions"),
        (["--annotators", "admin"], "--annotators 'admin'"),
        (["--behind-https", "http://review.example.org"], "write https:// and a host alone"),
        (["--prolific", "a b"], "completion code"),
    ],
)
def test_a_wrong_option_is_named(out: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert main(["review", str(out), *options]) == 2
    assert words in capsys.readouterr().err
