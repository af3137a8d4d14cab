"""COCO's instances: which photo an annotation is of, its mask, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset_extras.edited_photos.places import BadMask, Instances, outline_mask

HUGE = 10**400


def instances(folder: Path, files: list[Any], annotations: list[Any], left_out: LeftOut | None = None) -> Instances:
    images = [{"id": number, "file_name": file} for number, file in enumerate(files)]
    said = {"images": images, "categories": [{"id": 1, "name": "Cup"}], "annotations": annotations}
    (folder / "instances.json").write_text(json.dumps(said))
    return Instances(folder / "instances.json", LeftOut() if left_out is None else left_out)


def on(image: int, left: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": 1, "bbox": [left, 0, 5, 5]}


def test_a_name_of_a_file_comes_before_a_number(tmp_path: Path) -> None:
    found = instances(tmp_path, ["1.jpg", "2.jpg", "train/0.jpg", "val/0.jpg"], [on(n, n) for n in range(4)])

    def lefts(image: str, image_id: str) -> list[float] | None:
        places = found.of(image, image_id)
        return None if places is None else [one.box[0] for one in places]

    assert lefts("1.jpg", "") == [0] and lefts("a/2.jpg", "") == [1]
    assert lefts("train/0.jpg", "") == [2] and lefts("val/0.jpg", "") == [3]
    assert lefts("val/1.jpg", "x") == [0]
    assert lefts("0.jpg", "3") == [3] and lefts("0.jpg", "x") is None


def test_a_photo_of_another_folder_is_another_photo(tmp_path: Path) -> None:
    found = instances(tmp_path, ["val/0.jpg"], [on(0, 1)])
    assert found.of("train/0.jpg", "") is None and found.of("0.jpg", "") and found.of("coco/val/0.png", "")


def test_annotations_that_are_none_are_counted(tmp_path: Path) -> None:
    left_out = LeftOut()
    bad = [None, "x", {**on(0, 1), "bbox": [1, 1, HUGE, 5]}, {**on(0, 1), "bbox": [1, 1, 0, 5]}]
    found = instances(tmp_path, ["0.jpg"], [*bad, on(0, 7)], left_out)
    assert dict(left_out) == {"bad-instance": 4} and len(found.of("0.jpg", "") or ()) == 1


@pytest.mark.parametrize("file", [None, "", 7])
def test_an_image_without_a_file_is_refused(tmp_path: Path, file: Any) -> None:
    with pytest.raises(WrongUse, match=r"instances\.json: .*file_name.*empty or there twice"):
        instances(tmp_path, [file], [on(0, 1)])


@pytest.mark.parametrize("text", ["[]", "{}", '{"images": [], "categories": [], "annotations": [{}]}'])
def test_files_without_instances_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(WrongUse, match=r"instances\.json"):
        Instances(tmp_path / "instances.json", LeftOut())


def test_masks_are_polygons_and_run_lengths() -> None:
    expected = np.zeros((4, 6), np.bool_)
    expected[1:3, 2:5] = True
    runs = [9, 2, 2, 2, 2, 2, 5]
    assert np.array_equal(outline_mask({"size": [4, 6], "counts": runs}, 4, 6), expected)
    assert np.array_equal(outline_mask([[2, 1, 4, 1, 4, 2, 2, 2]], 4, 6), expected)


@pytest.mark.parametrize(
    "outline",
    [
        {"size": [6, 4], "counts": [24]},
        {"size": [4, 6], "counts": [23]},
        {"size": [4, 6], "counts": [25, -1]},
        {"size": [4, 6], "counts": [HUGE, 1]},
        {"size": [4, 6], "counts": "9220003"},
        {"size": [4, 6]},
        {"size": 4, "counts": [24]},
        {"size": True, "counts": [24]},
        [[0, 0, 9, 9, 0, 9]],
        [[0, 0, 4, 0, 4, HUGE]],
        [[0, 0, 4, 0, 4, 4, 1]],
        [[0, 0, 1]],
        [["a"] * 6],
        7,
    ],
)
def test_a_mask_of_another_picture_or_of_none_is_refused(outline: Any) -> None:
    with pytest.raises(BadMask):
        outline_mask(outline, 4, 6)
