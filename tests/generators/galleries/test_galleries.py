from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.galleries.annotated import ONE_PERCENT, TAXONOMY, labelled, save, scenes
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.drafts import Task
from twinset.generators.galleries.object_tasks import ChangeObject, FocusObject, ObjectDrafts
from twinset.generators.galleries.panoptic import Scenes, condition_name, read_scenes
from twinset.generators.galleries.vaw import Box, Crops, OutsideImage, crop, read_instances, read_taxonomy

OBJECT_TASKS: dict[str, type[ObjectDrafts]] = {"focus-object": FocusObject, "change-object": ChangeObject}
TASKS: tuple[Task, ...] = ("focus-object", "change-object")


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return read_scenes(save(scenes(), tmp_path_factory.mktemp("coco") / "panoptic.json"), LeftOut())


def entries(annotated: Scenes, task: Task, count: int) -> list[dict[str, Any]]:
    return [draft.entry for draft in islice(OBJECT_TASKS[task](annotated, 1, "objects", LeftOut()), count)]


@pytest.mark.parametrize("task", TASKS)
def test_references_take_turns_with_another_target_each_time(annotated: Scenes, task: Task) -> None:
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
    templates = FocusObject(annotated, 1, "objects", LeftOut())
    list(templates)
    few = int((annotated.present.sum(axis=1) < 10).sum())
    assert templates.excluded["reference-few-categories"] == few > 80
    lonely = read_scenes(save(scenes(rich=12, simple=0, seed=3), tmp_path / "few.json"), LeftOut())  # no nine near ones
    templates = FocusObject(lonely, 1, "objects", LeftOut())
    assert list(templates) == []
    assert templates.excluded["reference-without-gallery"] == int((lonely.present.sum(axis=1) >= 10).sum()) > 0


def test_a_category_is_present_above_one_per_cent_in_whatever_order_the_file_is(tmp_path: Path) -> None:
    whole = scenes(rich=20, simple=10)
    names = {category["id"]: condition_name(category["name"]) for category in whole["categories"]}
    shown = {}
    for annotation in whole["annotations"]:
        pixels = Counter[str]()  # all segments of a category count together
        for segment in annotation["segments_info"]:
            pixels[names[segment["category_id"]]] += segment["area"]
        shown[annotation["image_id"]] = {name for name, count in pixels.items() if count > ONE_PERCENT}
    read = read_scenes(save(whole, tmp_path / "panoptic.json"), LeftOut())
    assert read.ids.tolist() == sorted(shown)
    assert read.files[0] == f"{read.ids[0]:012d}.jpg"
    for image, row in zip(read.ids.tolist(), read.present, strict=True):
        assert {name for name, present in zip(read.names, row, strict=True) if present} == shown[image]
    turned = {key: list(reversed(value)) for key, value in whole.items()}
    other = read_scenes(save(turned, tmp_path / "turned.json"), LeftOut())
    assert (read.ids.tolist(), read.files, read.names) == (other.ids.tolist(), other.files, other.names)
    assert np.array_equal(read.present, other.present)


def test_conditions_are_said_as_in_the_published_files() -> None:
    said = {
        "wall-other-merged": "wall",
        "door-stuff": "door",
        "floor-wood": "wood floor",
        "window-blind": "window blind",
        "dining table": "dining table",
    }
    assert {category: condition_name(category) for category in said} == said


SEGMENT = "annotations", 1, "segments_info", 0


