"""The review of a real build: pairs that wait to be screened, answered over HTTP and by file, then built on."""

import hashlib
import json
import re
import shutil
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import twinset
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import table_of
from twinset.review.links import read_secret
from twinset.review.opening import open_desk, open_links
from twinset.review.tasks import LOOK_SECONDS

PAIRS = 4
CHECKOUT = Path(__file__).resolve().parents[2]


def recipe_of(folder: Path, **screening: Any) -> Recipe:
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    return parse_recipe({"name": "mine", "subsets": {"mine": {"source": source, "screening": screening or True}}})


def waiting(folder: Path, out: Path, **screening: Any) -> None:
    """Build until people are waited for."""
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe_of(folder, **screening), str(out))


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of images, and below ``out`` the build that waits."""
    folder, noise = tmp_path_factory.mktemp("screening"), np.random.default_rng(0)
    for name in (f"{n}-{side}.png" for n in range(PAIRS) for side in (0, 1)):
        Image.fromarray(noise.integers(0, 256, (16, 24, 3), np.uint8)).save(folder / name)
    records = [
        {
            "id": f"p{n}",
            "image0": f"{n}-0.png",
            "image1": f"{n}-1.png",
            "caption0": f"left {n}",
            "caption1": f"right {n}",
        }
        for n in range(PAIRS)
    ]
    (folder / "pairs.json").write_text(json.dumps(records))
    waiting(folder, folder / "out")
    return folder


@pytest.fixture
def out(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn / "out", tmp_path / "out")
    return tmp_path / "out"


def test_a_waiting_stage_is_asked_with_its_images(out: Path) -> None:
    desk = open_desk(str(out))
    assert desk is not None
    told = desk.next("anna", 9)
    assert (len(told), told[0]["stage"], told[0]["question"]) == (PAIRS, "mine-decisions", "keep-pair")
    loaded = desk.tasks.now()
    for url in told[0]["statement"]["images"]:
        task, number = loaded.images[url.rpartition("/")[2]]
        image = desk.tasks.picture(task, number)
        assert hashlib.sha256(image.content).hexdigest() == task.candidate.image_sha256s[number]
        assert image.media_type == "image/jpeg"


def test_the_secret_is_the_readers_own_whatever_lies_in_the_folder(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    (out / "_review").mkdir()
    (out / "_review" / "secret").write_text("ab" * 32)
    (out / "_review" / "links.json").write_text('{"mallory": 0}')
    desk = open_desk(str(out))
    assert desk is not None and desk.tasks.secret != b"\xab" * 32 and open_links(str(out)).names() == ()
    [secret] = (tmp_path / "cache" / "review").glob("*/secret")
    (tmp_path / "link").symlink_to(out)
    again = open_desk(str(tmp_path / "link"))
    assert again is not None and again.tasks.secret == desk.tasks.secret
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    secret.chmod(0o644)
    with pytest.raises(WrongUse, match="others can read it"):
        read_secret(secret.parent)


def test_a_link_in_place_of_the_folder_of_answers_is_not_followed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (out / "_review").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongUse, match="nothing is written through a link"):
        open_desk(str(out))
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_plan_that_is_written_again_is_asked_at_once_and_only_what_changed(drawn: Path, out: Path) -> None:
    heard: list[str] = []
    desk = open_desk(str(out), on_enough=heard.append)
    assert desk is not None
    clock = [time.monotonic()]
    desk.tasks._clock = lambda: clock[0]
    for task in desk.next("anna", PAIRS):
        assert heard == []
        desk.answer("anna", task["id"], "o0", "", 1.0)
        desk.announce()
    assert heard == ["mine-decisions"]
    desk.announce()
    assert heard == ["mine-decisions"]
    changed = out.parent / "changed"
    shutil.copytree(drawn, changed, ignore=shutil.ignore_patterns("out"))
    records = json.loads((changed / "pairs.json").read_bytes())
    records[2]["caption1"] = "now another"
    (changed / "pairs.json").write_text(json.dumps(records))
    waiting(changed, out)
    assert desk.next("anna", 9) == []
    clock[0] += LOOK_SECONDS
    [again] = desk.next("anna", 9)
    assert again["statement"]["texts"] == ["left 2", "now another"]
    assert again["progress"]["done"] == PAIRS - 1


def test_an_answer_that_a_build_has_used_can_be_undone_and_is_asked_again(drawn: Path, out: Path) -> None:
    desk = open_desk(str(out))
    assert desk is not None
    for task in desk.next("anna", PAIRS):
        desk.answer("anna", task["id"], "x0", "other", 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinset.cards.describe.describe", lambda *_: None)
        patch.setattr("twinset.cards.describe.show", lambda *_: None)
        assert twinset.build(recipe_of(drawn), str(out))["subsets"]["mine"]["kept"] == 0
    later = open_desk(str(out))
    assert later is not None
    [stage] = later.tasks.now().stages.values()
    assert later.has_enough(stage)
    assert later.next("anna", 9) == []
    undone = later.undo("anna")
    assert [one["id"] for one in later.next("anna", 9)] == [undone["id"]]
    assert not later.has_enough(stage)


def run(*arguments: str) -> int:
    return main(["review", *arguments])


def test_answers_go_out_and_come_in_by_file(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    desk = open_desk(str(out))
    assert desk is not None
    keys = [task.candidate.key for task in desk.tasks.now().tasks]
    desk.store.close()
    (tmp_path / "given.csv").write_text("\n".join(["task_id,answer,reason", *(f"{key},keep," for key in keys)]))
    assert run(str(out), "--import", str(tmp_path / "given.csv")) == 2
    assert "give one with --annotator" in capsys.readouterr().err
    assert run(str(out), "--import", str(tmp_path / "given.csv"), "--annotator", "anna") == 0
    told = capsys.readouterr()
    assert told.out == "4 answers imported into mine-decisions\n"
    assert told.err == "mine-decisions: enough decisions are in; run the same build again\n"
    assert run(str(out)) == 0
    told = capsys.readouterr()
    assert "nothing waits for people: the decisions are in" in told.out
    assert "enough decisions are in" in told.err, "nobody may have been told before"
    assert run(str(out), "--out", str(tmp_path / "all.parquet")) == 0
    assert capsys.readouterr().out == f"4 answers to 4 tasks in {tmp_path / 'all.parquet'}\n"
    assert run(str(out), "--agreement") == 0
    assert "no task has answers of two annotators" in capsys.readouterr().out
    assert run(str(out), "--import", str(tmp_path / "given.csv"), "--annotator", "ben") == 0
    capsys.readouterr()
    assert run(str(out), "--agreement") == 0
    kappa, mean = capsys.readouterr().out.splitlines()[1:]
    assert " ".join(kappa.split()) == "mine-decisions anna and ben 4 - both said the same of all"
    assert mean.split() == ["mine-decisions", "mean", "-"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--stage", "other"], "no such stage that asks people; those that do: mine-decisions"),
        (["--annotators", "a b"], "--annotators 'a b'"),
        (["--annotators", "admin"], "--annotators 'admin'"),
        (["--annotators", ","], "name somebody"),
        (["--form", "parquet"], "--form"),
        (["--annotator", "anna"], "--annotator"),
        (["--host", "256.0.0.1"], "cannot be opened"),
        (["--behind-https", "http://review.example.org"], "write https:// and a host alone"),
        (["--withdraw", "anna"], "'anna': has no link to this page; nobody has"),
        (["--out", "answers.txt"], "name it with --form"),
    ],
)
def test_wrong_use_is_told(out: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert run(str(out), *options) == 2
    assert words in capsys.readouterr().err


def test_an_exported_file_takes_no_answers(drawn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported = tmp_path / "answers.parquet"
    pq.write_table(table_of([]), exported)
    waiting(drawn, tmp_path / "new", answers=str(exported))
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


@pytest.fixture
def server(out: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    """``twinset review`` as a process: its links by name."""
    command = [sys.executable, "-m", "twinset.cli.main", "review", str(out), "--annotators", "anna,ben"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        links = {}
        for line in process.stdout:
            if found := re.fullmatch(r"(\w+): (http://127\.0\.0\.1:\d+/.*)\n", line):
                links[found[1]] = found[2]
            if line.startswith("Ctrl-C"):
                break
        yield links, process
        process.kill()


def test_the_command_serves_a_page_until_it_is_interrupted(
    out: Path, server: tuple[dict[str, str], subprocess.Popen[str]]
) -> None:
    links, process = server
    assert list(links) == ["anna", "ben", "admin"]
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(links["anna"]) as reply:
        assert reply.status == 200
    base = links["anna"].partition("?")[0]
    with browser.open(f"{base}api/next") as reply:
        assert len(json.load(reply)) == PAIRS
    assert run(str(out), "--withdraw", "anna") == 0
    with pytest.raises(urllib.error.HTTPError, match="403"):
        browser.open(f"{base}api/next")
    process.send_signal(2)
    assert process.wait() == 0
    assert process.stderr is not None
    assert process.stderr.read() == "stopped; every answer is stored\n"
