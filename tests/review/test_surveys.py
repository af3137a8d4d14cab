"""Who gets which instances, where each is one annotator's: as many as the protocol says, one block after the other."""

from collections import Counter
from pathlib import Path

import pytest

from tests.review.asked import painted_desk, survey_of
from tests.review.test_queue import Room
from twinset.review.queue import LEASE_SECONDS
from twinset.review.surveys import SURVEY_SECONDS
from twinset.review.tasks import ReviewTask


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
    assert desk.has_enough(stage) == (answers == 100) and [*desk.ties()] == []


def test_the_page_is_told_the_words_of_the_block(tmp_path: Path) -> None:
    desk = painted_desk(tmp_path, [survey_of(tmp_path, 25)])
    tasks = desk.next("anna", 100)
    assert [task["block"] for task in tasks] == ["survey 0"] * 50 + ["survey 1"] * 50
    assert (tasks[0]["part"], tasks[-1]["part"]) == ("part 1 of 2", "part 2 of 2")
    assert tasks[0]["title"] == "Which description best represents the image?"
    assert "word order" in tasks[0]["instructions"][-1]
    assert [one.title for one in desk.guides()] == [tasks[0]["title"], tasks[-1]["title"]]
