"""BiVLC's survey, clicked through: two participants of 25 instances each, on a desktop and on a phone."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import twinset
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from tests.review.browser.conftest import DESKTOP, PHONE, Visitor, serving
from twinset.contracts.errors import DecisionsMissing
from twinset.review.access import Access
from twinset.review.app import make_app
from twinset.review.opening import open_desk

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
