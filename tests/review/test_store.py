"""Answers in SQLite: once each, on the disk before anything else, taken back but never lost.

As files they come back as they were, and a file with a wrong row changes nothing. Images are shown without marks.
"""

import csv
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from tests.review.asked import SHAPES, candidate, painted_desk, stage_of
from twinset.contracts.errors import WrongUse
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.desk import ReviewDesk
from twinset.review.exchange import SUFFIXES, Imported, import_answers, write_answers
from twinset.review.neutral_images import in_one_form
from twinset.review.store import AnsweredOtherwise, AnswerStore
from twinset.shards.media.decode import UnreadableImage

FIRST = Answer(
    stage="s", task="s-a", binding="b", annotator="anna", answer="0", shown=("1", "0"), position=1, at="2020-01-01"
)
SECOND = replace(FIRST, task="s-b")
ASKED = {("s", "s-a", "b"), ("s", "s-b", "b")}


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "_review" / "answers.sqlite")


def test_a_repeated_answer_is_one_row_and_another_one_needs_an_undo_first(store: AnswerStore) -> None:
    assert store.save(FIRST)
    assert not store.save(replace(FIRST, seconds=9.0))
    assert read_answers(store.path, "s") == [FIRST]
    with pytest.raises(AnsweredOtherwise, match="undo that first"):
        store.save_all([SECOND, replace(FIRST, answer="1")])
    assert read_answers(store.path, "s") == [FIRST], "all are stored or none"
    assert store.undo("anna", ASKED) == FIRST
    assert store.save_all([SECOND, replace(FIRST, answer="1")]) == 2


def test_undo_takes_the_last_answer_that_is_still_asked_and_keeps_it_in_the_file(store: AnswerStore) -> None:
    ben, stale = replace(SECOND, annotator="ben"), replace(FIRST, binding="stale")
    store.save_all([FIRST, SECOND, ben, stale])
    again = AnswerStore(store.path)  # as of another process, or after a restart
    assert [again.undo("anna", ASKED) for _ in range(3)] == [SECOND, FIRST, None]
    assert store.answers() == {("s", "s-b", "b"): {"ben": ben}, ("s", "s-a", "stale"): {"anna": stale}}
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT task, answer FROM undone").fetchall() == [("s-b", "0"), ("s-a", "0")]


def test_an_answer_is_on_the_disk_when_saving_returns_and_its_lease_is_gone(store: AnswerStore) -> None:
    names = ("journal_mode", "synchronous")
    assert [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == ["wal", 2]
    store.lease("anna", dict.fromkeys(ASKED, 20.0))
    store.save(FIRST)
    assert AnswerStore(store.path).leases(10.0) == {("s", "s-b", "b"): {"anna": 20.0}}


def desk_of(out: Path, shape: str, **changes: Any) -> ReviewDesk:
    return painted_desk(out, [stage_of("s", [candidate("s", shape, n, **changes) for n in range(6)], out)])


def stored(desk: ReviewDesk) -> list[Answer]:
    return read_answers(desk.store.path, "s")


def written(path: Path, *rows: dict[str, str]) -> Path:
    """Rows as a CSV file with the columns of all."""
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, [*dict.fromkeys(name for row in rows for name in row)])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_answers_come_back_as_they_were(tmp_path: Path, shape: str, suffix: str) -> None:
    before, after, path = desk_of(tmp_path, shape), desk_of(tmp_path / "other", shape), tmp_path / f"answers{suffix}"
    for number, task in enumerate(before.tasks.now().tasks[:5]):
        option = ("o0", "x0" if task.question.layout(task.candidate).extra else "o1")[number % 2]
        before.answer("anna", task.id, option, "bad-image" if (shape, option) == ("keep-pair", "x0") else "", 1.5)
        before.answer("ben", task.id, "o0", "", 2.0)
    assert write_answers(path, before) == (6, 10)
    counts = before.stage_counts(*before.tasks.now().stages.values())
    blank = (counts.tasks - counts.decided) * (suffix == ".csv")  # a row for each task that lacks an answer
    assert import_answers(path, after) == Imported(10, 0, 0, blank)
    assert stored(after) == stored(before)
    assert import_answers(path, after) == Imported(0, 10, 0, blank)


def test_a_csv_lists_what_nobody_answered_and_can_be_filled_in(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, "keep-pair"), tmp_path / "tasks.csv"
    stage, task, _ = desk.tasks.now().tasks[0].asked
    earlier = Answer(stage=stage, task=task, binding="0" * 64, annotator="ben", answer="keep")  # of another image
    desk.store.save(earlier)
    assert write_answers(path, desk) == (6, 0)
    rows, tasks = list(csv.DictReader(path.open(encoding="utf-8", newline=""))), desk.tasks.now().tasks
    assert [(row["task"], row["binding"], row["answer"]) for row in rows] == [(*task.asked[1:], "") for task in tasks]
    assert [json.loads(row["texts"]) for row in rows] == [[*task.candidate.texts] for task in tasks]
    rows[2] |= {"answer": "drop", "reason": "fits-both"}
    rows[5] |= {"answer": "keep", "annotator": "ben"}
    rows[3] |= {"answer": "keep", "stage": "other"}
    assert import_answers(written(path, *rows), desk, "anna") == Imported(2, 0, 1, unanswered=3)
    filled = {(tasks[2].asked[1], "anna", "drop", "fits-both"), (tasks[5].asked[1], "ben", "keep", "")}
    assert {(new.task, new.annotator, new.answer, new.reason) for new in stored(desk) if new != earlier} == filled
    with pytest.raises(WrongUse, match="--annotator '<b>': write letters"):
        import_answers(path, desk, "<b>")


