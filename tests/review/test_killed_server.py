"""The admin's page: who did how much, and how well they agree.

What waits for decisions is told once they are in: once, later when it fails, and without delaying anybody.
kill -9 of the server after each answer: all of them are stored, none twice.
Nothing but the picture tells the images of one task apart.
``twinset review`` of a human baseline: its options, and files that name images which the page serves.
"""

import csv
import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import twinset
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from tests.review.asked import SECRET, Planned, candidate, painted_app, painted_desk, stage_of
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.access import Access, Person, Refused
from twinset.review.app import make_app
from twinset.review.desk import ReviewDesk
from twinset.review.neutral_images import in_one_form
from twinset.review.opening import open_desk, open_links
from twinset.review.store import AnswerStore


@pytest.fixture
def admin(tmp_path: Path) -> TestClient:
    """Two annotators answered 10 tasks each and disagree on the last two."""
    stage = stage_of("s", [candidate("s", "keep-pair", n) for n in range(10)], tmp_path, overlap=1.0)
    store = AnswerStore(stage.answers)
    for name, last in (("anna", "keep"), ("ben", "drop")):
        for number, task in enumerate(stage.tasks):
            value = last if number > 7 else "keep" if number % 2 else "drop"
            reason = "not-visible" if value == "drop" else ""
            store.save(
                Answer(
                    stage="s", task=task.candidate.key, binding=task.binding, annotator=name, answer=value,
                    reason=reason, seconds=4.0, at="2020-01-01",
                )
            )  # fmt: skip
    store.close()
    app, tokens = painted_app(tmp_path, [stage], ["anna", "ben", "cleo"])
    client = TestClient(app)
    client.get("/admin", params={"token": tokens["admin"]})
    return client


def cells(html: str, first: str) -> list[str]:
    """The cells of the row that begins with a word."""
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL) if f">{first}</th>" in row)
    return re.findall(r"<td>(.*?)</td>", row)


def test_progress_pace_agreement_and_ties_are_shown(admin: TestClient) -> None:
    html = admin.get("/admin").text
    assert cells(html, "s") == ["10", "8", "2"]
    assert cells(html, "anna") == ["10", "0", "2", "keep-pair 900"]
    assert cells(html, "cleo") == ["0", "2", "0", ""], "ties are asked of one more annotator"
    assert cells(html, "anna and ben") == ["10", "0.615"]


def test_answers_are_exported(admin: TestClient) -> None:
    table = pq.read_table(io.BytesIO(admin.get("/admin/export/parquet").content))
    assert (len(table), set(table["annotator"].to_pylist())) == (20, {"anna", "ben"})
    assert admin.get("/admin/export/prolific").text.splitlines()[0].startswith("stage,task_id,binding,participant_id")
    assert admin.get("/admin/export/label-studio").status_code == 404


def test_an_annotator_is_not_let_in(admin: TestClient) -> None:
    anna = Access(SECRET, ["anna"]).token(Person("anna", "annotator"))
    admin.cookies.clear()
    admin.cookies.set(Access(SECRET, []).cookie(Person("admin", "admin")), anna)
    assert admin.get("/admin").status_code == 403


def answer(desk: ReviewDesk, annotator: str, count: int) -> None:
    for task in desk.next(annotator, count):
        desk.answer(annotator, task["id"], "o0", "", 2.0)


def test_a_stage_is_told_of_once_it_is_decided_and_again_only_where_that_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def on_decided(stage: str) -> None:
        heard.append(stage)
        if len(heard) == 1:
            raise OSError("no server")

    stages = [
        stage_of(name, [candidate(name, "keep-pair", n) for n in range(3)], tmp_path) for name in ("first", "second")
    ]
    desk = painted_desk(tmp_path, stages, on_decided=on_decided)
    answer(desk, "anna", 2)
    desk.announce()
    assert heard == []
    answer(desk, "anna", 1)
    for _ in range(3):
        desk.announce(["first"])
    assert heard == ["first", "first"]
    assert "first: all decisions are in, but what waits for them was not told: no server" in caplog.text


