"""The review of a real build: pairs that wait to be screened, answered on the page and by file, then built on."""

import hashlib
import io
import json
import re
import shutil
import stat
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import twinset
from tests.generators.human_baseline.asked_pairs import write_pairs
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import table_of
from twinset.review.desk import ReviewDesk
from twinset.review.opening import open_desk
from twinset.shards.storage import layout

PAIRS = 4
CHECKOUT = Path(__file__).resolve().parents[2]


def recipe_of(folder: Path, **screening: Any) -> Recipe:
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    return parse_recipe({"name": "mine", "subsets": {"mine": {"source": source, "screening": screening or True}}})


def wait(folder: Path, out: Path, **screening: Any) -> None:
    """Build until people are waited for."""
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe_of(folder, **screening), str(out))


def desk_of(out: Path, **settings: Any) -> ReviewDesk:
    desk = open_desk(str(out), **settings)
    assert desk is not None
    return desk


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of images, and below ``out`` the build that waits."""
    folder = tmp_path_factory.mktemp("screening")
    write_pairs(folder, PAIRS)
    wait(folder, folder / "out")
    return folder


@pytest.fixture
def out(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn / "out", tmp_path / "out")
    return tmp_path / "out"


def test_a_waiting_stage_is_asked_with_its_images(out: Path) -> None:
    desk = desk_of(out)
    tasks, loaded = desk.next("anna", 9), desk.tasks.now()
    assert (len(tasks), tasks[0]["stage"], tasks[0]["question"]) == (PAIRS, "mine-decisions", "keep-pair")
    for url in tasks[0]["statement"]["images"]:
        task, number = loaded.images[url.rpartition("/")[2]]
        stored = loaded.stages[task.stage].generator.picture(task.candidate, number)
        assert hashlib.sha256(stored).hexdigest() == task.candidate.image_sha256s[number]
        served, made = (np.asarray(Image.open(io.BytesIO(each))) for each in (desk.tasks.picture(task, number), stored))
        assert np.abs(served.astype(int) - made).mean() < 3


def test_the_secret_is_the_readers_own_whatever_lies_in_the_folder(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    (out / "_review").mkdir()
    (out / "_review" / "secret").write_text("ab" * 32)
    (tmp_path / "link").symlink_to(out)
    secrets = [desk_of(place).tasks.secret for place in (out, tmp_path / "link")]
    assert secrets[0] == secrets[1] != b"\xab" * 32
    [file] = (tmp_path / "cache" / "review").glob("*/secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("")
    with pytest.raises(WrongUse, match="not the secret that twinset wrote; remove it"):
        open_desk(str(out))


def test_a_link_in_place_of_the_folder_of_answers_is_not_followed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / "_review").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongUse, match="nothing is written through a link"):
        open_desk(str(out))
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_plan_that_is_written_again_is_asked_and_only_what_changed(
    drawn: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[str] = []
    desk = desk_of(out, on_decided=decided.append)
    for task in desk.next("anna", PAIRS):
        assert decided == []
        desk.answer("anna", task["id"], "o0", "", 1.0)
    assert decided == ["mine-decisions"]
    changed = out.parent / "changed"
    shutil.copytree(drawn, changed, ignore=shutil.ignore_patterns("out"))
    records = json.loads((changed / "pairs.json").read_bytes())
    records[2]["caption1"] = "now another"
    (changed / "pairs.json").write_text(json.dumps(records))
    wait(changed, out)
    assert desk.next("anna", 9) == []
    monkeypatch.setattr("twinset.review.tasks.LOOK_SECONDS", 0)
    [again] = desk.next("anna", 9)
    assert again["statement"]["texts"] == ["left 2", "now another"]
    assert again["progress"]["done"] == PAIRS - 1
    recipe = out / layout.recipe("_stages/mine-decisions")
    (out / layout.meta("_stages/mine-decisions", "stage.json")).touch()
    content = recipe.read_bytes()
    recipe.write_bytes(b"{")
    assert desk.next("anna", 9) == [again], "what was asked before stays while the plan cannot be read"
    recipe.write_bytes(content)
    assert desk.next("anna", 9) == [again]


def test_an_answer_that_a_build_has_used_can_be_undone_and_is_asked_again(drawn: Path, out: Path) -> None:
    desk = desk_of(out)
    for task in desk.next("anna", PAIRS):
        desk.answer("anna", task["id"], "x0", "other", 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinset.cards.describe.describe", lambda *_: None)
        patch.setattr("twinset.cards.describe.show", lambda *_: None)
        assert twinset.build(recipe_of(drawn), str(out))["subsets"]["mine"]["kept"] == 0
    later = desk_of(out)
    [stage] = later.tasks.now().stages.values()
    assert later.is_decided(stage) and later.next("anna", 9) == []
    undone = later.undo("anna")
    assert [task["id"] for task in later.next("anna", 9)] == [undone["id"]]
    assert not later.is_decided(stage)


def run(*arguments: str) -> int:
    return main(["review", *arguments])


def test_answers_go_out_and_come_in_by_file(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [task.candidate.key for task in desk_of(out).tasks.now().tasks]
    file = tmp_path / "given.csv"
    file.write_text("\n".join(["task,answer", *(f"{key},keep" for key in keys)]))
    assert run(str(out), "--import", str(file)) == 2
    assert "name who answered with --annotator" in capsys.readouterr().err
    assert run(str(out), "--import", str(file), "--annotator", "anna") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[:2] == ["stage: mine-decisions", "new: 4"]
    assert printed.err == "mine-decisions: all decisions are in; run the same build again\n"
    assert run(str(out)) == 0
    assert "the decisions are in, run the same build again" in capsys.readouterr().out
    assert run(str(out), "--out", str(tmp_path / "all.parquet")) == 0
    assert capsys.readouterr().out == f"answers: 4\ntasks: 4\nout: {tmp_path / 'all.parquet'}\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stage", "other"], "no such stage that asks people; those that do: mine-decisions"),
        (["--annotators", "a b"], "--annotators 'a b'"),
        (["--annotators", "admin"], "--annotators 'admin'"),
        (["--annotators", ","], "name somebody"),
        (["--annotator", "anna"], "--annotator"),
        (["--host", "256.0.0.1"], "cannot be opened"),
        (["--behind-https", "http://review.example.org"], "write https:// and a host alone"),
        (["--out", "answers.txt"], "name a file that ends in .parquet"),
        (["--prolific", "a b"], "completion code"),
    ],
)
def test_wrong_options_are_refused(
    out: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run(str(out), *options) == 2
    assert words in capsys.readouterr().err


def test_an_exported_file_takes_no_answers(drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported = tmp_path / "answers.parquet"
    pq.write_table(table_of([]), exported)
    wait(drawn, tmp_path / "new", answers=str(exported))
    before = exported.read_bytes()
    assert run(str(tmp_path / "new")) == 2
    assert "no answers can be added; leave out the setting answers" in capsys.readouterr().err
    assert exported.read_bytes() == before


def test_a_dataset_that_asks_nobody_says_so(drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path / "absent")) == 2
    assert "holds no stages" in capsys.readouterr().err
    assert not (tmp_path / "absent").exists()
    recipe = recipe_of(drawn).model_dump(mode="json")
    recipe["stages"], recipe["subsets"]["mine"] = {}, recipe["stages"]["mine-candidates"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinset.cards.describe.describe", lambda *_: None)
        patch.setattr("twinset.cards.describe.show", lambda *_: None)
        twinset.build(parse_recipe(recipe), str(tmp_path / "plain"))
    assert run(str(tmp_path / "plain")) == 0
    assert "nothing waits for people; none of its stages asks any" in capsys.readouterr().out
    assert not (tmp_path / "plain" / "_review").exists()


def test_the_command_serves_a_page_until_it_is_interrupted(out: Path) -> None:
    command = [sys.executable, "-m", "twinset.cli.main", "review", str(out), "--annotators", "anna,ben"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = [*iter(process.stdout.readline, "Ctrl-C ends the page; every answer is stored.\n")]
        links = dict(re.findall(r"^(\w+): (http://127\.0\.0\.1:\d+/.*)$", "".join(lines), re.MULTILINE))
        assert list(links) == ["anna", "ben", "admin"]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        browser.open(links["anna"]).close()
        with browser.open(f"{links['anna'].partition('?')[0]}api/next") as reply:
            assert len(json.load(reply)) == PAIRS
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{links['anna'].partition('?')[0]}api/next")
        process.send_signal(2)
        assert process.wait() == 0
        assert process.stderr.read() == "stopped; every answer is stored\n"
