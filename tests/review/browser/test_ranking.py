"""Images put in order on the page: by buttons, taken back, saved with a key, and asked again after an undo."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.review.asked import candidate, stage_of
from tests.review.browser.conftest import END, PHONE, Desk
from tests.review.browser.test_accessible import findings
from twinset.review.tasks import ReviewStage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("twinset_extras") is None, reason="twinset-extras, which asks so, is not installed"),
]

SWIPE_UP = """() => {
  const target = document.getElementById("task");
  for (const [name, clientY] of [["touchstart", 600], ["touchmove", 300], ["touchend", 300]]) {
    const touch = new Touch({ identifier: 1, target, clientX: 180, clientY });
    const touches = name === "touchend" ? [] : [touch];
    target.dispatchEvent(new TouchEvent(name, { bubbles: true, touches, changedTouches: [touch] }));
  }
}"""
Open = Callable[[Sequence[ReviewStage]], Desk]


def test_images_are_put_in_order(open_desk: Open, tmp_path: Path) -> None:
    stage = stage_of(
        "ranked", [candidate("ranked", "best-image", n, question="rank-images") for n in range(2)], tmp_path
    )
    desk = open_desk([stage])
    anna = desk.visit()
    buttons, save = anna.page.locator("#options .choose"), anna.page.locator("#extra .choose")

    def places() -> list[str]:
        return [one.split(" ", 1)[0] + one.split(" ", 1)[1] for one in buttons.all_inner_texts()]

    anna.ready()
    assert places() == ["Image1", "Image2", "Image3", "Image4"] and save.is_disabled()
    anna.page.keyboard.press("0")  # nothing to save yet
    anna.page.keyboard.press("1")  # no key: images are many
    for number in (2, 0, 3):
        buttons.nth(number).click()
    assert places() == ["Place2", "Image2", "Place1", "Place3"]
    assert findings(anna.page) == []
    anna.page.keyboard.press("Backspace")  # the last place, not the last answer
    buttons.nth(2).click()  # an image again: its place goes to the next
    assert places() == ["Place1", "Image2", "Image3", "Image4"]
    buttons.nth(1).click()
    first = anna.press("0")
    anna.saved()
    [said] = desk.answers()
    assert said.answer == " ".join(said.shown[:2]) and said.position == 0
    assert len({*said.shown}) == 4

    anna.ready()
    anna.page.keyboard.press("Backspace")
    anna.page.wait_for_function("id => document.getElementById('task').dataset.id === id", arg=first)
    anna.ready()
    assert places() == ["Image1", "Image2", "Image3", "Image4"] and desk.answers() == []
    for _ in range(2):
        anna.leaves(lambda: [buttons.nth(number).click() for number in range(4)] + [save.click()])
    assert anna.page.inner_text("#title") == END and anna.problems == []
    anna.saved()
    assert [len(one.answer.split(" ")) for one in desk.answers()] == [4, 4]


def test_no_swipe_saves_an_order(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk([stage_of("ranked", [candidate("ranked", "best-image", 0, question="rank-images")], tmp_path)])
    anna = desk.visit(**PHONE)
    anna.ready()
    anna.page.locator("#options .choose").nth(1).tap()
    before = anna.task
    anna.page.evaluate(SWIPE_UP)
    assert anna.task == before and desk.answers() == []
    assert findings(anna.page) == []
