"""BiVLC's survey, clicked through: two participants of 25 instances each, on a desktop and on a phone."""

import json
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import twinset
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from tests.review.browser.conftest import DESKTOP, PHONE, Visitor, serving
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing
from twinset.review.access import Access
from twinset.review.app import make_app
from twinset.review.opening import open_desk
from twinset.review.showing import shown_options

PEOPLE = {"5f3c0123456789abcdef0123": DESKTOP, "5f3c0123456789abcdef0124": PHONE}
INSTANCES = 25
WRONG = 12  # of a hundred answers


def errs(key: str) -> bool:
    """Whether this task is answered wrongly."""
    return zlib.crc32(key.encode()) % 100 < WRONG


@pytest.mark.slow
def test_two_participants_of_25_instances_and_the_figures_of_people(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = build_pairs(tmp_path)
    recipe, stage = recipe_of(tmp_path, sample=2 * INSTANCES, protocol="bivlc"), str(out / "_stages/human-baseline")
    with pytest.raises(DecisionsMissing, match="200 of 200 decisions are missing"):
        twinset.build(recipe, str(out), only=["human-baseline"])
    desk = open_desk(str(out))
    assert desk is not None
    access, by_id = Access(desk.tasks.secret, ["anna"], study="C0DE"), desk.tasks.now().by_id
    right: dict[str, dict[str, bool]] = {}  # by subject and task
    with serving(make_app(desk, access, "bivlc")) as base:
        for name, window in PEOPLE.items():
            with browser.new_context(**window) as context:
                visitor = Visitor(context, access.study_link(base).replace("{{%PROLIFIC_PID%}}", name))
                words, subjects = [], []
                while visitor.task:
                    visitor.ready()
                    task = by_id[visitor.task]
                    truth = json.loads(task.candidate.identity)[1][-1]
                    value = str(1 - int(truth)) if errs(task.candidate.key) else truth
                    place = [option.value for option in shown_options(task, name)].index(value)
                    words.append(visitor.page.inner_text("#title") + visitor.page.inner_text("#guide-words"))
                    subjects.append(task.candidate.subject)
                    right.setdefault(task.candidate.subject, {})[visitor.task] = not errs(task.candidate.key)
                    button = visitor.page.locator("#options button.choose").nth(place)
                    visitor.leaves(button.click)
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

    # The figures, counted from what was clicked alone: each subject was asked about two texts, then about two images.
    halves = [([*given.values()][:2], [*given.values()][2:]) for given in right.values()]
    shares = [sum(map(all, column)) for column in zip(*halves, strict=True)]
    whole = sum(all(text) and all(image) for text, image in halves)
    capsys.readouterr()
    assert main(["eval", "human", stage, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["all"]
    expected = [100 * count / len(right) for count in (*shares, whole)]
    assert [figures[name] for name in ("text", "image", "group")] == pytest.approx(expected)
