"""The page over HTTP: what the script is told, what is stored, who is refused, and what the admin sees.

Who is asked what, in which order: work for everyone, nothing twice without need, instances whole.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from tests.review.asked import SECRET, Painted, all_kinds, candidate, painted_app, painted_desk, stage_of, survey_of
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.access import Access, Person, Refused
from twinset.review.app import HEADERS, make_app
from twinset.review.desk import LEASE_SECONDS, SURVEY_SECONDS
from twinset.review.showing import shown_options
from twinset.review.store import AnswerStore
from twinset.review.tasks import ReviewStage, ReviewTask

ACCESS = Access(SECRET, ["anna", "ben"])
ANNA = Person("anna", "annotator")
PID, OTHER = "5f3c0123456789abcdef0123", "5f3c0123456789abcdef0124"


class Browser(TestClient):
    """Somebody who came by a link, on anna's page."""

    def __init__(self, app: Any, token: str, home: str = "/") -> None:
        super().__init__(app, headers={"X-CSRF-Token": ACCESS.csrf(ANNA)})
        assert self.get(home, params={"token": token}).status_code == 200

    def say(self, path: str, **body: Any) -> Any:
        return self.post(path, json=body)


@pytest.fixture
def anna(tmp_path: Path) -> Browser:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    return Browser(app, tokens["anna"])


def stored(folder: Path, stage: str) -> list[Answer]:
    return read_answers(folder / "_review" / "answers.sqlite", stage)


def test_a_task_is_told_without_its_order_or_its_key(anna: Browser) -> None:
    tasks = anna.get("/api/next", params={"after": 14}).json()
    assert len(tasks) == 15
    best = next(task for task in tasks if task["question"] == "best-image")
    assert [option["value"] for option in best["options"]] == ["o0", "o1", "o2", "o3"]
    assert len({option["image"] for option in best["options"]}) == 4
    assert best["extra"] == [{"value": "x0", "label": "None", "key": "0"}]
    assert best["progress"] == {"done": 0, "total": 15, "per_hour": None, "minutes": None}
    content = json.dumps([{**task, "id": "", "stage": ""} for task in tasks])
    assert "photo" not in content.replace("The photo", "").replace("a photo", "")
    assert candidate("best-image", "best-image", 0).key not in content


def test_the_order_of_options_differs_by_task_and_annotator_and_the_shown_one_is_stored(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, [stage_of("s", [candidate("s", "best-image", n) for n in range(12)], tmp_path)])
    anna = Browser(app, tokens["anna"])
    for task in anna.get("/api/next", params={"after": 11}).json():
        assert anna.say("/api/answer", id=task["id"], option="o2", seconds=1.5).json()["saved"]
    answers = stored(tmp_path, "s")
    assert len({answer.shown for answer in answers}) > 4
    assert all((a.answer, a.position, a.seconds, a.annotator) == (a.shown[2], 2, 1.5, "anna") for a in answers)


def test_what_fails_on_the_server_names_none_of_its_files(
    tmp_path: Path, anna: Browser, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = anna.get("/api/next").json()[0]
    monkeypatch.setattr(Painted, "picture", lambda self, task, number: b"\xff\xd8 cut off")
    assert anna.get(task["options"][0]["image"]).status_code == 500
    assert "best-image: an image of best-image-" in caplog.text and "cannot be shown" in caplog.text
    answers = tmp_path / "_review" / "answers.sqlite"
    answers.rename(answers.with_name("elsewhere"))
    reply = anna.say("/api/answer", id=task["id"], option="o0")
    assert (reply.status_code, str(tmp_path) in reply.text) == (500, False)
    assert f"POST /api/answer: {answers}: was moved" in caplog.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"option": "o9"}, "no option"),
        ({"option": "o0", "reason": "other"}, "not a reason"),
        ({"option": "o0", "who": "ben"}, "who"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(tmp_path: Path, anna: Browser, body: Any, words: str) -> None:
    task = anna.get("/api/next").json()[0]
    reply = anna.say("/api/answer", id=task["id"], **body)
    assert (reply.status_code, words in reply.json()["detail"]) == (422, True)
    assert stored(tmp_path, task["stage"]) == []


def test_an_order_of_images_is_an_answer(tmp_path: Path) -> None:
    pytest.importorskip("twinset_extras", reason="which asks so")
    asked = [candidate("s", "best-image", 0, question="rank-images")]
    desk = painted_desk(tmp_path, [stage_of("s", asked, tmp_path)])
    (task,) = desk.next("anna", 1)
    with pytest.raises(Refused, match="no option"):
        desk.answer("anna", task["id"], "o2 o2", "", 2.0)
    desk.answer("anna", task["id"], "o2 o0", "", 2.0)
    [answer] = stored(tmp_path, "s")
    assert (answer.answer, answer.position) == (f"{answer.shown[2]} {answer.shown[0]}", 2)


def test_four_people_at_once_answer_every_task_as_often_as_it_needs(tmp_path: Path) -> None:
    stage = stage_of("s", [candidate("s", "keep-pair", n) for n in range(48)], tmp_path, overlap=0.25)
    decided: list[str] = []
    desk = painted_desk(tmp_path, [stage], on_decided=decided.append)

    def work(name: str) -> None:
        while tasks := desk.next(name, 3):
            for task in tasks:
                desk.answer(name, task["id"], "o0", "", 1.0)

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, ("anna", "ben", "cleo", "dora"))] == [None] * 4
    assert [len(given) for given in desk.answers_to(stage)] == [task.needed for task in stage.tasks]
    assert {*decided} == {"s"}


