import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.galleries.annotated import CATEGORIES, ONE_PERCENT, categories, save, save_pngs, scenes
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.panoptic import condition_name, read_scenes


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
    with pytest.raises(WrongUse, match=r"nothing in it can be used \(none\.json images\[0\] is not a JSON object"):
        read_scenes(save(whole, tmp_path / "none.json"), LeftOut())


def test_what_comes_twice_is_left_out_the_second_time(tmp_path: Path) -> None:
    for key in ("images", "annotations"):
        whole, excluded = scenes(rich=3, simple=0), LeftOut()
        whole[key].append(copy.deepcopy(whole[key][0]))
        assert len(read_scenes(save(whole, tmp_path / "twice.json"), excluded).ids) == 3
        assert excluded == {f"{key[:-1]}-malformed": 1} and "came before" in excluded.examples[0][1]
    whole = scenes(rich=3, simple=0)
    whole["categories"].append(copy.deepcopy(whole["categories"][0]))
    with pytest.raises(WrongUse, match="came before"):
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
