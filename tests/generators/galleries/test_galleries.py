import copy
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.galleries.annotated import (
    CATEGORIES,
    ONE_PERCENT,
    TAXONOMY,
    categories,
    labelled,
    save,
    save_pngs,
    scenes,
)
from tests.generators.galleries.annotated_invariants import ObjectRules
from tests.generators.galleries.invariants import check
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.drafts import Task
from twinset.generators.galleries.object_tasks import ChangeObject, FocusObject, ObjectDrafts
from twinset.generators.galleries.panoptic import Scenes, condition_name, read_scenes
from twinset.generators.galleries.vaw import Box, OutsideImage, crop, read_instances, read_taxonomy

OBJECT_TASKS: dict[str, type[ObjectDrafts]] = {"focus-object": FocusObject, "change-object": ChangeObject}
TASKS: tuple[Task, ...] = ("focus-object", "change-object")


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return read_scenes(save(scenes(), tmp_path_factory.mktemp("coco") / "panoptic.json"), LeftOut())


def entries(annotated: Scenes, task: Task, count: int | None = None, seed: int = 1) -> list[dict[str, Any]]:
    return [draft.entry for draft in islice(OBJECT_TASKS[task](annotated, seed, "objects", LeftOut()), count)]


@pytest.mark.parametrize("task", TASKS)
def test_every_rule_holds_of_all_that_can_be_made(annotated: Scenes, task: Task) -> None:
    made = entries(annotated, task)
    assert len(made) > 200
    assert check(made, task, ObjectRules(annotated), conditions=annotated.names) == []


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_makes_the_same_and_more_keeps_the_first(annotated: Scenes, task: Task) -> None:
    whole = entries(annotated, task)
    assert entries(annotated, task, 40) == whole[:40]
    assert entries(annotated, task, 40, seed=2) != whole[:40]


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
    templates = FocusObject(annotated, 1, "objects", LeftOut())
    list(templates)
    few = int((annotated.present.sum(axis=1) < 10).sum())
    assert templates.excluded["reference-few-categories"] == few > 80
    lonely = read_scenes(save(scenes(rich=12, simple=0, seed=3), tmp_path / "few.json"), LeftOut())  # no nine near ones
    templates = FocusObject(lonely, 1, "objects", LeftOut())
    assert list(templates) == []
    assert templates.excluded["reference-without-gallery"] == int((lonely.present.sum(axis=1) >= 10).sum()) > 0


def test_what_is_read_is_what_the_pngs_show(tmp_path: Path) -> None:
    whole = scenes(rich=20, simple=10)
    save_pngs(whole, tmp_path / "png")
    read = read_scenes(save(whole, tmp_path / "panoptic.json"), LeftOut())
    names = {3 * number + 1: condition_name(name) for number, name in enumerate(CATEGORIES)}
    shown = {}
    for annotation in whole["annotations"]:
        colours = np.asarray(Image.open(tmp_path / "png" / annotation["file_name"])).astype(np.int64)
        ids = colours @ [1, 256, 65536]
        pixels = dict.fromkeys(names.values(), 0)
        for segment in annotation["segments_info"]:
            assert np.count_nonzero(ids == segment["id"]) == segment["area"]
            pixels[names[segment["category_id"]]] += int(np.count_nonzero(ids == segment["id"]))
        shown[annotation["image_id"]] = {name for name, count in pixels.items() if count / ids.size > 0.01}
    assert read.ids.tolist() == sorted(shown)
    assert read.files[0] == f"{read.ids[0]:012d}.jpg"
    for image, row in zip(read.ids.tolist(), read.present, strict=True):
        assert {name for name, present in zip(read.names, row, strict=True) if present} == shown[image]


