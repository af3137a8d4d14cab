"""Reading VAW (Visual Attributes in the Wild): objects of Visual Genome's images and what is said of them (GeneCIS, 4).

Annotations: ``[{image_id, instance_id, instance_bbox: [x, y, width, height], instance_polygon, object_name,
positive_attributes: [...], negative_attributes: [...]}]``; both ids are text of digits in the released files, numbers
in their description. Taxonomy: ``{type: [attribute, ...]}``, VAW's `attribute_types.json`; an attribute may have
several types.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import read_json, refuse_unusable
from twinset.generators.record_fields import misfit

LARGEST = 1 << 16  # pixels: what lies beyond is in no picture

_ANNOTATIONS = "source.annotations must be a VAW file such as val.json; correct it or fetch it again"
_TAXONOMY = "source.taxonomy must be {type: [attribute, ...]}, such as VAW's attribute_types.json"

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Instance:
    """One object in one image.

    box: x, y (of the upper left corner), width, height; pixels, finite, of some area. positive: attributes that it
    certainly has, negative: that it certainly has not; both in the order of the file, the lists are disjoint.
    """

    id: str
    image: str
    box: Box
    object_name: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


def _word(text: str) -> str:
    return " ".join(text.lower().split())


def _file_number(value: Any) -> Any:
    """Digits, from text or a whole number: they become the name of a file."""
    value = str(value) if type(value) is int else value
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,18}", value):
        raise ValueError("an id is of up to 18 digits")
    return value


def _within_pictures(box: Box) -> Box:
    x, y, width, height = box
    if not all(abs(number) <= LARGEST for number in box) or min(width, height, x + width, y + height) <= 0:
        raise ValueError("a box has an area, and lies in a picture")
    return box


def _not_empty(name: str) -> str:
    if not name:
        raise ValueError("a name has words")
    return name


FileNumber = Annotated[str, BeforeValidator(_file_number)]
Word = Annotated[str, AfterValidator(_word)]
Coordinate = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class InstanceRecord(BaseModel):
    """An entry of the annotations."""

    instance_id: FileNumber
    image_id: FileNumber
    object_name: Annotated[Word, AfterValidator(_not_empty)]
    positive_attributes: list[Word]
    negative_attributes: list[Word]
    instance_bbox: Annotated[tuple[Coordinate, Coordinate, Coordinate, Coordinate], AfterValidator(_within_pictures)]


_RECORD, _TYPES = TypeAdapter(InstanceRecord), TypeAdapter(dict[str, list[Word]])


def read_taxonomy(path: Path) -> dict[str, tuple[str, ...]]:
    """Attributes by their type, both sorted; raises `WrongUse` for another shape."""
    try:
        types = _TYPES.validate_python(read_json(path))
    except ValidationError as error:
        raise WrongUse(f"{path}: {misfit(error)[1]}; {_TAXONOMY}") from error
    if not types:
        raise WrongUse(f"{path}: has no types; {_TAXONOMY}")
    return {kind: tuple(sorted({*attributes} - {""})) for kind, attributes in sorted(types.items())}


def read_instances(path: Path, taxonomy: Mapping[str, Collection[str]], excluded: LeftOut) -> list[Instance]:
    """Instances in the order of their ids.

    excluded gains, by reason: ``instance-malformed`` (no object with ids, a name and two lists of attributes),
    ``instance-repeated`` (an id that came before; the first counts), ``instance-without-box`` (no four numbers, no
    area, or not in a picture), and of the attributes ``attribute-unknown`` (not in the taxonomy) and
    ``attribute-contradicted`` (said and denied of one instance; neither is believed). Raises `WrongUse` when the file
    is no list or nothing is left.
    """
    whole = read_json(path)
    if not isinstance(whole, list):
        raise WrongUse(f"{path}: is no list of instances; {_ANNOTATIONS}")
    known = {attribute for attributes in taxonomy.values() for attribute in attributes}
    instances: dict[str, Instance] = {}
    for number, value in enumerate(whole, 1):
        place = f"{path.name} instance {number}"
        try:
            record = _RECORD.validate_python(value)
        except ValidationError as error:
            excluded.add("instance-without-box" if misfit(error)[0] == "instance_bbox" else "instance-malformed", place)
            continue
        if record.instance_id in instances:
            excluded.add("instance-repeated", f"{place} (id {record.instance_id})")
        else:
            instances[record.instance_id] = _instance(record, known, excluded, place)
    if not instances:
        refuse_unusable(path, excluded, _ANNOTATIONS)
    return sorted(instances.values(), key=lambda instance: (len(instance.id), instance.id))


def _instance(record: InstanceRecord, known: Collection[str], excluded: LeftOut, place: str) -> Instance:
    """A record with the attributes that are known, and are not both said and denied."""
    positive, negative = dict.fromkeys(record.positive_attributes), dict.fromkeys(record.negative_attributes)
    for attribute in (*positive, *negative):
        if attribute not in known:
            excluded.add("attribute-unknown", f"{place} {attribute!r}")
    for attribute in positive:
        if attribute in negative and attribute in known:
            excluded.add("attribute-contradicted", f"{place} {attribute!r}")
    stated = tuple(name for name in positive if name in known and name not in negative)
    denied = tuple(name for name in negative if name in known and name not in positive)
    return Instance(record.instance_id, record.image_id, record.instance_bbox, record.object_name, stated, denied)


DILATION = 0.7

Crops = Literal["corrected", "published"]


class OutsideImage(Exception):
    """A box of which nothing lies in its image."""


def crop(pixels: Pixels, box: Box, how: Crops) -> Pixels:
    """The object in ``box`` (x, y, width, height; pixels) and its surroundings, padded to a square with zeros.

    pixels: (height, width, 3); the crop is (side, side, 3), the object's picture in the middle. Both ways make the
    box 1.7 times as wide and as high, cut it off at the image, and keep the aspect ratio.

    ``published``: as the released evaluation does: by 0.7 of width and height to the left and the top; right and bottom
    are then 1.7 times the size from the new corner, which is cut off first. So nothing is seen to the right of and
    below an object that is far from the border.
    ``corrected``: the same size around the same centre, 0.35 on each side, which is what "dilate the box by a factor of
    0.7 in height and width" to give context says; the factor was chosen for the size, so the size stays.

    Raises `OutsideImage`.
    """
    height, width = pixels.shape[:2]
    left, right = _span(box[0], box[2], width, how)
    top, bottom = _span(box[1], box[3], height, how)
    if right <= left or bottom <= top:
        shown = ", ".join(f"{number:g}" for number in box)
        raise OutsideImage(f"box [{shown}] has no pixel in an image of {width} x {height}")
    cut = pixels[top:bottom, left:right]
    side = max(cut.shape[:2])
    y, x = (side - cut.shape[0]) // 2, (side - cut.shape[1]) // 2
    return np.pad(cut, ((y, side - cut.shape[0] - y), (x, side - cut.shape[1] - x), (0, 0)))


def _span(start: float, length: float, limit: int, how: Crops) -> tuple[int, int]:
    """First pixel and the one after the last, along one side; rounded as Pillow does, half to even."""
    if not (start < limit and start + length > 0):
        return 0, 0  # though its surroundings may be seen, the object is not
    if how == "published":
        first = max(0.0, start - DILATION * length)
        last = min(float(limit), first + (1 + DILATION) * length)
    else:
        first = max(0.0, start - DILATION / 2 * length)
        last = min(float(limit), start + (1 + DILATION / 2) * length)
    return round(first), round(last)