def test_an_untrusted_answer_is_exported_as_no_formula(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, "best-image"), tmp_path / "answers.csv"
    stage, task, binding = desk.tasks.now().tasks[0].asked
    desk.store.save(Answer(stage=stage, task=task, binding=binding, annotator="eve", answer="=A1", reason="@SUM(1)"))
    write_answers(path, desk)
    row = next(csv.DictReader(path.open(encoding="utf-8", newline="")))
    assert (row["answer"], row["reason"], row["position"]) == ("'=A1", "'@SUM(1)", "-1")


def test_every_row_is_checked_and_nothing_is_half_imported(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, "keep-pair")
    first, second, third = (task.candidate.key for task in desk.tasks.now().tasks[:3])
    desk.answer("anna", desk.tasks.now().tasks[2].id, "o0", "", 1.0)
    wrong = {
        "twice in the file": {"task": first, "answer": "drop"},
        "before; undo that": {"task": third, "answer": "drop", "annotator": "anna"},
        "is not one of keep, drop": {"answer": "perhaps"},
        "showed something else": {"binding": "0" * 64},
        "no annotator": {"annotator": ""},
        "shown holds something else": {"shown": '["maybe"]'},
        "a reason and no answer": {"answer": "", "reason": "fits-both"},
        "seconds": {"seconds": "-1"},
    }
    rows = [{"task": second, "answer": "keep", "annotator": "ben", **changes} for changes in wrong.values()]
    unknown = [{"task": f"s-{n}", "answer": "keep", "annotator": "ben"} for n in range(30)]
    path = written(tmp_path / "a.csv", {"task": first, "answer": "keep", "annotator": "ben"}, *rows, *unknown)
    with pytest.raises(WrongUse) as refused:
        import_answers(path, desk)
    head, *problems = str(refused.value).splitlines()
    assert head == f"{path}: nothing was imported; correct or remove these rows, 38 in all:"
    for number, (reason, problem) in enumerate(zip(wrong, problems, strict=False), 3):
        assert problem.startswith(f"line {number}: ") and reason in problem
    assert len(problems) == 21 and problems[-1] == "and 18 more"
    assert [answer.task for answer in stored(desk)] == [third]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"no", "cannot be read"),
        ("a.csv", b"task,answer,answer\nx,keep,drop\n", "two columns have one name"),
        ("a.csv", b"key;answer\n", "no column 'answer'; the first line names columns, answer and task at least, with"),
        ("a.txt", b"", "its form is not known"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WrongUse, match=words):
        import_answers(tmp_path / name, desk_of(tmp_path, "match"))


DRAWN = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8))
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
MARK = b"made by a generator"


def encoded(form: str, orientation: int = 1, size: tuple[int, int] = (40, 24)) -> bytes:
    """An image with marks in all that a form can hold beside it."""
    exif, text = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = orientation, MARK.decode()  # ImageDescription
    text.add_text("parameters", MARK.decode())
    more: dict[str, Any] = {
        "JPEG": {"comment": MARK, "xmp": MARK},
        "PNG": {"pnginfo": text},
        "WEBP": {"xmp": MARK, "lossless": True},
    }
    content = io.BytesIO()
    DRAWN.resize(size).save(content, form, exif=exif, icc_profile=ICC, **more[form])
    return content.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_pixels_colours_and_orientation_stay_and_nothing_else(form: str) -> None:
    before = encoded(form, orientation=6)
    [after] = in_one_form([before])
    assert MARK in before and MARK not in after
    with Image.open(io.BytesIO(before)) as first, Image.open(io.BytesIO(after)) as second:
        assert not {*second.info} & {"exif", "icc_profile", "comment", "xmp", "parameters"}
        off = np.abs(np.asarray(ImageOps.exif_transpose(first)).astype(int) - np.asarray(second))
    assert (second.format, off.mean() < 8) == ("JPEG", True)  # of noise, at the quality of datasets


def test_a_photo_and_a_generated_image_come_in_one_form() -> None:
    served = in_one_form([encoded("PNG", size=(64, 48)), encoded("JPEG", 6, size=(30, 40))])
    images = [Image.open(io.BytesIO(content)) for content in served]
    assert [(image.format, image.size) for image in images] == [("JPEG", (40, 30)), ("JPEG", (40, 30))]
    assert images[0].quantization == images[1].quantization, "one quality"  # type: ignore[attr-defined]
    with pytest.raises(UnreadableImage):
        in_one_form([encoded("PNG"), encoded("JPEG")[:-200]])
