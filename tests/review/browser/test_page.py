"""The page in a real browser: every kind of question by keys, swipes, zoom, orders, windows of any size.

When the network or the server fails, no answer is lost and none is stored twice. BiVLC's survey is clicked through.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

import twinset
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from tests.review.asked import SHAPES, all_kinds, candidate, stage_of
from tests.review.browser.conftest import DESKTOP, END, PHONE, Served, Visitor, serving
from twinset.contracts.errors import DecisionsMissing
from twinset.review.access import Access
from twinset.review.app import make_app
from twinset.review.neutral_images import in_one_form
from twinset.review.opening import open_desk
from twinset.review.tasks import ReviewStage

Serve = Callable[..., Served]
#: Swipes from the middle of the window, in pixels.
LEFT, RIGHT, UP = (-160, 8), (160, -8), (6, -200)
EXTENT = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
#: Where elements lie: left, top, right, bottom.
BOXES = """selector => [...document.querySelectorAll(selector)].filter((node) => node.offsetWidth)
    .map((node) => node.getBoundingClientRect()).map(({ left, top, right, bottom }) => [left, top, right, bottom])"""
#: Presses keys faster than anyone reads, on a busy machine too.
AT_ONCE = "keys => keys.forEach((key) => dispatchEvent(new KeyboardEvent('keydown', { key })))"


def of(shape: str, out: Path, tasks: int, **changes: Any) -> ReviewStage:
    return stage_of(shape, [candidate(shape, shape, n, **changes) for n in range(tasks)], out)


def test_all_kinds_by_keys_only(serve: Serve, tmp_path: Path) -> None:
    served = serve(*all_kinds(tmp_path, 1))
    anna = served.visit()
    keys = {"best-image": ["3"], "fits-caption": ["0"], "keep-pair": ["0", "2"], "match": ["2"]}
    pictures: dict[str, list[bytes]] = {}
    for _ in SHAPES:
        anna.ready()
        urls = [image.get_attribute("src") for image in anna.page.locator("#options img").all()]
        pictures[anna.task] = [anna.page.request.get(f"{served.base}{url}").body() for url in urls]
        anna.press(*keys[anna.question])
    assert anna.page.inner_text("#title") == END
    anna.saved()
    answers = {answer.stage: answer for answer in served.answers()}
    assert {*answers} == {*SHAPES}
    for stage in served.stages:
        [task], answer = stage.tasks, answers[stage.name]
        pressed = keys[task.question.name][0]
        # What is stored is the option that was shown at this place: by its order, and by the picture itself.
        if pressed != "0":
            assert (answer.answer, answer.position) == (answer.shown[int(pressed) - 1], int(pressed) - 1)
        if shown := pictures[task.id]:
            numbers = {option.value: option.image or 0 for option in task.question.layout(task.candidate).options}
            images = range(len(task.candidate.images))
            neutral = in_one_form([stage.generator.picture(task.candidate, number) for number in images])
            assert [neutral[numbers[value]] for value in answer.shown] == shown
        assert 0 < answer.seconds < 60
    assert (answers["keep-pair"].answer, answers["keep-pair"].reason) == ("drop", "fits-both")
    assert answers["fits-caption"].answer == "both"
    assert (anna.problems, anna.hosts) == ([], {served.base.removeprefix("http://")})


def swipe(visitor: Visitor, x: int, y: int) -> None:
    """Move a finger over the screen, as the browser itself reports it."""
    session = visitor.context.new_cdp_session(visitor.page)
    for step in range(5):
        point = {"x": 195 + x * step // 4, "y": 460 + y * step // 4}
        touch = {"type": "touchMove" if step else "touchStart", "touchPoints": [point]}
        session.send("Input.dispatchTouchEvent", touch)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


@pytest.mark.slow
def test_swipes_on_a_phone(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 3), of("keep-pair", tmp_path, 2), of("match-text", tmp_path, 2))
    anna = served.visit(**PHONE)
    for move in ((30, 0), (90, 80), (0, 150)):  # small, slanted, down
        swipe(anna, *move)
    turns = {"fits-caption": [LEFT, RIGHT, UP], "keep-pair": [RIGHT, LEFT], "match": [RIGHT, LEFT]}
    swiped: dict[str, tuple[int, int]] = {}
    for _ in range(7):
        anna.ready()
        turn, question = turns[anna.question].pop(0), anna.question
        swiped[anna.task] = turn

        def go(turn: tuple[int, int] = turn, question: str = question) -> None:
            swipe(anna, *turn)
            if (question, turn) == ("keep-pair", LEFT):
                anna.page.tap("#reasons .choose >> nth=3")

        anna.leaves(go)
    anna.saved()
    assert len(served.answers()) == 7
    ids = {task.candidate.key: task.id for stage in served.stages for task in stage.tasks}
    for answer in served.answers():
        wanted = {LEFT: answer.shown[0], RIGHT: answer.shown[-1], UP: "both"}
        if answer.stage == "keep-pair":
            wanted[LEFT] = "drop"
        assert answer.answer == wanted[swiped[ids[answer.task]]]
        assert answer.reason == ("bad-image" if answer.answer == "drop" else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "high", "phone", "scheme"),
    [
        (390, 844, True, "dark"),
        (844, 390, True, "light"),
        (1280, 720, False, "light"),
    ],
)
def test_every_task_fits(serve: Serve, tmp_path: Path, wide: int, high: int, phone: bool, scheme: str) -> None:
    window = {**(PHONE if phone else {}), "viewport": {"width": wide, "height": high}, "color_scheme": scheme}
    served = serve(*all_kinds(tmp_path, 1))
    anna = served.visit(**window)
    smallest = {"best-image": 230, "fits-caption": 350, "keep-pair": 350, "match": 350}
    for _ in SHAPES:
        anna.ready()
        assert anna.page.evaluate(EXTENT) == [wide, high]
        images = anna.page.evaluate(BOXES, ".zoomer img")
        bottoms = [box[3] for box in anna.page.evaluate(BOXES, "blockquote, figcaption")]
        if not phone:
            assert all(right - left > smallest[anna.question] for left, _, right, _ in images)
            assert anna.question != "keep-pair" or images[0][1] == images[1][1], "wide twins lie side by side"
            assert all(min(abs(top - bottom) for bottom in bottoms) < 40 for _, top, _, _ in images[: len(bottoms)])
        for first, second in itertools.combinations(anna.page.evaluate(BOXES, "button"), 2):
            (left, top, right, bottom), (x, y, end, foot) = first, second
            apart = right <= x + 1 or end <= left + 1 or bottom <= y + 1 or foot <= top + 1
            assert apart, "a button lies over another"
        if anna.question == "keep-pair":
            drop, keep = (anna.page.evaluate(BOXES, f"#{name} .choose")[0] for name in ("extra", "options"))
            assert drop[0] < keep[0], "drop is left of keep on every window"
        assert anna.findings() == []
        anna.press("1")
    assert anna.problems == anna.findings() == []
    anna.page.goto(served.link("admin"))
    anna.page.wait_for_url(f"{served.base}/admin")
    assert anna.findings() == []


@pytest.mark.slow
def test_images_enlarge_and_one_press_is_one_answer(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("best-image", tmp_path, 6))
    anna = served.visit()
    page, zoomed = anna.page, anna.page.locator("#zoomed")
    images = [image.get_attribute("src") for image in page.locator("#options img").all()]
    enlarged = []
    for key in ("z", "z", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        enlarged.append(images.index(zoomed.get_attribute("src")))
    assert enlarged == [0, 1, 2, 1]
    anna.leaves(lambda: page.evaluate(AT_ONCE, ["2", "1", "1"]))  # an answer needs no way back
    assert not zoomed.is_visible()
    for _ in range(5):
        page.keyboard.down("3")  # held: the key repeats
    page.keyboard.up("3")
    anna.ready()
    for key in ("Control+1", "7", "?"):
        page.keyboard.press(key)
    page.uncheck("#single")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    anna.leaves(lambda: page.locator("#options .choose >> nth=0").click())
    anna.saved()
    assert [answer.position for answer in served.answers()] == [1, 2, 0]


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


@pytest.mark.slow
def test_answers_given_without_a_network_are_sent_later(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 6))
    anna = served.visit()
    stale = f"twinset-answer:{Access(bytes(32), []).dataset}:anna:1"  # its page had this address before
    anna.page.evaluate("stale => localStorage[stale] = '{}'", stale)
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
    assert (again.done, again.page.evaluate("Object.keys(localStorage)")) == (3, [stale])


@pytest.mark.slow
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
    anna.page.reload()
    anna.ready()
    anna.page.keyboard.press("Backspace")
    anna.page.wait_for_function("() => document.getElementById('pace').textContent.startsWith('2 of 6')")
    anna.saved()
    assert (len(served.answers()), lost) == (2, [])
    assert anna.page.is_enabled("#undo")
    while anna.page.inner_text("#title") != END:
        anna.press("2")
    anna.saved()
    assert len({answer.task for answer in served.answers()}) == len(served.answers()) == 6


@pytest.mark.slow
def test_an_answer_that_is_refused_is_said_and_the_work_goes_on(serve: Serve, tmp_path: Path) -> None:
    served = serve(of("fits-caption", tmp_path, 6))
    anna = served.visit()
    refused: dict[str, Any] = {"status": 409, "json": {"detail": "The image was made again."}}
    anna.page.route("**/api/answer", lambda route: route.fulfill(**refused))
    anna.page.keyboard.press("1")
    anna.page.wait_for_selector("#note:has-text('could not be saved: The image was made again.')")
    refused = {"status": 429, "headers": {"Retry-After": "1"}}  # by a proxy
    anna.press("1")
    anna.page.wait_for_selector("#trouble:has-text('asks to wait: status 429')")
    Visitor(anna.context, served.link()).saved()
    assert len(served.answers()) == 1


PEOPLE = {"5f3c0123456789abcdef0123": DESKTOP, "5f3c0123456789abcdef0124": PHONE}
INSTANCES = 25


@pytest.mark.slow
def test_two_participants_of_25_instances_each(browser: Browser, tmp_path: Path) -> None:
    out = build_pairs(tmp_path)
    recipe = recipe_of(tmp_path, sample=2 * INSTANCES, protocol="bivlc")
    with pytest.raises(DecisionsMissing, match="200 of 200 decisions are missing"):
        twinset.build(recipe, str(out), only=["human-baseline"])
    desk = open_desk(str(out))
    assert desk is not None
    access, by_id = Access(desk.tasks.secret, ["anna"], study="C0DE"), desk.tasks.now().by_id
    with serving(make_app(desk, access, "bivlc")) as base:
        for name, window in PEOPLE.items():
            with browser.new_context(**window) as context:
                visitor = Visitor(context, access.study_link(base).replace("{{%PROLIFIC_PID%}}", name))
                words, subjects = [], []
                while visitor.task:
                    visitor.ready()
                    words.append(visitor.page.inner_text("#title") + visitor.page.inner_text("#guide-words"))
                    subjects.append(by_id[visitor.task].candidate.subject)
                    visitor.leaves(visitor.page.locator("#options button.choose").first.click)
                visitor.saved()
                visitor.page.wait_for_selector("text=Your completion code is C0DE")
                complete = "https://app.prolific.com/submissions/complete?cc=C0DE"
                assert visitor.page.get_attribute("#statement a", "href") == complete
                assert visitor.problems == [] and {*visitor.hosts} == {base.partition("//")[2]}
            assert len({*subjects}) == INSTANCES and all(subjects.count(subject) == 4 for subject in subjects)
            assert all("Which description best" in text and "word order" in text for text in words[:50])
            assert all("Which image best" in text and "Aesthetic defects" in text for text in words[50:])
    desk.store.close()
    twinset.build(recipe, str(out), only=["human-baseline"])
    report = json.loads((out / "_stages/human-baseline/_meta/decisions.json").read_bytes())
    assert report["answers"] == dict.fromkeys(PEOPLE, 100)
