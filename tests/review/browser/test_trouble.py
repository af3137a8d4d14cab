"""The page when the network or the server fails: no answer is lost, none is stored twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Route

from tests.review.browser.conftest import END, Served, Visitor
from tests.review.browser.test_page import of
from twinset.review.access import Access

pytestmark = pytest.mark.slow

Serve = Callable[..., Served]


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
    other = f"twinset-answer:{Access(bytes(32), []).dataset}:anna:1"  # its page had this address before
    anna.page.evaluate("other => localStorage[other] = '{}'", other)
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
    assert sorted(answer.position for answer in served.answers()) == [0, 0, 1]
    assert (again.done, again.page.evaluate("Object.keys(localStorage)")) == (3, [other])


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
    anna.page.wait_for_selector("#trouble:has-text('asks to wait: status 429')")
    replies[0] = {"status": 404, "body": "<h1>No tunnel here</h1>"}
    anna.page.wait_for_selector("#trouble:has-text('asks to wait: status 404')")
    replies.clear()
    anna.saved()
    assert len(served.answers()) == 1
    replies.append({"status": 403, "json": {"detail": "No."}})
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#trouble:has-text('kept in this browser: 1')")
    Visitor(anna.context, served.link()).saved()
    assert len(served.answers()) == 2
