from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.galleries.annotated import TAXONOMY, labelled, save
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.vaw import Box, OutsideImage, crop, read_instances, read_taxonomy

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
