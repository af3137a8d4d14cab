"""The page over HTTP: what the script is told, what is stored, and who is refused."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.review.asked import SECRET, all_kinds, candidate, painted_app, painted_desk, stage_of
from twinset.generators.decisions.answers import read_answers
from twinset.review.access import CHANGES, LARGEST_REQUEST, Access, Person
from twinset.review.app import make_app

ACCESS = Access(SECRET, ["anna", "ben"])


class Browser(TestClient):
    """Somebody who came by a link."""

    def __init__(self, app: Any, token: str, home: str = "/") -> None:
        super().__init__(app)
        assert self.get(home, params={"token": token}).status_code == 200

    def say(self, path: str, name: str = "anna", **body: Any) -> Any:
        headers = {"X-CSRF-Token": ACCESS.csrf(Person(name, "annotator"))}
        return self.post(path, json=body, headers=headers)


@pytest.fixture
def came(tmp_path: Path) -> Callable[[str], Browser]:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    return lambda name: Browser(app, tokens[name], "/admin" if name == "admin" else "/")


@pytest.fixture
def anna(came: Callable[[str], Browser]) -> Browser:
    return came("anna")


def stored(folder: Path, stage: str) -> list[Any]:
    return read_answers(folder / "_review" / "answers.sqlite", stage)


def test_a_task_is_told_without_its_order_or_its_key(anna: Browser) -> None:
    tasks = anna.get("/api/next", params={"after": 14}).json()
    assert len(tasks) == 15
    best = next(task for task in tasks if task["question"] == "best-image")
    assert sorted(best) == [
        "block", "examples", "extra", "id", "instructions", "options", "part", "progress", "question", "ranked",
        "reasons", "stage", "statement", "title",
    ]  # fmt: skip
    assert [one["value"] for one in best["options"]] == ["o0", "o1", "o2", "o3"]
    assert len({one["image"] for one in best["options"]}) == 4
    assert best["extra"] == [{"value": "x0", "label": "None", "key": "0"}]
    assert best["progress"] == {"done": 0, "total": 15, "per_hour": {}, "minutes": None}
    told = json.dumps([{**task, "id": "", "stage": ""} for task in tasks])
    assert "photo" not in told.replace("The photo", "").replace("a photo", "")
    assert candidate("best-image", "best-image", 0).key not in told
    by_kind = {task["stage"]: task for task in tasks}
    assert [len(by_kind["keep-pair"]["statement"][name]) for name in ("texts", "images")] == [2, 2]
    assert by_kind["keep-pair"]["reasons"]["other"] == "something else"
    assert [one["text"] is not None for one in by_kind["match-text"]["options"]] == [True, True]


def test_the_order_of_options_differs_by_task_and_annotator_and_the_shown_one_is_stored(
    tmp_path: Path, came: Callable[[str], Browser]
) -> None:
    app, tokens = painted_app(tmp_path, [stage_of("s", [candidate("s", "best-image", n) for n in range(12)], tmp_path)])
    anna = Browser(app, tokens["anna"])
    for task in anna.get("/api/next", params={"after": 11}).json():
        assert anna.say("/api/answer", id=task["id"], option="o2", seconds=1.5).json()["saved"]
    answers = stored(tmp_path, "s")
    assert len({one.shown for one in answers}) > 4
    assert all(one.answer == one.shown[2] and one.position == 2 and one.seconds == 1.5 for one in answers)
    assert {one.annotator for one in answers} == {"anna"}


def test_a_repeated_post_is_one_answer_and_another_one_is_refused(tmp_path: Path, anna: Browser) -> None:
    task = anna.get("/api/next").json()[0]
    given = {"id": task["id"], "option": "x0" if task["extra"] else "o0", "seconds": 2.0}
    first, second = (anna.say("/api/answer", **given) for _ in range(2))
    progress = {"done": 1, "total": 15, "per_hour": {task["question"]: 1800}, "minutes": 0.5}
    assert first.json() == second.json() == {"saved": True, "progress": progress}
    assert len(stored(tmp_path, task["stage"])) == 1
    other = anna.say("/api/answer", id=task["id"], option="o1")
    assert (other.status_code, "undo" in other.json()["detail"]) == (409, True)


def test_undo_gives_the_task_again_also_after_a_reload(came: Callable[[str], Browser]) -> None:
    anna = came("anna")
    task = anna.get("/api/next").json()[0]
    anna.say("/api/answer", id=task["id"], option="o0")
    assert anna.get("/api/next").json()[0]["id"] != task["id"]
    again = came("anna")  # a new browser
    undone = again.say("/api/undo").json()
    assert undone["id"] == task["id"]
    assert undone["task"] == task
    assert anna.get("/api/next").json()[0]["id"] == task["id"]
    assert anna.say("/api/undo").json() == {"id": None, "task": None}


def test_two_annotators_never_see_each_others_answers_or_tasks(came: Callable[[str], Browser]) -> None:
    anna, ben = came("anna"), came("ben")
    hers = anna.get("/api/next", params={"after": 6}).json()
    his = ben.get("/api/next", params={"after": 6}).json()
    assert not {one["id"] for one in hers} & {one["id"] for one in his}
    anna.say("/api/answer", id=hers[0]["id"], option="o0")
    assert ben.say("/api/undo", "ben").json()["id"] is None
    assert ben.get("/api/next").json()[0]["progress"]["total"] == 14


def test_at_the_end_it_is_said_what_is_left_and_who_has_it(came: Callable[[str], Browser]) -> None:
    anna, ben = came("anna"), came("ben")
    [hers, *_] = anna.get("/api/next", params={"after": 1}).json()
    for task in ben.get("/api/next", params={"after": 14}).json():
        ben.say("/api/answer", "ben", id=task["id"], option="o0", seconds=1)
    assert ben.get("/api/next").json() == []
    rest = ben.get("/api/rest").json()
    assert (rest["progress"]["done"], rest["progress"]["total"]) == (13, 15)
    assert rest["held"] == [{"annotator": "anna", "tasks": 2, "minutes": 10}]
    anna.say("/api/answer", id=hers["id"], option="o0")
    assert ben.get("/api/rest").json()["held"] == [{"annotator": "anna", "tasks": 1, "minutes": 10}]


def test_the_pace_of_one_question_says_nothing_of_another(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path, 4))
    anna = Browser(app, tokens["anna"])
    seconds = {"best-image": 20.0, "fits-caption": 5.0}
    for task in anna.get("/api/next", params={"after": 19}).json():
        if (took := seconds.get(task["question"])) and not task["id"].endswith("0"):
            reply = anna.say("/api/answer", id=task["id"], option="o0", seconds=took)
    progress = reply.json()["progress"]
    assert progress["per_hour"] == {"best-image": 180, "fits-caption": 720}
    left = 20 - progress["done"]
    assert left >= 12 and progress["minutes"] == pytest.approx(60 * left / 450, abs=2)


def test_what_fails_on_the_server_names_none_of_its_files(
    tmp_path: Path, anna: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    task = anna.get("/api/next").json()[0]
    answers = tmp_path / "_review" / "answers.sqlite"
    answers.rename(answers.with_name("elsewhere"))
    reply = anna.say("/api/answer", id=task["id"], option="o0")
    assert (reply.status_code, str(tmp_path) in reply.text) == (500, False)
    assert f"POST /api/answer: {answers}: was moved" in caplog.text


def test_an_image_is_kept_by_the_browser_and_by_nobody_else(anna: Browser) -> None:
    task = anna.get("/api/next").json()[0]
    image = anna.get(task["options"][0]["image"])
    assert image.content.startswith(b"\xff\xd8")
    assert image.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert image.headers["content-type"] == "image/jpeg"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"option": "o9"}, "no option"),
        ({"option": "0"}, "no option"),
        ({"option": "o0", "reason": "other"}, "not a reason"),
        ({"option": "o0", "seconds": -1}, "seconds"),
        ({"option": "o0", "who": "ben"}, "who"),
        ({}, "option"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(tmp_path: Path, anna: Browser, body: Any, words: str) -> None:
    task = anna.get("/api/next").json()[0]
    reply = anna.say("/api/answer", id=task["id"], **body)
    assert (reply.status_code, words in reply.json()["detail"]) == (422, True)
    assert stored(tmp_path, task["stage"]) == []


def test_nothing_is_reached_without_a_link(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    nobody = TestClient(app)
    for path in ("/", "/help", "/api/next", "/image/0", "/admin", "/admin/export/parquet", "/nothing"):
        assert nobody.get(path).status_code == 401, path
    assert nobody.post("/api/answer", json={}).status_code == 401
    anna = tokens["anna"]
    forged = anna[:-9] + ("x" if anna[-9] != "x" else "y") + anna[-8:]  # the last letters hold bits that no byte has
    assert nobody.get("/", params={"token": forged}).status_code == 401
    assert nobody.get("/", params={"token": tokens["admin"]}).status_code == 403
    assert nobody.get("/admin", params={"token": tokens["anna"]}).status_code == 403
    left = Access(SECRET, ["cleo"]).token(Person("cleo", "annotator"))
    assert nobody.get("/", params={"token": left}).status_code == 403


def test_a_link_becomes_a_cookie_that_no_script_and_no_other_site_can_use(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    reply = TestClient(app).get("/", params={"token": tokens["anna"]})
    cookie = reply.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert tokens["anna"] not in reply.text
    assert "Secure" not in cookie
    said = {"X-Forwarded-Proto": "https"}  # by anybody
    assert (
        "Secure" not in TestClient(app).get("/", params={"token": tokens["anna"]}, headers=said).headers["set-cookie"]
    )
    proxied = make_app(painted_desk(tmp_path, []), Access(SECRET, ["anna"], behind_https=True), "demo")
    assert "Secure" in TestClient(proxied).get("/", params={"token": tokens["anna"]}).headers["set-cookie"]
    assert Access(bytes(32), []).cookie(Person("anna", "annotator")) not in cookie, (
        "two datasets on one host need two cookies"
    )


def test_a_change_needs_the_pages_own_header(tmp_path: Path, anna: Browser) -> None:
    task = anna.get("/api/next").json()[0]
    body = {"id": task["id"], "option": "o0"}
    assert anna.post("/api/answer", json=body).status_code == 403
    assert anna.post("/api/answer", json=body, headers={"X-CSRF-Token": b"\xe9"}).status_code == 403
    assert anna.say("/api/answer", "ben", **body).status_code == 403
    assert stored(tmp_path, task["stage"]) == []


def test_large_and_fast_requests_are_refused(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path), clock=lambda: 0.0)  # a busy machine is not fast
    anna = Browser(app, tokens["anna"])
    assert anna.say("/api/answer", id="x" * LARGEST_REQUEST, option="o0").status_code == 413
    chunks = iter([b"{", b" " * LARGEST_REQUEST])
    assert anna.post("/api/answer", content=chunks).status_code == 413
    codes = [anna.say("/api/undo").status_code for _ in range(CHANGES[1] + 20)]
    assert set(codes) == {200, 429}
    slow = next(reply for _ in range(99) if (reply := anna.say("/api/undo")).status_code == 429)
    assert int(slow.headers["retry-after"]) >= 1


def test_every_reply_forbids_what_the_page_does_not_need(anna: Browser) -> None:
    for path in ("/", "/help", "/api/next", "/static/review.css", "/nothing"):
        headers = anna.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert {part for rule in policy.split("; ") for part in rule.split()[1:]} == {"'self'", "'none'"}
        assert headers["x-content-type-options"] == "nosniff", path
    assert "http" not in anna.get("/").text.replace("<!doctype html>", "")


def test_only_what_changes_nothing_is_got(anna: Browser) -> None:
    assert anna.get("/api/undo").status_code == 405
    assert anna.get("/api/answer").status_code == 405


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A real server: a test client tidies paths before it sends them."""
    import uvicorn

    app, _ = painted_app(tmp_path, all_kinds(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as opened:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        yield opened.getsockname()[1]
        server.should_exit = True
        thread.join()


def test_no_path_leaves_the_page(port: int) -> None:
    cookie = {"Cookie": f"{ACCESS.cookie(Person('anna', 'annotator'))}={ACCESS.token(Person('anna', 'annotator'))}"}
    for path in (
        "/../../etc/passwd", "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
        "/static/..%5capp.py", "/image/../../secret", "/image/..%2f..%2fsecret", "/_review/secret",
    ):  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers=cookie)
        reply = connection.getresponse()
        assert (path, reply.status) == (path, 404)
        assert b"import" not in reply.read()
        connection.close()
