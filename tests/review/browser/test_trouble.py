"""The page when the network or the server fails, and over a long day: no answer is lost, none is stored twice."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route

from tests.review.asked import SECRET, candidate, stage_of
from tests.review.browser.conftest import DESKTOP, END, Desk, Visitor
from twinset.generators.decisions.answers import read_answers
from twinset.review.access import Access, Person
from twinset.review.tasks import ReviewStage

pytestmark = pytest.mark.slow

Open = Callable[[Sequence[ReviewStage]], Desk]
CHECKOUT = Path(__file__).resolve().parents[3]
KILLS = 200
MANY = 500
#: Starts a server at each line that it reads, in a child process that opens everything again.
STARTER = f"""
import os, sys
from pathlib import Path
from twinset.review.opening import serve
from tests.review.asked import candidate, painted_app, stage_of
out = Path(sys.argv[1])
tasks = [candidate("s", "fits-caption", n) for n in range({KILLS})]
for line in sys.stdin:
    child = os.fork()
    if not child:
        app, _ = painted_app(out, [stage_of("s", tasks, out)])
        serve(app, "127.0.0.1", int(line), lambda base: print(os.getpid(), base.rpartition(":")[2], flush=True))
    os.waitpid(child, 0)
"""
#: Answers each task as soon as it can be, and notes how many nodes the document has then.
ANSWER_ALL = """() => new Promise((resolve) => {
    const task = document.getElementById("task");
    const nodes = [];
    const act = () => {
        if (document.getElementById("title").textContent.startsWith("Nothing is left")) {
            watcher.disconnect();
            resolve(nodes);
        } else if (task.dataset.open) {
            nodes.push(document.querySelectorAll("*").length);
            dispatchEvent(new KeyboardEvent("keydown", { key: String(1 + nodes.length % 2) }));
        }
    };
    const watcher = new MutationObserver(act);
    watcher.observe(task, { attributes: true, subtree: true, childList: true });
    act();
})"""


def pairs(out: Path, tasks: int) -> list[ReviewStage]:
    """A stage that asks which of two images fits."""
    return [stage_of("s", [candidate("s", "fits-caption", n) for n in range(tasks)], out)]


def instead(replies: list[dict[str, Any]]) -> Callable[[Route], None]:
    """Requests get this reply until the test takes it away: a busy page gives a request up, and asks again."""
    return lambda route: route.fulfill(**replies[0]) if replies else route.continue_()


def lost_reply(times: list[int]) -> Callable[[Route], None]:
    """The server gets the request, and the page no reply, so many times."""

    def handle(route: Route) -> None:
        route.fetch()
        if times:
            times.pop()
            route.abort()
        else:
            route.continue_()

    return handle


def test_answers_given_without_a_network_are_sent_when_it_is_back(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, 6))
    anna = desk.visit()
    anna.press("1")
    anna.saved()
    anna.page.wait_for_load_state("networkidle")  # the next images are there
    anna.context.set_offline(True)
    anna.press("1")
    anna.press("2")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 2')")
    assert "cannot be reached" in anna.page.inner_text("#trouble")
    assert (anna.done, len(desk.answers())) == (3, 1)
    anna.context.set_offline(False)
    anna.saved()
    assert [one.position for one in desk.answers()] == [0, 0, 1]


def test_answers_that_were_not_sent_outlive_the_page(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, 6))
    anna = desk.visit()
    anna.page.wait_for_load_state("networkidle")
    anna.page.route("**/api/answer", lambda route: route.abort())
    first, second = anna.press("2"), anna.press("1")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 2')")
    anna.page.close()
    again = Visitor(anna.context, desk.link())
    again.saved()
    assert len(desk.answers()) == 2
    assert again.task not in (first, second)
    assert again.done == 2


def test_a_lost_reply_neither_doubles_an_answer_nor_an_undo(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, 6))
    anna = desk.visit()
    anna.page.route("**/api/answer", lost_reply([1, 1]))
    anna.press("1")
    anna.press("1")
    third = anna.press("1")
    anna.saved()
    assert len({one.task for one in desk.answers()}) == len(desk.answers()) == 3
    lost = [1]
    anna.page.route("**/api/undo", lost_reply(lost))
    anna.page.keyboard.press("Backspace")
    anna.page.wait_for_function("() => document.getElementById('pace').textContent.startsWith('2 of 6')")
    anna.saved()
    assert (len(desk.answers()), lost) == (2, [])
    assert anna.page.is_enabled("#undo")
    while anna.page.inner_text("#title") != END:
        anna.press("2")
    anna.saved()
    assert Counter(one.task for one in desk.answers()).most_common(1)[0][1] == 1
    assert len(desk.answers()) == 6 and third


def test_an_answer_that_is_refused_is_said_and_the_work_goes_on(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, 6))
    anna = desk.visit()
    replies: list[dict[str, Any]] = [{"status": 409, "json": {"detail": "The image was made again."}}]
    anna.page.route("**/api/answer", instead(replies))
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#note:has-text('could not be saved: The image was made again.')")
    replies.clear()
    anna.press("1")
    anna.saved()
    assert len(desk.answers()) == 1
    replies.append({"status": 429, "headers": {"Retry-After": "1"}})
    anna.press("1")
    anna.page.wait_for_selector("#trouble:has-text('asks to wait')")
    replies.clear()
    anna.saved()
    assert len(desk.answers()) == 2
    replies.append({"status": 403, "json": {"detail": "No."}})
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 1')")
    Visitor(anna.context, desk.link()).saved()
    assert len(desk.answers()) == 3


def test_a_task_whose_image_does_not_load_can_be_skipped_but_not_answered(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, 2))
    context = desk.context()
    broken: list[str] = []

    def handle(route: Route) -> None:
        broken[:] = broken or [route.request.url]
        route.abort() if route.request.url in broken else route.continue_()

    context.route("**/image/*", handle)
    page = context.new_page()
    page.goto(desk.link())
    page.wait_for_selector("text=An image of this task did not load")
    page.keyboard.press("1")
    page.click("text=Skip this task")
    page.wait_for_selector("#task[data-open]")
    page.keyboard.press("2")
    page.wait_for_selector("text=skipped because an image did not load: 1")
    assert len(desk.answers()) == 1
    context.unroute("**/image/*")
    page.reload()
    page.wait_for_selector("#task[data-open]")
    page.keyboard.press("1")
    page.wait_for_selector(f"text={END}")
    page.wait_for_function("() => Object.keys(localStorage).every(key => !key.startsWith('twinset-answer:'))")
    assert len(desk.answers()) == 2


def test_the_page_does_not_grow_over_500_tasks(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(pairs(tmp_path, MANY))
    anna = desk.visit()
    nodes = anna.page.evaluate(ANSWER_ALL)
    anna.saved()
    assert len(nodes) == MANY
    assert max(nodes) == min(nodes)
    session = anna.context.new_cdp_session(anna.page)
    session.send("HeapProfiler.collectGarbage")
    assert session.send("Memory.getDOMCounters")["nodes"] < 4 * nodes[0], "nodes that are not shown are kept"
    assert len(desk.answers()) == len({one.task for one in desk.answers()}) == MANY


class Server:
    """A server in a process that is killed and started again at the same port."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        command = [sys.executable, "-c", STARTER, str(out)]
        self._starter = stack.enter_context(
            subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        self.port = 0
        self.start()

    def start(self) -> None:
        assert self._starter.stdin is not None and self._starter.stdout is not None
        self._starter.stdin.write(f"{self.port}\n")
        self._starter.stdin.flush()
        self._process, self.port = map(int, self._starter.stdout.readline().split())

    def kill(self) -> None:
        os.kill(self._process, signal.SIGKILL)

    def stop(self) -> None:
        self.kill()
        assert self._starter.stdin is not None
        self._starter.stdin.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with ExitStack() as stack:
        running = Server(tmp_path, stack)
        yield running
        running.stop()


def test_kill_9_of_the_server_after_each_of_200_answers(browser: Browser, tmp_path: Path, server: Server) -> None:
    token = Access(SECRET, ["anna"]).token(Person("anna", "annotator"))
    context = browser.new_context(**DESKTOP)
    anna = Visitor(context, f"http://127.0.0.1:{server.port}/?token={quote(token)}")
    for number in range(KILLS):
        anna.ready()
        before = anna.task
        anna.page.keyboard.press("12"[number % 2])
        if number % 2:
            anna.saved()
        server.kill()  # else with the answer under way
        server.start()
        anna.page.evaluate("dispatchEvent(new Event('online'))")
        anna.page.wait_for_function("before => document.getElementById('task').dataset.id !== before", arg=before)
    anna.page.wait_for_selector(f"text={END}")
    anna.saved()
    context.close()
    answers = read_answers(tmp_path / "_review" / "answers.sqlite", "s")
    assert len({one.task for one in answers}) == len(answers) == KILLS
