"""BiVLC's survey, clicked through: two participants of 25 instances each, and the row of people in the report."""

import json
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import twinset
from tests.evaluation.report.made_scores import save
from tests.generators.human_baseline.asked_pairs import build_pairs, recipe_of
from tests.review.browser.conftest import DESKTOP, PHONE, Visitor, serving
from twinset.cli.main import main
from twinset.contracts.errors import DecisionsMissing
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.report.results import as_json, measured_run
from twinset.review.access import Access
from twinset.review.app import make_app
from twinset.review.opening import open_desk, open_links, study_link
from twinset.review.showing import shown_options

pytestmark = pytest.mark.slow

PEOPLE = {"5f3c0123456789abcdef0123": DESKTOP, "5f3c0123456789abcdef0124": PHONE}
INSTANCES = 25
WRONG = 12  # of a hundred answers


def errs(key: str) -> bool:
    """Whether whoever is asked this gets it wrong."""
    return zlib.crc32(key.encode()) % 100 < WRONG


def clicked_through(visitor: Visitor, name: str, tasks: Any) -> list[Any]:
    """Click the answer to each task until none is left; the tasks in the order asked."""
    asked = []
    while visitor.task:
        visitor.ready()
        task = tasks.by_id[visitor.task]
        truth = json.loads(task.candidate.identity)[1][-1]
        wanted = str(1 - int(truth)) if errs(task.candidate.key) else truth
        place = [one.value for one in shown_options(task, name)].index(wanted)
        words = visitor.page.inner_text("#title"), visitor.page.inner_text("#guide-words")
        asked.append((task, *words))
        visitor.leaves(lambda at=place: visitor.page.locator("#options button.choose").nth(at).click())  # type: ignore[misc]
    visitor.saved()
    return asked


def test_two_participants_of_25_instances_and_the_row_of_people(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = build_pairs(tmp_path)
    recipe, stage = recipe_of(tmp_path, sample=2 * INSTANCES, protocol="bivlc"), str(out / "_stages/human-baseline")
    with pytest.raises(DecisionsMissing, match="200 of 200 decisions are missing"):
        twinset.build(recipe, str(out), only=["human-baseline"])
    desk = open_desk(str(out))
    assert desk is not None
    access = Access(desk.tasks.secret, ["anna"], links=open_links(str(out)), study="C0DE")
    tasks, asked = desk.tasks.now(), {}
    with ExitStack() as stack:
        base = stack.enter_context(serving(make_app(desk, access, "bivlc")))
        for name, window in PEOPLE.items():
            context = browser.new_context(**window)
            stack.callback(context.close)
            visitor = Visitor(context, study_link(access, base).replace("{{%PROLIFIC_PID%}}", name))
            assert visitor.page.get_attribute("meta[name=annotator]", "content") == name
            asked[name] = clicked_through(visitor, name, tasks)
            visitor.page.wait_for_selector("text=Your completion code is C0DE")
            complete = "https://app.prolific.com/submissions/complete?cc=C0DE"
            assert visitor.page.get_attribute("#statement a", "href") == complete
            assert visitor.problems == [] and {*visitor.hosts} == {base.partition("//")[2]}
    desk.store.close()

    for found in asked.values():
        assert [title for _, title, _ in found] == (
            ["Which description best represents the image?"] * 50
            + ["Which image best represents the description?"] * 50
        )
        assert "word order" in found[0][2] and "Aesthetic defects" in found[50][2]
        subjects = [task.candidate.subject for task, _, _ in found]
        assert len({*subjects}) == INSTANCES and all(subjects.count(one) == 4 for one in subjects)
    twinset.build(recipe, str(out), only=["human-baseline"])

    # The figures, counted from what was clicked alone.
    right: dict[str, list[bool]] = {}
    for task, _, _ in (one for found in asked.values() for one in found):
        right.setdefault(task.candidate.subject, []).append(not errs(task.candidate.key))
    texts = {subject: all(given[:2]) for subject, given in right.items()}
    images = {subject: all(given[2:]) for subject, given in right.items()}
    whole = [texts[one] and images[one] for one in right]
    expected = [100 * sum(each) / len(right) for each in (texts.values(), images.values(), whole)]
    assert len(right) == 2 * INSTANCES and expected[2] < min(expected[:2]) < 100

    run, data = tmp_path / "run", BuiltDataset(out)
    scores = [
        {"key": one.key, "subset": one.subset, "category": one.category, "group": one.group}
        | {"s00": 0.9, "s01": 0.1, "s10": 0.1, "s11": 0.9}
        for one in data.examples()
    ]
    save(run, "twinset", "clip", scores, MATCHING_SCORES, data_digest=data.digest(), left_out={})
    assert main(["eval", "human", stage, "--out", str(run)]) == 0
    assert "people" in capsys.readouterr().out
    results = as_json(measured_run(run, resamples=20))["benchmarks"]["twinset"]
    assert [results["models"]["people"]["all"][one] for one in ("text", "image", "group")] == pytest.approx(expected)
    assert main(["eval", "report", str(run)]) == 0
    lines = (run / "tables" / "twinset-all.csv").read_text().splitlines()
    assert any(line.startswith("people,") for line in lines) and (run / "report.html").exists()
    report = json.loads((out / "_stages/human-baseline/_meta/decisions.json").read_bytes())
    assert report["answers"] == dict.fromkeys(PEOPLE, 100)
