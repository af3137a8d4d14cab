import copy
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.generators.galleries.annotated import save, scenes
from tests.generators.galleries.annotated_invariants import ObjectRules
from tests.generators.galleries.invariants import check
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.object_tasks import ObjectDrafts, ObjectTask
from twinset.generators.galleries.panoptic import Scenes, read_scenes

TASKS: tuple[ObjectTask, ...] = ("focus-object", "change-object")


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return read_scenes(save(scenes(), tmp_path_factory.mktemp("coco") / "panoptic.json"), LeftOut())


def entries(annotated: Scenes, task: ObjectTask, count: int | None = None, seed: int = 1) -> list[dict[str, Any]]:
    return [draft.entry for draft in islice(ObjectDrafts(annotated, task, seed, "objects", LeftOut()), count)]


@pytest.mark.parametrize("task", TASKS)
def test_every_rule_holds_of_all_that_can_be_made(annotated: Scenes, task: ObjectTask) -> None:
    made = entries(annotated, task)
    assert len(made) > 200
    assert check(made, task, ObjectRules(annotated), conditions=annotated.names) == []


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_makes_the_same_and_more_keeps_the_first(annotated: Scenes, task: ObjectTask) -> None:
    whole = entries(annotated, task)
    assert entries(annotated, task, 40) == whole[:40]
    assert entries(annotated, task, 40, seed=2) != whole[:40]


@pytest.mark.parametrize("task", TASKS)
def test_references_take_turns_with_another_target_each_time(annotated: Scenes, task: ObjectTask) -> None:
    made = entries(annotated, task, 150)
    references = [entry["reference"]["val_image_id"] for entry in made]
    turns = Counter[int]()
    for number, reference in enumerate(references):
        turns[reference] += 1
        if turns[reference] == 2:
            first_round = set(references[:number])
            break
    assert set(references) == first_round
    assert len({(entry["reference"]["val_image_id"], entry["target"]["val_image_id"]) for entry in made}) == len(made)


def test_conditions_of_a_reference_are_used_alike(annotated: Scenes) -> None:
    used = Counter((e["reference"]["val_image_id"], e["condition"]) for e in entries(annotated, "focus-object", 300))
    assert max(used.values()) <= 3  # of about ten, by some eight targets


def test_near_distractors_are_the_most_similar_without_the_condition(annotated: Scenes) -> None:
    rows = dict(zip(annotated.ids.tolist(), annotated.present, strict=True))
    for entry in entries(annotated, "focus-object", 50):
        reference = rows[entry["reference"]["val_image_id"]]
        near = [int((rows[image["val_image_id"]] & reference).sum()) for image in entry["gallery"][:9]]
        assert near == sorted(near, reverse=True)
        condition = annotated.names.index(entry["condition"])
        all_near = [
            int((row & reference).sum())
            for row in rows.values()
            if not row[condition] and (row & reference).sum() >= 6 and (reference & ~row).any()
        ]
        assert near == sorted(all_near, reverse=True)[:9]


def test_what_cannot_be_a_reference_is_counted(annotated: Scenes, tmp_path: Path) -> None:
    templates = ObjectDrafts(annotated, "focus-object", 1, "objects", LeftOut())
    list(templates)
    few = int((annotated.present.sum(axis=1) < 10).sum())
    assert templates.excluded["reference-few-categories"] == few > 80
    lonely = read_scenes(save(scenes(rich=12, simple=0, seed=3), tmp_path / "few.json"), LeftOut())  # no nine near ones
    templates = ObjectDrafts(lonely, "focus-object", 1, "objects", LeftOut())
    assert list(templates) == []
    assert templates.excluded["reference-without-gallery"] == int((lonely.present.sum(axis=1) >= 10).sum()) > 0


Change = Callable[[dict[str, Any], Scenes], object]


def swap(first: int, second: int) -> Change:
    """Two images of the gallery trade places."""

    def change(entry: dict[str, Any], _: Scenes) -> None:
        gallery = entry["gallery"]
        gallery[first], gallery[second] = gallery[second], gallery[first]

    return change


