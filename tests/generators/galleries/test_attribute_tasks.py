import copy
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.generators.galleries.annotated import TAXONOMY, labelled, save
from tests.generators.galleries.annotated_invariants import AttributeRules
from tests.generators.galleries.invariants import Problem, check
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.attribute_tasks import AttributeDrafts, AttributeTask
from twinset.generators.galleries.vaw import Instance, read_instances

TASKS: tuple[AttributeTask, ...] = ("focus-attribute", "change-attribute")
Entry = dict[str, Any]


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> list[Instance]:
    path = save(labelled(), tmp_path_factory.mktemp("vaw") / "val.json")
    return read_instances(path, TAXONOMY, LeftOut())


def entries(instances: list[Instance], task: AttributeTask, count: int | None = None, seed: int = 1) -> list[Entry]:
    return [
        draft.entry for draft in islice(AttributeDrafts(instances, TAXONOMY, task, seed, "objects", LeftOut()), count)
    ]


@pytest.fixture(scope="module")
def whole(instances: list[Instance], task: AttributeTask) -> list[Entry]:
    """All templates of a task."""
    return entries(instances, task)


def problems(made: list[Entry], instances: list[Instance], task: AttributeTask) -> list[Problem]:
    conditions = TAXONOMY if task == "focus-attribute" else {name for names in TAXONOMY.values() for name in names}
    return check(made, task, AttributeRules(instances, TAXONOMY), conditions=conditions)


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_every_rule_holds_of_all_that_can_be_made(
    instances: list[Instance], whole: list[Entry], task: AttributeTask
) -> None:
    assert len(whole) > 500
    assert problems(whole, instances, task) == []


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_the_same_seed_makes_the_same_and_more_keeps_the_first(
    instances: list[Instance], whole: list[Entry], task: AttributeTask
) -> None:
    assert entries(instances, task, 40) == whole[:40]
    assert entries(instances, task, 40, seed=2) != whole[:40]


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_types_attributes_and_objects_take_turns(instances: list[Instance], task: AttributeTask) -> None:
    drafts = list(islice(AttributeDrafts(instances, TAXONOMY, task, 1, "objects", LeftOut()), 120))
    types = Counter(draft.facts["attribute_type"] for draft in drafts)
    # No type of no clear category in Focus; in Change none of whose other attributes any object has.
    assert set(types) == set(TAXONOMY) - {"state" if task == "focus-attribute" else "tone"}
    assert max(types.values()) - min(types.values()) <= 2
    sizes = Counter(draft.facts["attribute"] for draft in drafts if draft.facts["attribute_type"] == "size")
    assert max(sizes.values()) - min(sizes.values()) <= 2
    objects = Counter(draft.facts["object"] for draft in drafts if draft.facts["attribute"] == "large")
    assert max(objects.values()) - min(objects.values()) <= 1


def test_types_that_are_no_visual_categories_are_no_conditions(instances: list[Instance]) -> None:
    assert "state" not in {entry["condition"] for entry in entries(instances, "focus-attribute", 200)}
    assert "open" in {entry["condition"] for entry in entries(instances, "change-attribute", 200)}


@pytest.mark.parametrize("task", TASKS, scope="module")
def test_a_reference_without_gallery_is_counted(tmp_path: Path, task: AttributeTask) -> None:
    few = read_instances(save(labelled(400, images=40), tmp_path / "few.json"), TAXONOMY, LeftOut())
    templates = AttributeDrafts(few, TAXONOMY, task, 1, "objects", LeftOut())
    assert problems([draft.entry for draft in templates], few, task) == []
    assert templates.excluded["reference-without-gallery"] > 0


def instance(number: int, name: str, positive: str, negative: str = "", image: int | None = None) -> Instance:
    box = (1.0, 2.0, 3.0, 4.0)
    place = str(number if image is None else image)
    return Instance(str(number), place, box, name, tuple(positive.split()), tuple(negative.split()))


def focus_set(*more: Instance) -> list[Instance]:
    """Exactly one Focus template for each of two references: two red cups, nine that are not."""
    same = [instance(1, "cup", "red", "blue"), instance(2, "cup", "red", "blue")]
    return [*same, *(instance(10 + n, "cup", "green", "red") for n in range(9)), *more]


def test_focus_needs_nine_distractors_that_are_labelled_to_lack_the_attribute() -> None:
    whole = focus_set()
    made = entries(whole, "focus-attribute")
    assert {entry["reference"]["instance_id"] for entry in made} == {"1", "2"}
    unlabelled = [*whole[:-1], instance(18, "cup", "green")]
    assert entries(unlabelled, "focus-attribute") == []
    twice_in_one_image = [*whole[:-1], instance(18, "cup", "green", "red", image=17)]
    assert entries(twice_in_one_image, "focus-attribute") == []
    beside_a_red_cup = [*whole, instance(30, "cup", "red", image=10)]
    assert "30" not in {entry["reference"]["instance_id"] for entry in entries(beside_a_red_cup, "focus-attribute")}


def test_focus_shows_no_distractor_with_another_colour_of_the_reference() -> None:
    whole = [instance(1, "cup", "red green", "blue"), *focus_set()[1:]]  # distractors are green: so is the reference
    assert {entry["reference"]["instance_id"] for entry in entries(whole, "focus-attribute")} == {"2"}


