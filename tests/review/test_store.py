"""Images are shown with the same pixels, and without what is written beside them.

Answers in SQLite: once each, on the disk before anything else, taken back but never lost.
Who gets which instances, where each is one annotator's: as many as the protocol says, one block after the other.
"""

import io
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from tests.review.asked import Painted, all_kinds, painted_desk, survey_of
from tests.review.test_queue import Room
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.neutral_images import in_one_form
from twinset.review.queue import LEASE_SECONDS
from twinset.review.store import AnsweredOtherwise, AnswerStore
from twinset.review.surveys import SURVEY_SECONDS
from twinset.review.tasks import ReviewTask

DRAWN = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8))
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SECRET = b"made by a generator"


def marked(form: str, orientation: int) -> bytes:
    exif, text = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = orientation, SECRET.decode()  # ImageDescription
    text.add_text("parameters", SECRET.decode())
    more: dict[str, Any] = {
        "JPEG": {"comment": SECRET, "xmp": SECRET},
        "PNG": {"pnginfo": text},
        "WEBP": {"xmp": SECRET, "lossless": True},
    }
    content = io.BytesIO()
    DRAWN.save(content, form, exif=exif, icc_profile=ICC, **more[form])
    return content.getvalue()


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_pixels_colours_and_orientation_stay_and_nothing_else(form: str, orientation: int) -> None:
    before = marked(form, orientation)
    [after] = in_one_form([before])
    assert SECRET in before and SECRET not in after
    with Image.open(io.BytesIO(before)) as first, Image.open(io.BytesIO(after)) as second:
        assert not {*second.info} & {"exif", "icc_profile", "comment", "xmp", "parameters"}
        off = np.abs(np.asarray(ImageOps.exif_transpose(first)).astype(int) - np.asarray(second))
    assert (second.format, off.mean() < 8) == ("JPEG", True)  # of noise, at the quality of datasets


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8", b"\xff\xd8\xff\xe1\0\0", b"\x89PNG\r\n\x1a\n\0", b"RIFF1234WEBP"]
)
def test_a_broken_image_is_left_as_it_is_and_the_others_are_not(content: bytes) -> None:
    whole = marked("JPEG", 6)
    broken, beside = in_one_form([content, whole])
    assert broken == content and SECRET not in beside
    for cut in range(0, 300, 7):
        in_one_form([whole[:cut] + content])


def test_what_people_see_is_unmarked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Painted, "picture", lambda *_: marked("PNG", 1))
    tasks = painted_desk(tmp_path, all_kinds(tmp_path)).tasks
    assert SECRET not in tasks.picture(tasks.now().tasks[0], 0)


FIRST = Answer(
    stage="s", task="s-a", binding="b", annotator="anna", answer="0", shown=("1", "0"), position=1, at="2020-01-01"
)
CHECKOUT = Path(__file__).resolve().parents[2]
ASKED = {("s", "s-a", "b"), ("s", "s-b", "b")}


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "_review" / "answers.sqlite")


def test_a_repeated_answer_is_one_row(store: AnswerStore) -> None:
    assert store.save(FIRST)
    assert not store.save(replace(FIRST, seconds=9.0))
    assert read_answers(store.path, "s") == [FIRST]


def test_another_answer_of_the_same_person_needs_an_undo_first(store: AnswerStore) -> None:
    store.save(FIRST)
    with pytest.raises(AnsweredOtherwise, match="undo that first"):
        store.save(replace(FIRST, answer="1"))
    assert store.undo("anna", ASKED) == FIRST
    assert store.save(replace(FIRST, answer="1"))
    assert store.held()["s", "s-a", "b"]["anna"].answer == "1"


def test_all_answers_of_a_file_are_stored_or_none(store: AnswerStore) -> None:
    store.save(FIRST)
    with pytest.raises(AnsweredOtherwise):
        store.save_all([replace(FIRST, task="s-b"), replace(FIRST, answer="none")])
    assert read_answers(store.path, "s") == [FIRST]
    assert not store.held().get(("s", "s-b", "b"))
    assert store.save_all([FIRST, replace(FIRST, task="s-b")]) == 1