def test_nobody_waits_for_what_is_told(tmp_path: Path) -> None:
    began, goes_on, heard = threading.Event(), threading.Event(), list[str]()

    def on_decided(stage: str) -> None:
        heard.append(stage)
        began.set()
        assert goes_on.wait()

    stages = [stage_of(name, [candidate(name, "match", 0)], tmp_path) for name in ("first", "second")]
    desk = painted_desk(tmp_path, stages, on_decided=on_decided)
    answer(desk, "anna", 1)
    slow = threading.Thread(target=desk.announce, args=[["first"]])
    slow.start()
    assert began.wait()
    answer(desk, "anna", 1)
    desk.announce(["second"])  # returns while the first is still being told
    assert heard == ["first"]
    goes_on.set()
    slow.join()
    assert heard == ["first", "second"]


def test_four_people_at_once_answer_every_task_as_often_as_it_needs(tmp_path: Path) -> None:
    asked = [candidate("s", "best-image", n) for n in range(48)]
    stage = stage_of("s", asked, tmp_path, overlap=0.25)
    desk = painted_desk(tmp_path, [stage])
    started = threading.Barrier(4)

    def work(name: str) -> None:
        started.wait()
        while tasks := desk.next(name, 3):
            for task in tasks:
                desk.answer(name, task["id"], "o0", "", 1.0)

    people = [threading.Thread(target=work, args=[f"person-{n}"]) for n in range(4)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    for name in ("person-0", "person-1", "person-2", "person-3"):
        answer(desk, name, 99)  # what was leased to somebody who had stopped
    assert {task.id: len(desk.answers_to(task)) for task in stage.tasks} == {
        task.id: task.needed for task in stage.tasks
    }
    assert len({task.needed for task in stage.tasks}) == 2


def test_a_task_that_was_planned_again_is_gone(tmp_path: Path) -> None:
    desk = painted_desk(tmp_path, [stage_of("s", [candidate("s", "match", 0)], tmp_path)])
    [old] = desk.next("anna", 1)
    assert isinstance(desk.tasks, Planned)
    again = candidate("s", "match", 0, image_sha256s=("f" * 64,) * 2)
    desk.tasks.plan([stage_of("s", [again], tmp_path)])
    with pytest.raises(Refused, match="images were made again"):
        desk.answer("anna", old["id"], "o0", "", 1.0)


ANSWERS = 200
ANNA = Person("anna", "annotator")
CHECKOUT = Path(__file__).resolve().parents[2]
#: Starts a server at each line that it reads, in a child process that opens everything again.
STARTER = f"""
import os, sys
from pathlib import Path
import uvicorn
from twinset.review.opening import serve
from tests.review.asked import candidate, painted_app, stage_of
out = Path(sys.argv[1])
tasks = [candidate("s", "fits-caption", n) for n in range({ANSWERS})]
uvicorn.Config(painted_app(out / "unused", [])[0]).load()  # what it imports, each server finds
for line in sys.stdin:
    child = os.fork()
    if not child:
        app, _ = painted_app(out, [stage_of("s", tasks, out)])
        serve(app, "127.0.0.1", int(line), lambda base: print(os.getpid(), base.rpartition(":")[2], flush=True))
    os.waitpid(child, 0)
"""


class Server:
    """A server that is killed and started again at the same port."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin, self._stdout, self.port = stdin, stdout, 0
        self.start()

    def start(self) -> None:
        self._stdin.write(f"{self.port}\n")
        self._stdin.flush()
        self._process, self.port = map(int, self._stdout.readline().split())

    def kill(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        self.start()

    def ask(self, method: str, path: str, body: Any = None) -> http.client.HTTPConnection:
        access = Access(SECRET, ["anna"])
        headers = {
            "Cookie": f"{access.cookie(ANNA)}={access.token(ANNA)}",
            "X-CSRF-Token": access.csrf(ANNA),
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin is not None and starter.stdout is not None
        running = Server(starter.stdin, starter.stdout)
        yield running
        os.kill(running._process, signal.SIGKILL)
        starter.stdin.close()


def told(connection: http.client.HTTPConnection) -> Any:
    reply = connection.getresponse()
    content = json.loads(reply.read())
    connection.close()
    assert reply.status == 200, content
    return content


@pytest.mark.slow
def test_no_answer_is_lost_or_doubled_when_the_server_is_killed_after_each(tmp_path: Path, server: Server) -> None:
    for number in range(ANSWERS):
        [task] = told(server.ask("GET", "/api/next?after=0"))
        assert task["progress"]["done"] == number
        body = {"id": task["id"], "option": "o0", "seconds": 1.0}
        sent = server.ask("POST", "/api/answer", body)
        if number % 2:
            assert told(sent)["progress"]["done"] == number + 1
            server.kill()
            continue
        # Killed before the reply is read: nobody knows whether the answer is stored, and the page sends it again.
        server.kill()
        with suppress(OSError, http.client.HTTPException):
            sent.close()
        assert told(server.ask("POST", "/api/answer", body))["progress"]["done"] == number + 1
    answers = read_answers(tmp_path / "_review" / "answers.sqlite", "s")
    assert len(answers) == ANSWERS
    assert set(Counter(one.task for one in answers).values()) == {1}
    assert told(server.ask("GET", "/api/next")) == []


def picture(form: str, size: tuple[int, int], value: int, **settings: object) -> bytes:
    content = io.BytesIO()
    Image.fromarray(np.full((size[1], size[0], 3), value, np.uint8)).save(content, form, **settings)  # type: ignore[arg-type]
    return content.getvalue()


def seen(content: bytes) -> tuple[str, tuple[int, int], int]:
    with Image.open(io.BytesIO(content)) as image:
        return image.format or "", image.size, int(np.asarray(image).mean().round())


@pytest.mark.parametrize(
    ("first", "second"),
    [(("PNG", (40, 30)), ("JPEG", (40, 30))), (("JPEG", (64, 48)), ("JPEG", (40, 40)))],
)
def test_a_photo_and_a_generated_image_come_in_one_form(
    first: tuple[str, tuple[int, int]], second: tuple[str, tuple[int, int]]
) -> None:
    found = in_one_form([picture(*first, 40), picture(*second, 200)])
    assert [seen(one)[0] for one in found] == ["JPEG"] * 2
    assert [max(seen(one)[1]) for one in found] == [40, 40]
    assert [seen(one)[2] for one in found] == [40, 200]
    tables = [Image.open(io.BytesIO(one)).quantization for one in found]  # type: ignore[attr-defined]
    assert tables[0] == tables[1], "one quality"


def test_a_turned_photo_is_upright_beside_an_image_of_another_form() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = picture("JPEG", (40, 30), 9, exif=exif)
    assert seen(in_one_form([turned, picture("PNG", (30, 40), 9)])[0])[1] == (30, 40)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT of pairs that people are asked about."""
    folder = tmp_path_factory.mktemp("asked")
    out = build_pairs(folder)
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe_of(folder, protocol="bivlc"), str(out), only=["human-baseline"])
    return out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--images-at", "https://h"], "--out"),
        (["--images-at", "ftp://h", "--out", "x.csv"], "--images-at ftp://h"),
        (["--images-at", "https://h/path", "--out", "x.csv"], "--images-at https://h/path"),
        (["--prolific", "a b"], "completion code"),
    ],
)
def test_wrong_options_are_refused(
    asked: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(asked), *options]) == 2
    assert words in capsys.readouterr().err


def test_the_page_serves_what_an_exported_file_names(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tasks.csv"
    assert main(["review", str(asked), "--out", str(file), "--images-at", "https://ask.example.org"]) == 0
    capsys.readouterr()
    desk = open_desk(str(asked))
    assert desk is not None
    app = make_app(desk, Access(desk.tasks.secret, ["anna"], links=open_links(str(asked))), "asked")
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    named = [row[name] for row in rows for name in ("image0", "image1") if row[name]]
    assert len(named) == 2 * len(rows) // 2 + len(rows) // 2
    client = TestClient(app, base_url="https://ask.example.org")
    assert {client.get(address).status_code for address in named} == {200}
    desk.store.close()
