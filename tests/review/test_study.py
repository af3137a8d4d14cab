"""Participants who come from Prolific by one link, and images that are served for the files of other tools."""

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.review.asked import SECRET, painted_desk, survey_of
from twinset.review import access as bounds
from twinset.review.access import IMAGES, STUDY, Access, Person
from twinset.review.app import EXPORTED, make_app
from twinset.review.exchange.forms import FORMS
from twinset.review.links import Links
from twinset.review.opening import study_link

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
            assert reply.status_code == 200 and reply.headers["content-type"] == "image/png"
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