def test_undo_takes_the_last_answer_that_is_still_asked_and_keeps_it_in_the_file(store: AnswerStore) -> None:
    second = replace(FIRST, task="s-b")
    for one in (FIRST, second, replace(FIRST, task="s-b", annotator="ben"), replace(FIRST, binding="stale")):
        store.save(one)
    store.close()
    again = AnswerStore(store.path)  # as after a restart
    assert again.undo("anna", ASKED) == second
    assert again.undo("anna", ASKED) == FIRST
    assert again.undo("anna", ASKED) is None
    assert {(one.annotator, one.binding) for one in read_answers(store.path, "s")} == {("ben", "b"), ("anna", "stale")}
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT task, answer FROM undone").fetchall() == [("s-b", "0"), ("s-a", "0")]


def test_what_another_process_writes_is_seen(store: AnswerStore) -> None:
    assert not store.held().get(("s", "s-a", "b"))
    other = AnswerStore(store.path)
    other.save(FIRST)
    assert store.held()["s", "s-a", "b"] == {"anna": FIRST}
    other.undo("anna", ASKED)
    assert not store.held().get(("s", "s-a", "b"))


def test_an_answer_is_on_the_disk_when_saving_returns(store: AnswerStore) -> None:
    settings = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    with pytest.raises(WrongUse, match=r"answers\.sqlite: not a file of answers"):
        AnswerStore(path)


def test_nothing_is_saved_into_a_file_that_was_taken_away(store: AnswerStore) -> None:
    store.save(FIRST)
    away = store.path.with_name("away.sqlite")
    store.path.rename(away)
    for act in (lambda: store.save(replace(FIRST, task="s-b")), lambda: store.undo("anna", ASKED)):
        with pytest.raises(BuildFailed, match="was moved, removed or replaced while it was open; nothing was saved"):
            act()
    away.rename(store.path)
    assert store.save(replace(FIRST, task="s-b"))


#: Leases and answers tasks in turn, and writes the number of each when the call has returned.
LEASES = """
import sys
from pathlib import Path
from twinset.generators.decisions.answers import Answer
from twinset.review.store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 100_000):
    store.lease([("s", f"s-{number}", "b"), ("s", f"s-{number}-next", "b")], "anna", 2e9, 1e9)
    print("leased", number, flush=True)
    store.save(Answer(stage="s", task=f"s-{number}", binding="b", annotator="anna", answer="0", at="2020-01-01"))
    print("saved", number, flush=True)
"""


