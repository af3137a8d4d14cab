"""The page in a real browser: every kind of question by keys, undo, swipes, zoom, people side by side."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.review.asked import SHAPES, all_kinds, candidate, stage_of
from tests.review.browser.conftest import END, PHONE, Desk, Visitor
from tests.review.browser.test_accessible import findings
from twinset.review.neutral_images import in_one_form
from twinset.review.tasks import ReviewStage

Open = Callable[[Sequence[ReviewStage]], Desk]
#: Swipes from the middle of the window, in pixels.
LEFT, RIGHT, UP = (-160, 8), (160, -8), (6, -200)


EXTENT = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
#: Where images lie, as shown: left, top, right, bottom.
IMAGES = """[...document.querySelectorAll(".zoomer img")].map((one) => one.getBoundingClientRect())
    .map(({ left, top, right, bottom }) => [left, top, right, bottom])"""


def of(shape: str, out: Path, tasks: int) -> list[ReviewStage]:
    """A stage of tasks of one shape."""
    return [stage_of(shape, [candidate(shape, shape, n) for n in range(tasks)], out)]


def test_all_kinds_by_keys_only(open_desk: Open, tmp_path: Path) -> None:
    stages = all_kinds(tmp_path, 1)
    desk = open_desk(stages)
    anna = desk.visit()
    keys = {"best-image": ["3"], "fits-caption": ["0"], "keep-pair": ["0", "2"], "match": ["2"]}
    pictures: dict[str, list[bytes]] = {}
    for _ in SHAPES:
        anna.ready()
        urls = [one.get_attribute("src") for one in anna.page.locator("#options img").all()]
        pictures[anna.task] = [anna.page.request.get(f"{desk.base}{url}").body() for url in urls]
        anna.press(*keys[anna.question])
    assert anna.page.inner_text("#title") == END
    anna.saved()

    answers = {one.stage: one for one in desk.answers()}
    assert {*answers} == {*SHAPES}
    for stage in stages:
        [task], answer = stage.tasks, answers[stage.name]
        pressed = keys[task.question.name][0]
        # What is stored is the option that was shown at this place: by its order, and by the picture itself.
        if pressed != "0":
            assert answer.answer == answer.shown[int(pressed) - 1]
            assert answer.position == int(pressed) - 1
        if shown := pictures[task.id]:
            numbers = {one.value: one.image or 0 for one in task.question.layout(task.candidate).options}
            every = range(len(task.candidate.images))
            served = in_one_form([stage.generator.picture(task.candidate, number) for number in every])
            assert [served[numbers[value]] for value in answer.shown] == shown
        assert 0 < answer.seconds < 60
    assert (answers["keep-pair"].answer, answers["keep-pair"].reason) == ("drop", "fits-both")
    assert answers["fits-caption"].answer == "both"
    assert (anna.problems, anna.hosts) == ([], {desk.base.removeprefix("http://")})


def test_undo_also_after_a_reload(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("fits-caption", tmp_path, 4))
    anna = desk.visit()
    first, second = anna.press("1"), anna.press("2")
    third = anna.task
    anna.reload()
    assert (anna.task, anna.done) == (third, 2)
    assert anna.press("Backspace") == third
    assert (anna.task, anna.done) == (second, 1)
    anna.press("Backspace")
    assert (anna.task, anna.done, desk.answers()) == (first, 0, [])
    anna.page.keyboard.press("Backspace")
    anna.page.wait_for_selector("#note:has-text('nothing to undo')")
    assert [anna.press("0"), anna.press("1")] == [first, second]
    anna.saved()
    answers = desk.answers()
    assert [len(answers), answers[0].answer] == [2, "both"]


def swipe(visitor: Visitor, across: int, down: int) -> None:
    """Move one finger over the screen, as the browser itself reports it."""
    session = visitor.context.new_cdp_session(visitor.page)
    x, y = 195, 460
    points = [(x + across * step // 4, y + down * step // 4) for step in range(5)]
    for kind, at in zip(["touchStart"] + ["touchMove"] * 4, points, strict=True):
        touch = {"type": kind, "touchPoints": [{"x": at[0], "y": at[1]}]}
        session.send("Input.dispatchTouchEvent", touch)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


@pytest.mark.slow
def test_swipes_on_a_phone(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk([*of("fits-caption", tmp_path, 3), *of("keep-pair", tmp_path, 2), *of("match-text", tmp_path, 2)])
    anna = desk.visit(**PHONE)
    turns = {"fits-caption": [LEFT, RIGHT, UP], "keep-pair": [RIGHT, LEFT], "match": [RIGHT, LEFT]}
    swiped: dict[str, tuple[str, tuple[int, int]]] = {}
    for _ in range(7):
        anna.ready()
        assert anna.page.evaluate(EXTENT) == [390, 844], "the task does not fit into the window"
        turn, question = turns[anna.question].pop(0), anna.question

        def go(turn: tuple[int, int] = turn, question: str = question) -> None:
            swipe(anna, *turn)
            if (question, turn) == ("keep-pair", LEFT):
                anna.page.tap("#reasons .choose >> nth=3")

        swiped[anna.task] = question, turn
        anna.leaves(go)
    anna.saved()
    ids = {task.candidate.key: task.id for stage in desk._stages for task in stage.tasks}
    for answer in desk.answers():
        question, turn = swiped[ids[answer.task]]
        wanted = {
            "fits-caption": {LEFT: answer.shown[0], RIGHT: answer.shown[-1], UP: "both"},
            "keep-pair": {RIGHT: "keep", LEFT: "drop"},
            "match": {LEFT: answer.shown[0], RIGHT: answer.shown[-1]},
        }
        assert answer.answer == wanted[question][turn]
        assert answer.reason == ("bad-image" if answer.answer == "drop" else "")
    assert len(desk.answers()) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "high", "phone"),
    [(390, 844, True), (360, 640, True), (430, 932, True), (844, 390, True), (1280, 720, False), (1000, 700, False)],
)
def test_every_task_fits_into_the_window_with_its_words_beside_its_images(
    open_desk: Open, tmp_path: Path, wide: int, high: int, phone: bool
) -> None:
    anna = open_desk(all_kinds(tmp_path, 2)).visit(
        **(PHONE if phone else {}) | {"viewport": {"width": wide, "height": high}}
    )
    smallest = {"best-image": 230, "fits-caption": 350, "keep-pair": 350, "match": 350}
    for number in range(2 * len(SHAPES)):
        anna.ready()
        assert anna.page.evaluate(EXTENT) == [wide, high], "with the pace, too"
        images = anna.page.evaluate(IMAGES)
        words = anna.page.locator("blockquote, figcaption").all()
        bottoms = [box["y"] + box["height"] for one in words if (box := one.bounding_box())]
        if not phone:
            assert all(right - left > smallest[anna.question] for left, _, right, _ in images)
            assert all(min(abs(top - bottom) for bottom in bottoms) < 40 for _, top, _, _ in images[: len(bottoms)])
        if anna.question == "keep-pair":
            boxes = [anna.page.locator(f"#{name} .choose").bounding_box() for name in ("extra", "options")]
            assert boxes[0] and boxes[1] and boxes[0]["x"] < boxes[1]["x"], "drop is left of keep on every window"
        anna.press("1")
        if not number:
            anna.saved()
    assert anna.problems == []


@pytest.mark.slow
def test_at_the_end_the_page_says_who_has_what_is_left(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("fits-caption", tmp_path, 6))
    ben, anna = desk.visit("ben"), desk.visit("anna")
    while anna.task:
        anna.press("1")
    anna.saved()
    assert anna.page.inner_text("#title") == "Nothing is left for you now. Thank you!"
    assert anna.page.inner_text("#pace") == "2 of 6"
    assert "4 tasks are with ben now" in anna.page.inner_text("#statement")
    while ben.task:
        ben.press("2")
    ben.saved()
    anna.page.click("text=Look for more tasks")
    anna.page.wait_for_function(f"() => document.getElementById('title').textContent === '{END}'")
    assert anna.page.inner_text("#pace") == "2 of 2"


@pytest.mark.slow
def test_a_small_or_slanted_movement_and_a_pinch_answer_nothing(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("fits-caption", tmp_path, 2))
    anna = desk.visit(**PHONE)
    before = anna.task
    for move in ((30, 0), (90, 80), (0, 150)):
        swipe(anna, *move)
    session = anna.context.new_cdp_session(anna.page)
    for kind, spread in (("touchStart", 40), ("touchMove", 190)):
        points = [{"x": 195 - spread // 2, "y": 460, "id": 0}, {"x": 195 + spread // 2, "y": 460, "id": 1}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    anna.page.tap("#undo", force=True)  # whatever the movements did is done by now
    assert (anna.task, desk.answers()) == (before, [])


@pytest.mark.slow
def test_zoom_shows_the_images_one_after_the_other_at_one_place(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("best-image", tmp_path, 2))
    anna = desk.visit()
    page, zoomed = anna.page, anna.page.locator("#zoomed")
    images = [one.get_attribute("src") for one in page.locator("#options img").all()]
    seen = []
    for key in ("z", "z", "ArrowRight", "ArrowLeft", "z", "z", "z"):
        page.keyboard.press(key)
        seen.append(images.index(zoomed.get_attribute("src")))
    assert seen == [0, 1, 2, 1, 2, 3, 0]
    box = zoomed.bounding_box()
    assert box is not None and box["width"] > 1200 and box["height"] > 780
    page.keyboard.press("Escape")
    assert not zoomed.is_visible()
    page.locator("#options .zoomer >> nth=2").click()
    assert images.index(zoomed.get_attribute("src")) == 2
    anna.press("2")  # an answer needs no way back
    assert not zoomed.is_visible()
    anna.saved()
    [answer] = desk.answers()
    assert answer.position == 1


@pytest.mark.slow
def test_one_press_is_one_answer(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("fits-caption", tmp_path, 6))
    anna = desk.visit()
    anna.press("1", "1", "1")  # faster than anyone reads
    anna.page.keyboard.down("2")
    for _ in range(5):
        anna.page.keyboard.down("2")  # held: the key repeats
    anna.page.keyboard.up("2")
    anna.ready()
    anna.page.keyboard.press("Control+1")
    anna.page.keyboard.press("7")
    anna.saved()
    assert [one.position for one in desk.answers()] == [0, 1]


@pytest.mark.slow
def test_help_and_single_keys_that_are_switched_off(open_desk: Open, tmp_path: Path) -> None:
    anna = open_desk(of("fits-caption", tmp_path, 3)).visit()
    before = anna.task
    anna.page.keyboard.press("?")
    anna.page.wait_for_selector("#help[open]")
    anna.page.keyboard.press("1")
    anna.page.uncheck("#single")
    anna.page.keyboard.press("Escape")
    anna.page.keyboard.press("1")
    assert anna.task == before
    anna.reload()
    anna.page.keyboard.press("1")
    assert anna.task == before
    anna.leaves(lambda: anna.page.locator("#options .choose >> nth=0").click())
    assert anna.done == 1


@pytest.mark.slow
def test_two_annotators_at_once(open_desk: Open, tmp_path: Path) -> None:
    desk = open_desk(of("fits-caption", tmp_path, 8))
    anna, ben = desk.visit("anna"), desk.visit("ben", **PHONE)
    for number in range(8):
        who, key = ((anna, "1"), (ben, "2"))[number % 2]
        if who.task:
            who.press(key)
    for who in (anna, ben):
        if who.task:
            who.leaves(lambda who=who: [who.page.keyboard.press("1")])
        who.saved()
    answers = desk.answers()
    assert {one.annotator for one in answers} == {"anna", "ben"}
    assert len({one.task for one in answers}) == len(answers) == 8, "one answer a task is enough"
    assert anna.problems == ben.problems == []


@pytest.mark.slow
def test_a_link_of_another_person_on_another_site_takes_nobodys_place(open_desk: Open, tmp_path: Path) -> None:
    """A browser sends no strict cookie with a link of another site: the page cannot see then who works here."""
    desk = open_desk(of("fits-caption", tmp_path, 3))
    anna = desk.visit("anna")
    anna.press("1")
    anna.saved()
    anna.page.goto(f"data:text/html,<a id=go href='{desk.link('ben')}'>a prize</a>")
    anna.page.click("#go")
    anna.page.wait_for_selector("h1:has-text('Who are you?')")
    assert findings(anna.page) == []
    anna.page.click("button:has-text('Go on as anna')")
    anna.page.wait_for_selector("#task[data-open]")
    assert anna.page.get_attribute("meta[name=annotator]", "content") == "anna"
    anna.press("1")
    anna.saved()
    assert [one.annotator for one in desk.answers()] == ["anna", "anna"]
    assert anna.problems == []
