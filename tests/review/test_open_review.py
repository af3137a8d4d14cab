"""The review of a real build: pairs that wait to be screened, answered over HTTP and by file, then built on.

Participants who come from Prolific by one link, and images that are served for the files of other tools.
"""

import csv
import hashlib
import io
import json
import re
import shutil
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import twinset
from tests.review.asked import SECRET, painted_desk, survey_of
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import table_of
from twinset.review import access as bounds
from twinset.review.access import IMAGES, STUDY, Access, Person
from twinset.review.app import EXPORTED, make_app
from twinset.review.exchange.forms import FORMS
from twinset.review.links import Links, read_secret
from twinset.review.opening import open_desk, open_links, study_link
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
        stored = loaded.stages[task.stage].generator.picture(task.candidate, number)
        assert hashlib.sha256(stored).hexdigest() == task.candidate.image_sha256s[number]
        shown = desk.tasks.picture(task, number)
        seen, made = (np.asarray(Image.open(io.BytesIO(one))).astype(int) for one in (shown, stored))
        assert shown.startswith(b"\xff\xd8") and np.abs(seen - made).mean() < 3


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
    desk = open_desk(str(out), on_decided=heard.append)
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
    assert later.is_decided(stage)
    assert later.next("anna", 9) == []
    undone = later.undo("anna")
    assert [one["id"] for one in later.next("anna", 9)] == [undone["id"]]
    assert not later.is_decided(stage)


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
    assert told.out.splitlines()[:2] == ["stage: mine-decisions", "new: 4"]
    assert told.err == "mine-decisions: all decisions are in; run the same build again\n"
    assert run(str(out)) == 0
    told = capsys.readouterr()
    assert "nothing waits for people: the decisions are in" in told.out
    assert "all decisions are in" in told.err, "nobody may have been told before"
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
        (["--withdraw", "anna"], "'anna': has no link to this page; nobody has"),
        (["--out", "answers.txt"], "name a file that ends in .parquet"),
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


PID, OTHER = "5f3c0123456789abcdef0123", "5f3c0123456789abcdef0124"


@pytest.fixture
def links(tmp_path: Path) -> Links:
    return Links(tmp_path)


def served(tmp_path: Path, links: Links, study: str | None = "C0DE") -> tuple[Any, Access]:
    access = Access(SECRET, ["anna"], links=links, study=study)
    return make_app(painted_desk(tmp_path, [survey_of(tmp_path, 25)]), access, "demo"), access


def came(app: Any, access: Access, pid: str) -> TestClient:
    client = TestClient(app)
    address = study_link(access, "").replace("{{%PROLIFIC_PID%}}", pid)
    assert client.get(address).status_code == 200
    return client


def answer_all(client: TestClient, access: Access, pid: str) -> int:
    headers = {"X-CSRF-Token": access.csrf(Person(pid, "annotator"))}
    for count in range(1000):
        tasks = client.get("/api/next", params={"after": 0}).json()
        if not tasks:
            return count
        body = {"id": tasks[0]["id"], "option": "o0", "seconds": 1.0}
        while (reply := client.post("/api/answer", json=body, headers=headers)).status_code == 429:
            time.sleep(0.1)
        assert reply.status_code == 200
    raise AssertionError("the survey never ends")