@pytest.mark.parametrize(("areas", "present"), [([12], False), ([13], True), ([7, 7], True), ([0], False)])
def test_a_category_is_present_above_one_per_cent_of_the_pixels(
    tmp_path: Path, areas: list[int], present: bool
) -> None:
    assert ONE_PERCENT == 12  # of 1,200 pixels; all segments of a category count together
    segments = [{"id": n + 1, "category_id": 1, "area": area} for n, area in enumerate(areas)]
    whole = {
        "images": [{"id": 5, "width": 40, "height": 30, "file_name": "5.jpg"}],
        "annotations": [{"image_id": 5, "file_name": "5.png", "segments_info": segments}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    assert read_scenes(save(whole, tmp_path / "one.json"), LeftOut()).present.tolist() == [[present]]


@pytest.mark.parametrize(
    ("category", "said"),
    [
        ("wall-other-merged", "wall"),
        ("sky-other-merged", "sky"),
        ("tree-merged", "tree"),
        ("door-stuff", "door"),
        ("window-other", "window"),
        ("floor-wood", "wood floor"),
        ("wall-brick", "brick wall"),
        ("window-blind", "window blind"),
        ("dining table", "dining table"),
        ("playingfield", "playingfield"),
    ],
)
def test_conditions_are_said_as_in_the_published_files(category: str, said: str) -> None:
    assert condition_name(category) == said


def test_categories_that_are_said_alike_are_one(tmp_path: Path) -> None:
    whole: dict[str, Any] = {
        "images": [{"id": 5, "width": 40, "height": 30, "file_name": "5.jpg"}],
        "annotations": [
            {
                "image_id": 5,
                "segments_info": [{"id": 1, "category_id": 1, "area": 7}, {"id": 2, "category_id": 2, "area": 7}],
            }
        ],
        "categories": [{"id": 1, "name": "door"}, {"id": 2, "name": "door-stuff"}],
    }
    read = read_scenes(save(whole, tmp_path / "doors.json"), LeftOut())
    assert read.names == ("door",)
    assert read.present.tolist() == [[True]]


def test_the_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    whole = scenes(rich=10, simple=5)
    shuffled = {key: list(reversed(value)) for key, value in whole.items()}
    one, other = (
        read_scenes(save(whole, tmp_path / "a.json"), LeftOut()),
        read_scenes(save(shuffled, tmp_path / "b.json"), LeftOut()),
    )
    assert (one.ids.tolist(), one.files, one.names) == (other.ids.tolist(), other.files, other.names)
    assert np.array_equal(one.present, other.present)


SEGMENT = "annotations", 1, "segments_info", 0
WRONG = {
    "no object": ((), []),
    "no images": (("images",), None),
    "a category without a name": (("categories", 0, "name"), None),
    "a category of nothing": (("categories", 0, "name"), "-stuff"),
    "a category that is text": (("categories", 0), "cat"),
    "a category without an id": (("categories", 0, "id"), 10**30),
}
BROKEN = {
    "an image that is text": (("images", 1), "5.jpg"),
    "no file name": (("images", 1, "file_name"), 5),
    "a file elsewhere": (("images", 1, "file_name"), "../5.jpg"),
    "no width": (("images", 1, "width"), 0),
    "an absurd height": (("images", 1, "height"), 10**9),
    "a size that is true": (("images", 1, "width"), True),
    "an id that is text": (("images", 1, "id"), "5"),
    "an unknown image": (("annotations", 1, "image_id"), 3),
    "segments that are none": (("annotations", 1, "segments_info"), {}),
    "a segment that is text": (SEGMENT, "sky"),
    "an unknown category": ((*SEGMENT, "category_id"), 2),
    "an area that is a fraction": ((*SEGMENT, "area"), 1.5),
    "a negative area": ((*SEGMENT, "area"), -1),
    "an area beyond the image": ((*SEGMENT, "area"), 1201),
    "an id beyond all": ((*SEGMENT, "id"), 10**30),
    "not a number": ((*SEGMENT, "area"), float("nan")),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_of_another_structure_is_refused(tmp_path: Path, case: str) -> None:
    path = save(_with(scenes(rich=3, simple=0), *WRONG[case]), tmp_path / "wrong.json")
    with pytest.raises(WrongUse, match=r"wrong\.json: .*must be a COCO Panoptic file"):
        read_scenes(path, LeftOut())


@pytest.mark.parametrize("case", BROKEN)
def test_entries_that_are_not_in_the_format_are_left_out_with_their_place(tmp_path: Path, case: str) -> None:
    place, value = BROKEN[case]
    whole = scenes(rich=3, simple=0)
    ids = [annotation["image_id"] for annotation in whole["annotations"]]
    excluded = LeftOut()
    read = read_scenes(save(_with(whole, place, value), tmp_path / "broken.json"), excluded)
    assert len(read.ids) == 2 and set(read.ids.tolist()) < set(ids)
    (_, first), *_ = excluded.examples
    assert first.startswith(f"broken.json {place[0]}[1] ")
    # The annotation of an image that is left out goes with it.
    assert sum(excluded.values()) == (2 if place[0] == "images" else 1)


def test_a_file_without_one_usable_annotation_is_refused(tmp_path: Path) -> None:
    whole = {**scenes(rich=3, simple=0), "images": ["5.jpg"]}
    with pytest.raises(WrongUse, match=r"nothing in it can be used \(none\.json images\[0\] Input should be an object"):
        read_scenes(save(whole, tmp_path / "none.json"), LeftOut())


def test_what_comes_twice_is_left_out_the_second_time(tmp_path: Path) -> None:
    for key in ("images", "annotations"):
        whole, excluded = scenes(rich=3, simple=0), LeftOut()
        whole[key].append(copy.deepcopy(whole[key][0]))
        assert len(read_scenes(save(whole, tmp_path / "twice.json"), excluded).ids) == 3
        assert excluded == {f"{key[:-1]}-malformed": 1} and "came before" in excluded.examples[0][1]
    whole = scenes(rich=3, simple=0)
    whole["categories"].append(copy.deepcopy(whole["categories"][0]))
    with pytest.raises(WrongUse, match="one id"):
        read_scenes(save(whole, tmp_path / "twice.json"), LeftOut())
    whole, excluded = scenes(rich=3, simple=0), LeftOut()
    segments = whole["annotations"][0]["segments_info"]
    segments[1]["id"] = segments[0]["id"]
    assert len(read_scenes(save(whole, tmp_path / "twice.json"), excluded).ids) == 2
    assert "came before" in excluded.examples[0][1]


def test_segments_larger_than_their_image_are_left_out(tmp_path: Path) -> None:
    whole, excluded = scenes(rich=3, simple=0), LeftOut()
    for segment in whole["annotations"][0]["segments_info"][:2]:
        segment["area"] = 700
    assert len(read_scenes(save(whole, tmp_path / "large.json"), excluded).ids) == 2
    assert "of an image that has 1200" in excluded.examples[0][1]


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    whole = {"images": [], "annotations": [], "categories": [{**categories()[0], "name": "\ud800"}]}
    with pytest.raises(WrongUse, match="surrogate"):
        read_scenes(save(whole, tmp_path / "half.json"), LeftOut())


def _with(whole: Any, place: tuple[Any, ...], value: Any) -> Any:
    """``whole`` with another value at a place."""
    if not place:
        return value
    whole[place[0]] = _with(whole[place[0]], place[1:], value)
    return whole


WIDTH, HEIGHT = 90, 60
PIXELS = np.random.default_rng(0).integers(1, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)  # no black but the padding


def shown(box: Box, how: str) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what a crop shows of the image; it must be a square, padded evenly with black."""
    made = crop(PIXELS, box, how)  # type: ignore[arg-type]
    assert made.shape[0] == made.shape[1]
    lit = made.any(axis=-1)
    rows, columns = np.flatnonzero(lit.any(axis=1)), np.flatnonzero(lit.any(axis=0))
    seen = made[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert 0 <= (made.shape[0] - 1 - rows[-1]) - rows[0] <= 1
    assert 0 <= (made.shape[1] - 1 - columns[-1]) - columns[0] <= 1
    assert made.shape[0] in seen.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(PIXELS, seen.shape)[:, :, 0]
    ((top, left),) = np.argwhere((windows == seen).all(axis=(2, 3, 4)))
    return int(left), int(top), int(left) + seen.shape[1], int(top) + seen.shape[0]


@pytest.mark.parametrize(
    ("box", "published", "corrected"),
    [
        # In the middle: 14 and 7 more to the left and the top, or 7 and 3.5 on each side; halves round to even.
        ((40, 30, 20, 10), (26, 23, 60, 40), (33, 26, 67, 44)),
        # Cut off at the left and the top, where the published crop then reaches beyond the box on the other side.
        ((0, 0, 20, 10), (0, 0, 34, 17), (0, 0, 27, 14)),
        # Cut off at the right and the bottom.
        ((70, 50, 20, 10), (56, 43, 90, 60), (63, 46, 90, 60)),
        # Partly outside.
        ((-10, 55, 20, 20), (0, 41, 34, 60), (0, 48, 17, 60)),
        ((0, 0, 90, 60), (0, 0, 90, 60), (0, 0, 90, 60)),
    ],
)
def test_what_is_seen_around_the_box(box: Box, published: tuple[int, ...], corrected: tuple[int, ...]) -> None:
    assert shown(box, "published") == published
    assert shown(box, "corrected") == corrected


def test_published_is_what_the_released_evaluation_cuts_out() -> None:
    """By Pillow: 0.7 to the left and the top, the rest measured from the new corner; padded around the middle."""
    random = np.random.default_rng(1)
    for _ in range(300):
        x, width = random.uniform(0, WIDTH - 1), random.uniform(1, WIDTH)
        y, height = random.uniform(0, HEIGHT - 1), random.uniform(1, HEIGHT)
        left, top = max(0, x - 0.7 * width), max(0, y - 0.7 * height)
        right, bottom = min(WIDTH, left + (1 + 0.7) * width), min(HEIGHT, top + (1 + 0.7) * height)
        cut = Image.fromarray(PIXELS).crop((left, top, right, bottom))  # type: ignore[arg-type]
        side = max(cut.size)
        square = Image.new("RGB", (side, side))
        square.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
        assert np.array_equal(crop(PIXELS, (x, y, width, height), "published"), np.asarray(square))


@pytest.mark.parametrize("how", ["published", "corrected"])
@pytest.mark.parametrize("box", [(90, 0, 10, 10), (0, 60, 10, 10), (-10, 0, 10, 10), (95, 5, 90, 10), (5, 5, 0.1, 0.1)])
def test_a_box_of_which_nothing_is_seen_is_refused(box: Box, how: str) -> None:
    with pytest.raises(OutsideImage, match="no pixel in an image of 90 x 60"):
        crop(PIXELS, box, how)  # type: ignore[arg-type]


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


DIRTY: list[tuple[str, Any]] = [
    ("instance-malformed", "text"),
    ("instance-malformed", {**ONE, "instance_id": "9", "image_id": True}),
    ("instance-malformed", {**ONE, "instance_id": "9", "image_id": "../7"}),
    ("instance-malformed", {**ONE, "instance_id": "9" * 30}),
    ("instance-malformed", {**ONE, "instance_id": "٣"}),  # a digit, though not one of a file's name
    ("instance-malformed", {**ONE, "instance_id": "9", "object_name": " "}),
    ("instance-malformed", {**ONE, "instance_id": "9", "positive_attributes": None}),
    ("instance-malformed", {**ONE, "instance_id": "9", "negative_attributes": [3]}),
    ("instance-repeated", ONE),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": None}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 0, 4]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3, float("nan")]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3, 10**400]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3, 1e9]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [-9, 2, 3, 4]}),
    ("instance-without-box", {**ONE, "instance_id": "9", "instance_bbox": [1, 2, 3, True]}),
]


@pytest.mark.parametrize("number", range(len(DIRTY)))
def test_what_cannot_be_used_is_counted(tmp_path: Path, number: int) -> None:
    reason, record = DIRTY[number]
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


@pytest.mark.parametrize("whole", [{}, [], ["text"], None])
def test_a_file_without_instances_is_refused(tmp_path: Path, whole: Any) -> None:
    with pytest.raises(WrongUse, match=r"val\.json.* VAW file"):
        read_instances(save(whole, tmp_path / "val.json"), TAXONOMY, LeftOut())


@pytest.mark.parametrize("whole", [[], {}, {"red": 0}, {"color": ["red", 1]}])
def test_another_file_than_a_taxonomy_is_refused(tmp_path: Path, whole: Any) -> None:
    with pytest.raises(WrongUse, match=r"types\.json.* attribute_types\.json"):
        read_taxonomy(save(whole, tmp_path / "types.json"))