def replace(role: str, kind: str) -> Change:
    """Another image of a kind takes a role (the last distractor's, for ``gallery``)."""

    def change(entry: dict[str, Any], annotated: Scenes) -> None:
        image = other_image(entry, annotated, kind)
        if role == "gallery":
            entry["gallery"][-1] = image
        else:
            entry[role] = image

    return change


def other_image(entry: dict[str, Any], annotated: Scenes, kind: str) -> dict[str, int]:
    """An image that is not in the template: of ``few`` or ``many`` categories, with or without the condition."""
    condition = annotated.names.index(entry["condition"])
    many, shows = kind.split()[0] == "many", kind.split()[1] == "with"
    used = {image["val_image_id"] for image in (entry["reference"], entry["target"], *entry["gallery"])}
    for image, row in zip(annotated.ids.tolist(), annotated.present, strict=True):
        enough = row.sum() >= 10 if many else row.sum() <= 3
        if enough and row[condition] == shows and image not in used:
            return {"val_image_id": image}
    raise AssertionError(f"no such image: {kind}")


def same_as(role: str) -> Change:
    return lambda entry, _: entry["gallery"].__setitem__(-1, entry[role])


BREAKS: list[tuple[str, Change]] = [
    ("shape", lambda entry, _: entry.pop("condition")),
    ("shape", lambda entry, _: entry["target"].update(val_image_id="5")),
    ("shape", lambda entry, _: entry["reference"].update(val_image_id=True)),
    ("gallery-size", lambda entry, _: entry["gallery"].pop()),
    ("reference-again", same_as("reference")),
    ("target-again", same_as("target")),
    ("distractor-again", lambda entry, _: entry["gallery"].__setitem__(0, entry["gallery"][1])),
    ("condition", lambda entry, _: entry.update(condition="wall-other")),
    ("condition", lambda entry, _: entry.update(condition="unicorn")),
    ("unknown-image", lambda entry, _: entry["target"].update(val_image_id=1)),
    ("few-categories", replace("reference", "few with")),
    ("target-not-close", replace("target", "few with")),
    ("target-condition", replace("target", "many without")),
    ("near-not-close", swap(0, 12)),
    ("near-condition", swap(0, 12)),
    ("far-not-far", swap(0, 12)),
    ("far-condition", swap(0, 12)),
    ("far-condition", replace("gallery", "few without")),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_each_rule_can_fail(annotated: Scenes, task: ObjectTask, number: int) -> None:
    rule, break_it = BREAKS[number]
    made = copy.deepcopy(entries(annotated, task, 3))
    break_it(made[1], annotated)
    problems = check(made, task, ObjectRules(annotated), conditions=annotated.names)
    assert (1, rule) in {(problem.template, problem.rule) for problem in problems}
    assert {problem.template for problem in problems} == {1}


@pytest.mark.parametrize(("task", "kind"), [("focus-object", "many without"), ("change-object", "many with")])
def test_the_reference_shows_the_condition_in_focus_only(annotated: Scenes, task: ObjectTask, kind: str) -> None:
    made = copy.deepcopy(entries(annotated, task, 3))
    made[0]["reference"] = other_image(made[0], annotated, kind)
    rules = {problem.rule for problem in check(made, task, ObjectRules(annotated))}
    assert "reference-condition" in rules


def test_a_less_similar_target_first_is_seen(annotated: Scenes) -> None:
    made = entries(annotated, "change-object")
    first = made[0]["reference"]
    of_reference = [entry for entry in made if entry["reference"] == first]
    rules = {p.rule for p in check(of_reference[::-1], "change-object", ObjectRules(annotated))}
    assert rules == {"target-order"}


@pytest.mark.parametrize("task", TASKS)
def test_a_template_again_and_a_contradiction_are_seen_without_annotations(annotated: Scenes, task: ObjectTask) -> None:
    made = copy.deepcopy(entries(annotated, task, 2))
    assert check(made, task) == []
    assert [(p.template, p.rule) for p in check([*made, made[0]], task)] == [(2, "template-again")]
    twin = copy.deepcopy(made[0])
    twin["target"] = twin["gallery"].pop(0)  # near, so without the condition
    twin["gallery"].insert(0, other_image(made[0], annotated, "many without"))
    assert {p.rule for p in check([made[0], twin], task)} == {"contradiction"}
