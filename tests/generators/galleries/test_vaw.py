from pathlib import Path
from typing import Any

import pytest

from tests.generators.galleries.annotated import TAXONOMY, labelled, save
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.vaw import read_instances, read_taxonomy


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
