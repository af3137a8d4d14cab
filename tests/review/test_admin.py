"""The admin's page: who did how much, what they disagree on, and one click that settles it."""

import io
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from tests.review.asked import SECRET, Painted, candidate, painted_app, stage_of
from twinset.generators.decisions.agreement import decided
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.access import Access, Person
from twinset.review.store import AnswerStore

ADMIN = Access(SECRET, []).csrf(Person("admin", "admin"))


@pytest.fixture
def admin(tmp_path: Path) -> TestClient:
    """Two annotators answered 10 tasks each and disagree on the last two, of which one is gold."""
    asked = [candidate("s", "keep-pair", n) for n in range(10)]
    stage = stage_of("s", asked, tmp_path, Painted(overlap=1.0), gold={asked[9].key: "keep"})
    store = AnswerStore(stage.answers)
    for name, last in (("anna", "keep"), ("ben", "drop")):
        for number, task in enumerate(stage.tasks):
            value = last if number > 7 else "keep" if number % 2 else "drop"
            reason = "not-visible" if value == "drop" else ""
            store.save(
                Answer(
                    stage="s", task=task.candidate.key, binding=task.binding, annotator=name, answer=value,
                    reason=reason, seconds=4.0, at="2020-01-01",
                )
            )  # fmt: skip
    store.close()
    app, tokens = painted_app(tmp_path, [stage], ["anna", "ben", "cleo"])
    client = TestClient(app)
    client.get("/admin", params={"token": tokens["admin"]})
    return client


def cells(html: str, first: str) -> list[str]:
    """The cells of the row that begins with a word."""
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL) if f">{first}</th>" in row)
    return re.findall(r"<td>(.*?)</td>", row)


def test_progress_pace_agreement_and_gold_are_shown(admin: TestClient) -> None:
    html = admin.get("/admin").text
    assert cells(html, "s") == ["10", "9", "1", "no"], "a tie on a gold task waits for nobody"
    assert cells(html, "anna") == ["10", "0", "0", "keep-pair 900"]
    assert cells(html, "cleo") == ["0", "1", "0", ""], "gold tasks are everyone's"
    assert cells(html, "anna and ben")[:2] == ["10", "0.615"]
    gold = html[html.index("gold tasks") :]
    assert (cells(gold, "anna")[:2], cells(gold, "ben")[:2]) == (["1", "1"], ["0", "1"])


def test_a_disagreement_is_settled_with_one_click(tmp_path: Path, admin: TestClient) -> None:
    html = admin.get("/admin").text
    assert html.count("<article") == 1
    assert "ben (not-visible)" in html
    assert html.index('value="drop"') < html.index('value="keep"'), "drop is left of keep, as on the page of tasks"
    images = re.findall(r'<img src="(/admin/image/\w+)"', html)
    assert len(images) == 2
    assert admin.get(images[0]).content.startswith(b"\x89PNG")
    task = re.findall(r'name="id" value="(\w+)"', html)[0]
    form = {"csrf": ADMIN, "id": task, "value": "drop"}
    assert admin.post("/admin/adjudicate", data={**form, "csrf": "0"}).status_code == 403
    assert admin.post("/admin/adjudicate", data={**form, "value": "perhaps"}).status_code == 422
    assert admin.post("/admin/adjudicate", data=form).text.count("<article") == 0
    settled = candidate("s", "keep-pair", 8)
    answers = read_answers(tmp_path / "_review" / "answers.sqlite", "s")
    made = decided(settled, [one for one in answers if one.task == settled.key], 2)
    assert made is not None
    assert (made.choice, made.adjudicated, made.votes, made.agreement) == ("drop", True, 2, 0.5)
    assert cells(admin.get("/admin").text, "s") == ["10", "10", "0", "yes"]


def test_answers_are_exported(admin: TestClient) -> None:
    table = pq.read_table(io.BytesIO(admin.get("/admin/export/parquet").content))
    assert (len(table), set(table["annotator"].to_pylist())) == (20, {"anna", "ben"})
    assert admin.get("/admin/export/prolific").text.splitlines()[0].startswith("stage,task_id,binding,participant_id")
    assert admin.get("/admin/export/label-studio").status_code == 404


def test_an_annotator_is_not_let_in(admin: TestClient) -> None:
    anna = Access(SECRET, ["anna"]).token(Person("anna", "annotator"))
    admin.cookies.clear()
    admin.cookies.set(Access(SECRET, []).cookie(Person("admin", "admin")), anna)
    assert admin.get("/admin").status_code == 403