def test_a_kill_loses_no_lease_and_no_answer(tmp_path: Path) -> None:
    path, first = tmp_path / "answers.sqlite", 0
    for lines in (1, 4, 13, 30):
        command = [sys.executable, "-c", LEASES, str(path), str(first)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            told = [child.stdout.readline() for _ in range(lines)]
            child.kill()
            told += child.stdout.readlines()
        done = [(what, int(number)) for what, number in (line.split() for line in told if line.endswith("\n"))]
        store = AnswerStore(path)
        for what, number in done:
            task, following = ("s", f"s-{number}", "b"), ("s", f"s-{number}-next", "b")
            assert store.leases()[following] == {"anna": 2e9}
            answered = "anna" in store.held().get(task, {})
            # A lease goes in the transaction that brings its answer.
            assert answered != ("anna" in store.leases().get(task, {})) and (answered or what == "leased")
        store.close()
        first = done[-1][1] + 2
    assert first > 20


def room_of(folder: Path, instances: int, overlap: float = 0.0) -> Room:
    return Room(folder, survey_of(folder, instances, overlap=overlap).tasks)


def instances(tasks: list[ReviewTask]) -> Counter[str]:
    return Counter(task.candidate.subject for task in tasks)


def test_two_annotators_answer_25_instances_each_first_all_about_text(tmp_path: Path) -> None:
    room = room_of(tmp_path, 60)
    done = room.work("anna", "ben")
    for tasks in done.values():
        assert len(tasks) == 100 and {*instances(tasks).values()} == {4} and len(instances(tasks)) == 25
        assert [len(task.candidate.images) for task in tasks] == [1] * 50 + [2] * 50
        for block in (tasks[:50], tasks[50:]):  # the two questions of an instance are apart
            assert len(instances(block[:25])) == len(instances(block[25:])) == 25
    assert not instances(done["anna"]) & instances(done["ben"])
    # In no order of meaning, and another one for each.
    assert [*instances(done["anna"])] != sorted(instances(done["anna"]))
    assert len(room.work("cleo")["cleo"]) == 40  # what is left


def test_progress_counts_the_instances_of_ones_own(tmp_path: Path) -> None:
    room = room_of(tmp_path, 60)
    counts = room.queue.counts(room.tasks, room.store.held(), "anna")
    assert (counts.done, counts.left) == (0, 100)
    for task in room.next("anna", 7):
        room.answer("anna", task)
    counts = room.queue.counts(room.tasks, room.store.held(), "anna")
    assert (counts.done, counts.left) == (7, 93)
    assert room.queue.counts(room.tasks, room.store.held(), "ben").left == 100


def test_whoever_comes_meanwhile_gets_other_instances_and_is_told_of_the_rest(tmp_path: Path) -> None:
    room = room_of(tmp_path, 30)
    assert room.next("anna")
    ben = {task.instance for task in room.next("ben", 200)}
    assert len(ben) == 5
    [held] = room.queue.elsewhere(room.tasks, room.store.held(), "ben")
    assert (held.annotator, held.tasks, held.seconds) == ("anna", 80, SURVEY_SECONDS)
    # A pause that would end the lease of a single task takes nobody's instances away.
    room.clock.now += 2 * LEASE_SECONDS
    assert {task.instance for task in room.next("ben", 200)} == ben


def test_who_leaves_in_the_middle_is_replaced_whole(tmp_path: Path) -> None:
    room = room_of(tmp_path, 25)
    for task in room.next("anna", 60):
        room.answer("anna", task)
    assert room.next("ben") == []
    room.clock.now += SURVEY_SECONDS + 1
    ben = room.work("ben")["ben"]
    whole = sum(count == 4 for count in instances([*(t for t in room.tasks if t.asked in room.store.held())]).values())
    assert whole == 25
    # Ten instances had all four answers of anna's; of the others ben gave all four, not what she had left.
    assert len(ben) == 4 * len(instances(ben)) and len(instances(ben)) == 25 - finished(room, "anna")
    assert room.next("anna") == []


def finished(room: Room, annotator: str) -> int:
    held = room.store.held()
    return sum(
        count == 4 for count in instances([t for t in room.tasks if annotator in held.get(t.asked, {})]).values()
    )


def test_who_comes_back_goes_on_where_nobody_took_over(tmp_path: Path) -> None:
    room = room_of(tmp_path, 60)
    first = room.next("anna", 30)
    for task in first:
        room.answer("anna", task)
    room.clock.now += 100 * SURVEY_SECONDS
    rest = room.work("anna")["anna"]
    assert len(rest) == 70 and {*instances([*first, *rest]).values()} == {4}


def test_overlap_is_of_whole_instances(tmp_path: Path) -> None:
    room = room_of(tmp_path, 40, overlap=0.5)
    done = room.work("anna", "ben", "cleo")
    both = Counter(one for tasks in done.values() for one in instances(tasks))
    assert {*both.values()} == {1, 2}
    for tasks in done.values():
        assert {*instances(tasks).values()} == {4}


def test_a_tie_is_asked_about_in_a_whole_instance(tmp_path: Path) -> None:
    room = room_of(tmp_path, 2, overlap=1.0)
    for name, value in (("anna", "0"), ("ben", "1")):
        for task in room.tasks:
            room.answer(name, task, value if task.candidate.subject == "subject-0" else "0")
    assert instances(room.next("cleo", 99)) == {"subject-0": 4}
    assert room.next("dora", 99) == [] == room.next("anna", 99)


@pytest.mark.parametrize("answers", [100, 60])
def test_only_whole_instances_are_decided(tmp_path: Path, answers: int) -> None:
    stage = survey_of(tmp_path, 25)
    desk = painted_desk(tmp_path, [stage])
    for _ in range(answers):
        [task] = desk.next("anna", 1)
        desk.answer("anna", task["id"], "o0", "", 1.0)
    answered = Counter(one.candidate.subject for one in stage.tasks if desk.answers_to(one))
    whole = [subject for subject, count in answered.items() if count == 4]
    assert desk.stage_counts(stage).decided == 4 * len(whole)
    assert desk.is_decided(stage) == (answers == 100) and desk.stage_counts(stage).tied == 0


def test_the_page_is_told_the_words_of_the_block(tmp_path: Path) -> None:
    desk = painted_desk(tmp_path, [survey_of(tmp_path, 25)])
    tasks = desk.next("anna", 100)
    assert [task["block"] for task in tasks] == ["survey 0"] * 50 + ["survey 1"] * 50
    assert (tasks[0]["part"], tasks[-1]["part"]) == ("part 1 of 2", "part 2 of 2")
    assert tasks[0]["title"] == "Which description best represents the image?"
    assert "word order" in tasks[0]["instructions"][-1]
    assert [one.title for one in desk.guides()] == [tasks[0]["title"], tasks[-1]["title"]]