@pytest.mark.parametrize(
    ("place", "value"), [((), []), (("categories", 0, "name"), "-stuff"), (("images",), ["5.jpg"])]
)
def test_a_file_of_another_structure_is_refused(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    path = save(_with(scenes(rich=3, simple=0), place, value), tmp_path / "wrong.json")
    with pytest.raises(WrongUse, match=r"wrong\.json: .*must be a COCO Panoptic file"):
        read_scenes(path, LeftOut())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("images", 1, "file_name"), "../5.jpg"),
        (("images", 1, "width"), 0),
        (("annotations", 1, "image_id"), 3),
        ((*SEGMENT, "category_id"), 2),
        ((*SEGMENT, "area"), 1201),
    ],
)
def test_entries_that_are_not_in_the_format_are_left_out_with_their_place(
    tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    whole = scenes(rich=3, simple=0)
    ids = [annotation["image_id"] for annotation in whole["annotations"]]
    excluded = LeftOut()
    read = read_scenes(save(_with(whole, place, value), tmp_path / "broken.json"), excluded)
    assert len(read.ids) == 2 and set(read.ids.tolist()) < set(ids)
    (_, first), *_ = excluded.examples
    assert first.startswith(f"broken.json {place[0]}[1] ")
    # The annotation of an image that is left out goes with it.
    assert sum(excluded.values()) == (2 if place[0] == "images" else 1)


def _with(whole: Any, place: tuple[Any, ...], value: Any) -> Any:
    """``whole`` with another value at a place."""
    if not place:
        return value
    whole[place[0]] = _with(whole[place[0]], place[1:], value)
    return whole


WIDTH, HEIGHT = 90, 60
PIXELS = np.random.default_rng(0).integers(1, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)  # no black but the padding


@pytest.mark.parametrize("how", ["published", "corrected"])
def test_crops_are_what_pillow_cuts_out(how: Crops) -> None:
    """Published, as the released evaluation does: 0.7 to the left and the top, the rest measured from the new corner;
    corrected: 0.35 to each side. Padded around the middle."""
    random = np.random.default_rng(1)
    for _ in range(300):
        x, width = random.uniform(0, WIDTH - 1), random.uniform(1, WIDTH)
        y, height = random.uniform(0, HEIGHT - 1), random.uniform(1, HEIGHT)
        if how == "published":
            left, top = max(0, x - 0.7 * width), max(0, y - 0.7 * height)
            right, bottom = left + (1 + 0.7) * width, top + (1 + 0.7) * height
        else:
            left, top = max(0, x - 0.35 * width), max(0, y - 0.35 * height)
            right, bottom = x + (1 + 0.35) * width, y + (1 + 0.35) * height
        edges = left, top, min(WIDTH, right), min(HEIGHT, bottom)
        cut = Image.fromarray(PIXELS).crop(edges)
        side = max(cut.size)
        square = Image.new("RGB", (side, side))
        square.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
        assert np.array_equal(crop(PIXELS, (x, y, width, height), how), np.asarray(square))


@pytest.mark.parametrize("box", [(90, 0, 10, 10), (-10, 0, 10, 10), (5, 5, 0.1, 0.1)])
def test_a_box_of_which_nothing_is_seen_is_refused(box: Box) -> None:
    with pytest.raises(OutsideImage, match="no pixel in an image of 90 x 60"):
        crop(PIXELS, box, "corrected")


def test_what_is_said_is_read(tmp_path: Path) -> None:
    taxonomy = read_taxonomy(save(TAXONOMY, tmp_path / "types.json"))
    assert taxonomy["tone"] == ("black", "dark", "light")
    records = labelled(200)
    excluded = LeftOut()
    read = read_instances(save(records[::-1], tmp_path / "val.json"), taxonomy, excluded)
    assert not excluded
    for record, one in zip(records, read, strict=True):
        assert (one.id, one.image, one.object_name) == (
            record["instance_id"],
            record["image_id"],
            record["object_name"],
        )
        assert list(one.box) == record["instance_bbox"]
        assert list(one.positive) == record["positive_attributes"]
        assert list(one.negative) == record["negative_attributes"]


ONE: dict[str, Any] = {
    "image_id": 7,  # a number, as VAW's description says
    "instance_id": "8",
    "instance_bbox": [-1, 2, 30, 4.5],
    "object_name": " Train  Car",
    "positive_attributes": ["Red"],
    "negative_attributes": ["blue"],
}


def test_names_are_words_in_lower_case_and_ids_digits(tmp_path: Path) -> None:
    (one,) = read_instances(save([ONE], tmp_path / "val.json"), TAXONOMY, LeftOut())
    assert (one.id, one.image, one.object_name, one.positive) == ("8", "7", "train car", ("red",))
    assert one.box == (-1.0, 2.0, 30.0, 4.5)


@pytest.mark.parametrize(
    ("reason", "record"),
    [
        ("instance-malformed", "text"),
        ("instance-malformed", {**ONE, "instance_id": "9", "image_id": "../7"}),
        ("instance-malformed", {**ONE, "instance_id": "9", "negative_attributes": [3]}),
        ("instance-repeated", ONE),
        ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 0, 4]}),
        ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3, float("nan")]}),
    ],
)
def test_what_cannot_be_used_is_counted(tmp_path: Path, reason: str, record: Any) -> None:
    excluded = LeftOut()
    (one,) = read_instances(save([ONE, record], tmp_path / "val.json"), TAXONOMY, excluded)
    assert (one.id, excluded) == ("8", {reason: 1})


def test_attributes_that_are_unknown_or_both_said_and_denied_are_not_believed(tmp_path: Path) -> None:
    record = {**ONE, "positive_attributes": ["red", "shiny", "blue"], "negative_attributes": ["blue", "green", "odd"]}
    excluded = LeftOut()
    (one,) = read_instances(save([record], tmp_path / "val.json"), TAXONOMY, excluded)
    assert (one.positive, one.negative) == (("red",), ("green",))
    assert excluded == {"attribute-unknown": 2, "attribute-contradicted": 1}
    assert all(place.startswith("val.json instance 1 '") for _, place in excluded.examples)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"val\.json.* VAW file"):
        read_instances(save([], tmp_path / "val.json"), TAXONOMY, LeftOut())
    whole = {"red": 0}
    with pytest.raises(WrongUse, match=r"types\.json.* attribute_types\.json"):
        read_taxonomy(save(whole, tmp_path / "types.json"))