def test_nothing_is_reached_without_a_link(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    nobody = TestClient(app)
    for path in ("/", "/api/next", "/image/0", "/admin", "/admin/answers.csv", "/nothing"):
        assert nobody.get(path).status_code == 401, path
    assert nobody.post("/api/answer", json={}).status_code == 401
    forged = tokens["anna"][:-9] + ("x" if tokens["anna"][-9] != "x" else "y") + tokens["anna"][-8:]
    left = Access(SECRET, ["cleo"]).token(Person("cleo", "annotator"))
    for path, token in (("/", tokens["admin"]), ("/admin", tokens["anna"]), ("/", left)):
        assert nobody.get(path, params={"token": token}).status_code == 403
    assert nobody.get("/", params={"token": forged}).status_code == 401
    nobody.cookies.set(ACCESS.cookie("admin"), tokens["anna"])
    assert nobody.get("/admin").status_code == 403


def test_a_link_becomes_a_cookie_that_no_script_and_no_other_site_can_use(tmp_path: Path) -> None:
    app, tokens = painted_app(tmp_path, [])
    reply = TestClient(app).get("/", params={"token": tokens["anna"]}, headers={"X-Forwarded-Proto": "https"})
    cookie = reply.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/")) and "Secure" not in cookie
    assert tokens["anna"] not in reply.text
    proxied, _ = painted_app(tmp_path, [], behind_https=True)
    assert "Secure" in TestClient(proxied).get("/", params={"token": tokens["anna"]}).headers["set-cookie"]
    assert Access(bytes(32), []).cookie("annotator") not in cookie, "two datasets on one host need two cookies"


def test_a_link_ends_and_its_cookie_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = painted_app(tmp_path, all_kinds(tmp_path), days=30)
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    token = ACCESS.token(ANNA)
    now += 30 * 86_400
    reply = TestClient(app).get("/", params={"token": token})
    cookie = {"Cookie": reply.headers["set-cookie"].split(";")[0], "X-CSRF-Token": ACCESS.csrf(ANNA)}
    assert TestClient(app).get("/api/next", headers=cookie).status_code == 200
    now += 1
    assert TestClient(app).get("/api/next", headers=cookie).status_code == 403, "the cookie does not outlive the link"
    assert "come to its end" in TestClient(app).get("/", params={"token": token}).text


def test_tasks_and_answers_need_the_header_of_the_persons_own_page(tmp_path: Path, anna: Browser) -> None:
    task = anna.get("/api/next").json()[0]
    body = {"id": task["id"], "option": "o0"}
    ben = ACCESS.csrf(Person("ben", "annotator"))  # whose page is open in this browser, too: his options' order differs
    for sent in ("", b"\xe9", ben):
        headers: Any = {"X-CSRF-Token": sent}
        assert anna.post("/api/answer", json=body, headers=headers).status_code == 403
        assert [anna.get(path, headers=headers).status_code for path in ("/api/next", "/api/rest")] == [403, 403]
    assert stored(tmp_path, task["stage"]) == []
    assert [anna.get(path).status_code for path in ("/api/undo", "/api/answer")] == [405, 405]


def test_every_reply_forbids_what_the_page_does_not_need(anna: Browser) -> None:
    for path in ("/", "/api/next", "/static/review.css", "/nothing", "/api/next?after=x", "/admin"):
        headers = anna.get(path, headers={"Host": "evil.example"}).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS and "evil" not in str(headers)
    assert "http" not in anna.get("/").text.replace("<!doctype html>", "")
    image = anna.get(anna.get("/api/next").json()[0]["options"][0]["image"])
    assert image.content.startswith(b"\xff\xd8") and image.headers["content-type"] == "image/jpeg"
    assert image.headers["cache-control"] == "private, max-age=31536000, immutable"


def test_progress_pace_agreement_and_ties_are_shown_to_the_admin(tmp_path: Path) -> None:
    """Two annotators answered 10 tasks each and disagree on the last two."""
    stage = stage_of("s", [candidate("s", "keep-pair", n) for n in range(10)], tmp_path, overlap=1.0)
    app, tokens = painted_app(tmp_path, [stage], ["anna", "cleo"])
    store = AnswerStore(stage.answers)
    for name, last in (("anna", "keep"), ("ben", "drop")):
        for number, task in enumerate(stage.tasks):
            value = last if number > 7 else "keep" if number % 2 else "drop"
            about = {"stage": "s", "task": task.candidate.key, "binding": task.binding, "annotator": name}
            store.save(Answer(**about, answer=value, seconds=4.0, at="2020-01-01"))
    admin = Browser(app, tokens["admin"], "/admin")
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', admin.get("/admin").text, re.DOTALL)
    assert {name: re.findall(r"<td>(.*?)</td>", cells) for name, cells in rows} == {
        "s": ["10", "8", "2"],
        "anna": ["10", "0", "900"],
        "cleo": ["0", "2", ""],  # ties are asked of one more annotator
        "ben (no link now)": ["10", "", "900"],
        "anna and ben": ["10", "0.615"],
    }
    table = pq.read_table(io.BytesIO(admin.get("/admin/answers.parquet").content))
    assert (len(table), set(table["annotator"].to_pylist())) == (20, {"anna", "ben"})
    assert admin.get("/admin/answers.csv").text.startswith("stage,task,binding,annotator,")


@pytest.mark.parametrize("pid", ["", "anna", OTHER, PID.upper(), PID + "0", f"{PID}\n", "../x", None])
def test_a_link_of_a_study_opens_nothing_without_a_participant(tmp_path: Path, pid: str | None) -> None:
    desk, access = painted_desk(tmp_path, []), Access(SECRET, ["anna", OTHER], study="C0DE")
    app = make_app(desk, access, "demo")
    token, own = access.study_link("").split("token=")[1].split("&")[0], access.token(ANNA)
    named = {} if pid is None else {"PROLIFIC_PID": pid}
    reply = TestClient(app).get("/", params={"token": token, **named})
    assert reply.status_code == 403 and "set-cookie" not in reply.headers
    closed = make_app(desk, Access(SECRET, ["anna"]), "demo")
    participant = access.token(Person(PID, "annotator"))
    wrong = [(app, "/admin", token), (app, "/", own), (closed, "/", token), (closed, "/", participant)]
    for page, path, opening in wrong:
        parameters = {"token": opening, "PROLIFIC_PID": PID}
        assert TestClient(page).get(path, params=parameters).status_code == 403


class Room:
    """Annotators at work, without a page."""

    def __init__(self, folder: Path, *stages: ReviewStage) -> None:
        self.now, self.tasks = 1e9, [task for stage in stages for task in stage.tasks]
        self.desk = painted_desk(folder, stages, clock=lambda: self.now)

    def next(self, annotator: str, count: int = 1) -> list[ReviewTask]:
        by_id = self.desk.tasks.now().by_id
        return [by_id[task["id"]] for task in self.desk.next(annotator, count)]

    def answer(self, annotator: str, tasks: Sequence[ReviewTask], value: str = "0") -> None:
        for task in tasks:
            values = [option.value for option in shown_options(task, annotator)]
            option = f"o{values.index(value)}" if value in values else "x0"
            self.desk.answer(annotator, task.id, option, "", 1.0)

    def work(self, *annotators: str) -> dict[str, list[ReviewTask]]:
        """Have them answer in turns until nobody has a task; what each answered."""
        done: dict[str, list[ReviewTask]] = {name: [] for name in annotators}
        while given := {name: tasks for name in annotators if (tasks := self.next(name))}:
            for name, tasks in given.items():
                self.answer(name, tasks)
                done[name] += tasks
        return done


def room_of(folder: Path, count: int, shape: str = "best-image", **settings: Any) -> Room:
    return Room(folder, stage_of("s", [candidate("s", shape, n) for n in range(count)], folder, **settings))


def instances(tasks: Sequence[ReviewTask]) -> Counter[str]:
    return Counter(task.candidate.subject for task in tasks)


def test_a_shown_task_is_kept_for_a_while_also_over_a_restart(tmp_path: Path) -> None:
    room = room_of(tmp_path, 40)
    shown = room.next("anna", 30)
    room.answer("anna", shown[:1])
    room.desk.store.close()
    again = room_of(tmp_path, 40)
    assert {task.id for task in again.next("ben", 40)} == {task.id for task in room.tasks} - {t.id for t in shown}
    again.answer("ben", again.next("ben", 40))
    again.now += 60
    assert again.desk.rest("ben")["held"] == {"tasks": 29, "minutes": LEASE_SECONDS // 60 - 1}
    again.now += LEASE_SECONDS
    assert len(again.next("ben", 40)) == 29


def test_a_tie_is_asked_of_one_more_annotator_until_a_majority_is_there(tmp_path: Path) -> None:
    room = room_of(tmp_path, 4, overlap=1.0)
    tied, *agreed = room.tasks
    for name, value in (("anna", "0"), ("ben", "none")):
        room.answer(name, agreed)
        room.answer(name, [tied], value)
    assert room.next("anna") == []
    assert room.next("cleo", 9) == [tied]
    assert room.next("dora", 9) == [], "cleo was shown it"
    room.answer("cleo", [tied], "none")
    assert room.next("dora", 9) == [] and room.desk.is_decided(*room.desk.tasks.now().stages.values())


def test_questions_about_one_pair_are_far_apart_and_one_stage_follows_another(tmp_path: Path) -> None:
    asked = [candidate("s", "match", n, subject=f"pair-{n % 25}") for n in range(100)]
    stages = stage_of("s", asked, tmp_path), stage_of("a", [candidate("a", "keep-pair", n) for n in range(5)], tmp_path)
    order = Room(tmp_path, *stages).next("anna", 105)
    assert [task.stage for task in order] == ["s"] * 100 + ["a"] * 5
    pairs = [task.candidate.subject for task in order[:100]]
    assert all(len({*pairs[at : at + 25]}) == 25 for at in range(76))
    firsts = {asked.index(task.candidate) // 25 for task in order[:25]}
    assert firsts == {0, 1, 2, 3}, "which question of a pair comes first is random"


def test_two_annotators_answer_25_instances_each_first_all_about_text(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 60))
    assert room.desk.progress("anna")["total"] == 100
    done = room.work("anna", "ben")
    for tasks in done.values():
        assert len(tasks) == 100 and {*instances(tasks).values()} == {4} and len(instances(tasks)) == 25
        assert [len(task.candidate.images) for task in tasks] == [1] * 50 + [2] * 50
        for block in (tasks[:50], tasks[50:]):  # the two questions of an instance are apart
            assert len(instances(block[:25])) == len(instances(block[25:])) == 25
    assert not instances(done["anna"]) & instances(done["ben"])
    assert [*instances(done["anna"])] != sorted(instances(done["anna"])), "an order without a meaning"
    assert len(room.work("cleo")["cleo"]) == 40  # what is left


def test_who_leaves_in_the_middle_is_replaced_whole(tmp_path: Path) -> None:
    room = Room(tmp_path, survey_of(tmp_path, 25))
    first = room.next("anna", 60)
    room.answer("anna", first)
    # A pause that would end the lease of a single task takes nobody's instances away.
    room.now += 2 * LEASE_SECONDS
    assert room.next("ben") == [] and room.desk.rest("ben")["held"]["minutes"] == (SURVEY_SECONDS - 1200) // 60
    room.now += SURVEY_SECONDS
    tasks = room.work("ben")["ben"]
    whole = sum(count == 4 for count in instances(first).values())
    assert {*instances(tasks).values()} == {4} and len(instances(tasks)) == 25 - whole
    assert room.next("anna") == []


def test_overlap_and_ties_are_of_whole_instances(tmp_path: Path) -> None:
    done = Room(tmp_path / "shared", survey_of(tmp_path / "shared", 40, overlap=0.5)).work("anna", "ben", "cleo")
    assert all({*instances(tasks).values()} == {4} for tasks in done.values())
    assert {*Counter(name for tasks in done.values() for name in instances(tasks)).values()} == {1, 2}
    room = Room(tmp_path, survey_of(tmp_path, 2, overlap=1.0))
    for name, value in (("anna", "0"), ("ben", "1")):
        for task in room.next(name, 99):
            room.answer(name, [task], value if task.candidate.subject == "subject-0" else "0")
    assert instances(room.next("cleo", 99)) == {"subject-0": 4}
    assert room.next("dora", 99) == [] == room.next("anna", 99)