def test_a_participant_is_named_by_the_address_and_gets_the_code_at_the_end(tmp_path: Path, links: Links) -> None:
    app, access = served(tmp_path, links)
    assert study_link(access, "https://h").endswith(
        "&PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    client = came(app, access, PID)
    assert f'content="{PID}"' in client.get("/").text
    assert client.get("/api/rest").json()["code"] is None
    assert answer_all(client, access, PID) == 100
    assert client.get("/api/rest").json()["code"] == "C0DE"
    # Nothing is left for whoever comes next, and no code for no work; nor for an annotator with a link of their own.
    rest = came(app, access, OTHER).get("/api/rest").json()
    assert (rest["code"], rest["held"]) == (None, [])
    anna = TestClient(app)
    anna.get("/", params={"token": access.token(Person("anna", "annotator"))})
    assert "code" not in anna.get("/api/rest").json()


@pytest.mark.parametrize("pid", ["", "anna", "admin", "{{%PROLIFIC_PID%}}", PID.upper(), PID + "0", f"{PID}\n", "../x"])
def test_what_is_not_an_id_of_prolific_is_refused(tmp_path: Path, links: Links, pid: str) -> None:
    app, access = served(tmp_path, links)
    reply = TestClient(app).get("/", params={"token": access.study_token(), "PROLIFIC_PID": pid})
    assert reply.status_code == 403 and "set-cookie" not in reply.headers


def test_a_link_of_a_study_opens_nothing_by_itself(tmp_path: Path, links: Links) -> None:
    app, access = served(tmp_path, links)
    token = access.study_token()
    for path, more in (("/", {}), ("/admin", {}), ("/admin", {"PROLIFIC_PID": PID})):
        assert TestClient(app).get(path, params={"token": token, **more}).status_code == 403
    assert TestClient(app).get("/", params={"token": token + "x", "PROLIFIC_PID": PID}).status_code == 401
    # A person's own link is not a study's, and without a study there are no participants.
    own = access.token(Person("anna", "annotator"))
    assert TestClient(app).get("/", params={"token": own, "PROLIFIC_PID": PID}).status_code == 403
    closed, _ = served(tmp_path, links, study=None)
    assert TestClient(closed).get("/", params={"token": token, "PROLIFIC_PID": PID}).status_code == 403
    left = access.token(Person(PID, "annotator"))
    assert TestClient(closed).get("/", params={"token": left}).status_code == 403


def test_participants_and_the_study_are_withdrawn_by_name(tmp_path: Path, links: Links) -> None:
    app, access = served(tmp_path, links)
    one, address = came(app, access, PID), study_link(access, "").replace("{{%PROLIFIC_PID%}}", OTHER)
    links.withdraw(STUDY)
    assert TestClient(app).get(address).status_code == 403
    assert one.get("/api/next").status_code == 200
    links.withdraw(PID)
    assert one.get("/api/next").status_code == 403
    again = study_link(access, "").replace("{{%PROLIFIC_PID%}}", PID)  # a new link of the study, too
    assert TestClient(app).get(again).status_code == 403


def test_a_study_lets_nobody_in_as_an_annotator(tmp_path: Path, links: Links) -> None:
    access = Access(SECRET, [PID], links=links, study="C0DE")
    app = make_app(painted_desk(tmp_path, [survey_of(tmp_path, 1)]), access, "demo")
    assert TestClient(app).get(study_link(access, "").replace("{{%PROLIFIC_PID%}}", PID)).status_code == 403


def test_a_study_has_room_for_so_many(tmp_path: Path, links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_PARTICIPANTS", 1)
    app, access = served(tmp_path, links)
    came(app, access, PID)
    came(app, access, PID)
    reply = TestClient(app).get("/", params={"token": access.study_token(), "PROLIFIC_PID": OTHER})
    assert (reply.status_code, "all its participants" in reply.text) == (403, True)


def exported(tmp_path: Path, access: Access, form: str) -> Path:
    desk = painted_desk(tmp_path, [survey_of(tmp_path, 2)])
    answered = [(task, desk.answers_to(task)) for task in desk.tasks.now().tasks if len(task.candidate.images) == 2]
    path = tmp_path / f"tasks{FORMS[form].suffix}"
    FORMS[form].write(
        path,
        answered,
        desk.tasks.picture,
        lambda task, n: f"http://h{EXPORTED}{access.image_token(desk.tasks.image_id(task, n))}",
    )
    return path


def test_images_of_exported_files_are_served_without_a_login(tmp_path: Path, links: Links) -> None:
    app, access = served(tmp_path, links)
    nobody = TestClient(app, base_url="http://h")
    with exported(tmp_path, access, "prolific").open(encoding="utf-8", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    assert len(rows) == 4
    seen = set()
    for row in rows:
        for name in ("image0", "image1"):
            reply = nobody.get(row[name])
            assert reply.status_code == 200 and reply.headers["content-type"] == "image/jpeg"
            assert reply.headers["cross-origin-resource-policy"] == "cross-origin"
            seen.add(reply.content)
    assert len(seen) == 8
    tasks = json.loads(exported(tmp_path, access, "label-studio").read_text())
    assert not [*tmp_path.glob("*_images")]
    for task in tasks:
        for name in ("option1", "option2"):
            assert nobody.get(task["data"][name]).content in seen
    # The rest of the page stays as closed as it was, and the token is of this image alone.
    address = rows[0]["image0"]
    assert nobody.get("/image/" + address.rpartition("/")[2]).status_code == 401
    assert nobody.get(address[:-9] + "abcdefghi").status_code == 401
    assert nobody.get(f"{EXPORTED}{access.study_token()}").status_code == 403
    assert nobody.get("/", params={"token": address.rpartition("/")[2]}).status_code == 403
    assert nobody.post(address).status_code in (401, 405)
    assert nobody.get(f"{EXPORTED}{access.image_token('0' * 32)}").status_code == 404
    links.withdraw(IMAGES)
    assert nobody.get(address).status_code == 403