def change_set() -> list[Instance]:
    """One red cup, six that are green and not red, nine red cars."""
    cups = [instance(1, "cup", "red"), *(instance(10 + n, "cup", "green", "red") for n in range(6))]
    return [*cups, *(instance(20 + n, "car", "red") for n in range(9))]


def test_change_needs_other_objects_with_the_attribute_and_the_same_without() -> None:
    made = entries(change_set(), "change-attribute")
    assert {(e["target"]["instance_id"], e["condition"]) for e in made} == {("1", "red")}
    assert sorted(e["reference"]["instance_id"] for e in made) == [str(10 + n) for n in range(6)]
    assert problems(made, change_set(), "change-attribute") == []
    for number, replaced in (
        (7, instance(20, "red cups", "red")),
        (7, instance(20, "car", "red", image=1)),
        (1, instance(10, "cup", "green")),
    ):
        fewer = change_set()
        fewer[number] = replaced
        assert entries(fewer, "change-attribute") == []
    both = change_set()
    both[0] = instance(1, "cup", "red green")  # as green as its references
    assert entries(both, "change-attribute") == []


Change = Callable[[Entry, list[Instance]], object]


def at(place: str, number: int, **wanted: Any) -> Change:
    """Another object takes a place in the template: the first in another image that is as wanted."""

    def change(entry: Entry, instances: list[Instance]) -> None:
        by_id = {one.id: one for one in instances}
        reference = by_id[entry["reference"]["instance_id"]]
        used = {image["image_id"] for image in (entry["reference"], entry["target"], *entry["gallery"])}
        for one in instances:
            same = one.object_name == reference.object_name
            if one.image not in used and same == wanted["same"] and wanted["by"](one, reference, entry["condition"]):
                found = {"image_id": one.image, "instance_bbox": list(one.box), "instance_id": one.id}
                break
        else:
            raise AssertionError("no such instance")
        if place == "gallery":
            entry["gallery"][number] = found
        else:
            entry[place] = found

    return change


def colours(one: Instance) -> set[str]:
    return set(TAXONOMY["color"]) & set(one.positive)


ANY: Change = lambda *_: True  # noqa: E731
FOCUS_BREAKS: list[tuple[str, Change]] = [
    ("shape", lambda entry, _: entry["target"].update(instance_bbox=[1, 2, 3])),
    ("shape", lambda entry, _: entry["gallery"][0].pop("image_id")),
    ("gallery-size", lambda entry, _: entry["gallery"].pop()),
    ("condition", lambda entry, _: entry.update(condition="state")),
    ("reference-again", lambda entry, _: entry["gallery"].__setitem__(0, entry["reference"])),
    ("target-again", lambda entry, _: entry["gallery"].__setitem__(0, entry["target"])),
    ("unknown-instance", lambda entry, _: entry["target"].update(instance_id="1")),
    ("other-object", at("gallery", 0, same=False, by=ANY)),
    ("target-attribute", at("target", 0, same=True, by=lambda one, ref, _: not colours(one) & colours(ref))),
    (
        "not-negative",
        at("gallery", 0, same=True, by=lambda one, ref, _: not colours(one) & colours(ref) & set(one.negative)),
    ),
    ("second-answer", at("gallery", 0, same=True, by=lambda one, ref, _: colours(one) & colours(ref))),
    ("answer-elsewhere", at("gallery", 0, same=True, by=lambda one, ref, _: colours(one) & colours(ref))),
]
CHANGE_BREAKS: list[tuple[str, Change]] = [
    ("other-object", at("target", 0, same=False, by=lambda one, _, name: name in one.positive)),
    ("target-attribute", at("target", 0, same=True, by=lambda one, _, name: name not in one.positive)),
    ("reference-attribute", at("reference", 0, same=True, by=lambda one, _, name: name not in one.negative)),
    ("same-attribute", at("reference", 0, same=True, by=lambda one, _, name: name in one.positive)),
    ("other-attribute", at("gallery", 0, same=False, by=lambda one, _, name: name not in one.positive)),
    ("not-other-object", at("gallery", 0, same=True, by=lambda one, _, name: name in one.positive)),
    ("other-object", at("gallery", 13, same=False, by=lambda one, _, name: name in one.negative)),
    ("not-negative", at("gallery", 13, same=True, by=lambda one, _, name: name not in one.negative)),
    ("answer-elsewhere", at("gallery", 13, same=True, by=lambda one, _, name: name in one.positive)),
    ("distractor-again", lambda entry, _: entry["gallery"].__setitem__(0, entry["gallery"][1])),
]
BREAKS = [("focus-attribute", *each) for each in FOCUS_BREAKS] + [("change-attribute", *each) for each in CHANGE_BREAKS]


@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_each_rule_can_fail(instances: list[Instance], number: int) -> None:
    task, rule, break_it = BREAKS[number]
    of_colour = lambda e: e["condition"] == "color" or e["condition"] in TAXONOMY["color"]  # noqa: E731
    made = copy.deepcopy([entry for entry in entries(instances, task, 100) if of_colour(entry)][:3])
    break_it(made[1], instances)
    found = problems(made, instances, task)
    assert (1, rule) in {(problem.template, problem.rule) for problem in found}
    assert {problem.template for problem in found} == {1}


def test_objects_are_found_by_box_where_a_file_has_no_instance_ids(instances: list[Instance]) -> None:
    made = entries(instances, "focus-attribute", 5)
    for entry in made:
        for image in (entry["reference"], entry["target"], *entry["gallery"]):
            del image["instance_id"]
    assert problems(made, instances, "focus-attribute") == []
