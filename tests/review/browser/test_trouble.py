"""The page when the network or the server fails: no answer is lost, none is stored twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route

from tests.review.asked import SECRET
from tests.review.browser.conftest import END, Served, Visitor
from tests.review.browser.test_page import of
from twinset.generators.decisions.answers import read_answers
from twinset.review.access import Access, Person

pytestmark = pytest.mark.slow

Serve = Callable[..., Served]
CHECKOUT = Path(__file__).resolve().parents[3]
KILLS = 30
#: Starts a server at each line that it reads, in a child process that opens everything again.
STARTER = f"""
import os, sys
from pathlib import Path
from twinset.review.opening import serve
from tests.review.asked import painted_app
from tests.review.browser.test_page import of
out = Path(sys.argv[1])
stage = of("fits-caption", out, {KILLS})
for line in sys.stdin:
    child = os.fork()
    if not child:
        app, _ = painted_app(out, [stage])
        serve(app, "127.0.0.1", int(line), lambda base: print(os.getpid(), base.rpartition(":")[2], flush=True))
    os.waitpid(child, 0)
"""


def instead(replies: list[dict[str, Any]]) -> Callable[[Route], None]:
    """Requests get this reply until the test takes it away."""
    return lambda route: route.fulfill(**replies[0]) if replies else route.continue_()


def lost_reply(times: list[int]) -> Callable[[Route], None]:
    """The server gets the request, and the page no reply, as often as the list is long."""

    def handle(route: Route) -> None:
        route.fetch()
        if times:
            times.pop()
            route.abort()
        else:
            route.continue_()

    return handle


def test_answers_given_without_a_network_outlive_the_page_and_are_sent_when_it_is_back(
    serve: Serve, tmp_path: Path
) -> None:
    served = serve(of("fits-caption", tmp_path, 6))
    anna = served.visit()
    anna.press("1")
    anna.saved()
    anna.page.wait_for_load_state("networkidle")  # the next images are there
    anna.context.set_offline(True)
    anna.press("1")
    anna.press("2")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 2')")
    assert "cannot be reached" in anna.page.inner_text("#trouble")
    assert (anna.done, len(served.answers())) == (3, 1)
    anna.page.close()
    anna.context.set_offline(False)
    again = Visitor(anna.context, served.link())
    again.saved()
    assert [answer.position for answer in served.answers()] == [0, 0, 1]
    assert again.done == 3


def test_a_lost_reply_neither_doubles_an_answer_nor_an_undo(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 6))
    anna = served.visit()
    anna.page.route("**/api/answer", lost_reply([1, 1]))
    for _ in range(3):
        anna.press("1")
    anna.saved()
    assert len({answer.task for answer in served.answers()}) == len(served.answers()) == 3
    lost = [1]
    anna.page.route("**/api/undo", lost_reply(lost))
    anna.page.keyboard.press("Backspace")
    anna.page.wait_for_function("() => document.getElementById('pace').textContent.startsWith('2 of 6')")
    anna.saved()
    assert (len(served.answers()), lost) == (2, [])
    assert anna.page.is_enabled("#undo")
    while anna.page.inner_text("#title") != END:
        anna.press("2")
    anna.saved()
    assert len({answer.task for answer in served.answers()}) == len(served.answers()) == 6


def test_an_answer_that_is_refused_is_said_and_the_work_goes_on(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 6))
    anna = served.visit()
    replies: list[dict[str, Any]] = [{"status": 409, "json": {"detail": "The image was made again."}}]
    anna.page.route("**/api/answer", instead(replies))
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#note:has-text('could not be saved: The image was made again.')")
    replies[0] = {"status": 429, "headers": {"Retry-After": "1"}}  # by a proxy
    anna.press("1")
    anna.page.wait_for_selector("#trouble:has-text('asks to wait')")
    replies.clear()
    anna.saved()
    assert len(served.answers()) == 1
    replies.append({"status": 403, "json": {"detail": "No."}})
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 1')")
    Visitor(anna.context, served.link()).saved()
    assert len(served.answers()) == 2


def test_a_task_whose_image_does_not_load_can_be_skipped_but_not_answered(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 2))
    anna, broken = served.visit(), list[str]()

    def handle(route: Route) -> None:
        broken[:] = broken or [route.request.url]
        route.abort() if route.request.url in broken else route.continue_()

    anna.context.route("**/image/*", handle)
    page = anna.context.new_page()
    page.goto(served.link())
    page.wait_for_selector("text=An image of this task did not load")
    page.keyboard.press("1")
    page.click("text=Skip this task")
    page.wait_for_selector("#task[data-open]")
    page.keyboard.press("2")
    page.wait_for_selector("text=skipped because an image did not load: 1")
    assert len(served.answers()) == 1
    anna.context.unroute("**/image/*")
    anna.page.reload()
    anna.ready()


def test_kill_9_of_the_server_after_each_answer(browser: Browser, tmp_path: Path) -> None:
    command, port = [sys.executable, "-c", STARTER, str(tmp_path)], "0"
    with (
        browser.new_context() as context,
        subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter,
    ):
        assert starter.stdin is not None and starter.stdout is not None

        def start() -> tuple[int, str]:
            print(port, file=starter.stdin, flush=True)
            process, opened = starter.stdout.readline().split()  # type: ignore[union-attr]
            return int(process), opened

        process, port = start()
        token = Access(SECRET, ["anna"]).token(Person("anna", "annotator"))
        anna = Visitor(context, f"http://127.0.0.1:{port}/?token={quote(token)}")
        for number in range(KILLS):
            anna.ready()
            before = anna.task
            anna.page.keyboard.press("12"[number % 2])
            if number % 2:
                anna.saved()
            os.kill(process, signal.SIGKILL)  # else with the answer under way
            process, port = start()
            anna.page.evaluate("dispatchEvent(new Event('online'))")
            anna.page.wait_for_function("before => document.getElementById('task').dataset.id !== before", arg=before)
        anna.page.wait_for_selector(f"text={END}")
        anna.saved()
        os.kill(process, signal.SIGKILL)
        starter.kill()
    answers = read_answers(tmp_path / "_review" / "answers.sqlite", "fits-caption")
    assert len({answer.task for answer in answers}) == len(answers) == KILLS
