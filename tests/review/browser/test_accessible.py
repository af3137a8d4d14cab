"""What axe-core finds on each page, light and dark, on a desktop and on a phone; and what is shown without a link."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.review.asked import SHAPES, all_kinds
from tests.review.browser.conftest import DESKTOP, PHONE, Desk
from twinset.review.tasks import ReviewStage

pytestmark = pytest.mark.slow

Open = Callable[[Sequence[ReviewStage]], Desk]
WINDOWS = {"desktop": DESKTOP, "phone": PHONE}


def findings(page: Page) -> list[str]:
    """What axe-core has against a page, of any weight."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html']}" for one in found]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_desk: Open, tmp_path: Path, scheme: str, window: str) -> None:
    desk = open_desk(all_kinds(tmp_path, 1))
    anna = desk.visit(color_scheme=scheme, **WINDOWS[window])
    page, found = anna.page, {}
    page.click("#guide summary")
    for _ in SHAPES:
        anna.ready()
        if anna.question == "keep-pair":
            page.keyboard.press("0")
            found["why"] = findings(page)
            page.keyboard.press("Escape")
        found[f"{anna.question} {anna.task}"] = findings(page)
        page.keyboard.press("z")
        found["zoom"] = findings(page)
        page.keyboard.press("Escape")
        anna.press("1")
    found["end"] = findings(page)
    page.keyboard.press("?")
    found["help"] = findings(page)
    anna.saved()
    anna.context.set_offline(True)
    page.keyboard.press("Escape")
    page.keyboard.press("Backspace")
    page.wait_for_selector("#trouble:has-text('cannot be reached')")
    found["trouble"] = findings(page)
    anna.context.set_offline(False)
    for path in ("/help", "/image/none"):
        page.goto(desk.base + path)
        found[path] = findings(page)
    page.goto(desk.link("admin"))
    page.wait_for_url(f"{desk.base}/admin")
    found["admin"] = findings(page)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) == len(SHAPES) + 8


def test_without_a_valid_link_there_is_nothing_to_see(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(all_kinds(tmp_path, 1))
    for address, status in (
        (desk.base, 401),
        (f"{desk.base}/?token=made-up", 401),
        (f"{desk.base}/?token={desk.tokens['admin']}", 403),
        (f"{desk.base}/admin?token={desk.tokens['anna']}", 403),
        (f"{desk.base}/api/next", 401),
    ):
        page = desk.context().new_page()
        reply = page.goto(address)
        assert reply is not None and reply.status == status
        assert page.locator("img").count() == 0


def test_less_motion_where_the_system_asks_for_it(open_desk: Open, tmp_path: Path) -> None:
    moving = "getComputedStyle(document.getElementById('undo')).transitionDuration"
    desk = open_desk(all_kinds(tmp_path, 1))
    assert desk.visit(reduced_motion="no-preference").page.evaluate(moving) != "0s"
    assert desk.visit(reduced_motion="reduce").page.evaluate(moving) == "0s"


def test_focus_is_seen_and_every_button_is_reached_by_tab(open_desk: Open, tmp_path: Path) -> None:
    page = open_desk(all_kinds(tmp_path, 1)).visit().page
    buttons = page.locator("button:visible:enabled").count()
    reached = set()
    for _ in range(buttons + 3):
        page.keyboard.press("Tab")
        style = "e => [e.id + e.className + e.textContent, getComputedStyle(e).outlineStyle]"
        name, outline = page.evaluate(f"({style})(document.activeElement)")
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            reached.add(page.evaluate("[...document.querySelectorAll('button')].indexOf(document.activeElement)"))
            assert outline == "solid", name
    assert len(reached) == buttons


def test_nothing_lies_over_anything_else_in_a_window_of_any_size(open_desk: Open, tmp_path: Path) -> None:
    anna = open_desk(all_kinds(tmp_path, 1)).visit()
    boxes = "[...document.querySelectorAll('button')].filter(e => e.offsetWidth).map(e => e.getBoundingClientRect())"
    for _ in SHAPES:
        anna.ready()
        for width, height in ((1280, 900), (390, 844), (320, 480), (620, 520), (1000, 380), (1900, 1000)):
            anna.page.set_viewport_size({"width": width, "height": height})
            found = [(one["x"], one["y"], one["width"], one["height"]) for one in anna.page.evaluate(boxes)]
            for number, (x, y, across, down) in enumerate(found):
                assert x >= 0 and x + across <= width, (anna.question, width, height)
                for left, top, other_across, other_down in found[number + 1 :]:
                    beside = x + across <= left + 1 or left + other_across <= x + 1
                    above = y + down <= top + 1 or top + other_down <= y + 1
                    assert beside or above, (anna.question, width, height)
        anna.press("1")
