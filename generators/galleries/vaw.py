"""Reading VAW (Visual Attributes in the Wild): objects of Visual Genome's images and what is said of them (GeneCIS, 4).

Annotations: ``[{image_id, instance_id, instance_bbox: [x, y, width, height], instance_polygon, object_name,
positive_attributes: [...], negative_attributes: [...]}]``; both ids are text of digits in the released files, numbers
in their description. Taxonomy: ``{type: [attribute, ...]}``, VAW's `attribute_types.json`; an attribute may have
several types.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import read_json

LARGEST = 1 << 16  # pixels: what lies beyond is in no picture
LONGEST_ID = 18  # digits

_ANNOTATIONS = "source.annotations must be a VAW file such as val.json; correct it or fetch it again"
_TAXONOMY = "source.taxonomy must be {type: [attribute, ...]}, such as VAW's attribute_types.json"

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Instance:
    """One object in one image.

    box: x, y (of the upper left corner), width, height; pixels, finite, of some area. positive: attributes that it
    certainly has, negative: that it certainly has not; both in the order of the file, neither holds one of the other.
    """

    id: str
    image: str
    box: Box
    object_name: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


def read_taxonomy(path: Path) -> dict[str, tuple[str, ...]]:
    """Attributes by their type, both sorted; raises `WrongUse` for another shape."""
    whole = read_json(path)
    if not isinstance(whole, dict) or not whole:
        raise WrongUse(f"{path}: the file is no JSON object of types; {_TAXONOMY}")
    taxonomy = {}
    for kind, attributes in whole.items():
        if not isinstance(attributes, list) or not all(isinstance(name, str) for name in attributes):
            raise WrongUse(f"{path}: {kind!r} has no list of attributes; {_TAXONOMY}")
        taxonomy[kind] = tuple(sorted({_word(name) for name in attributes} - {""}))
    return dict(sorted(taxonomy.items()))


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
    for number, record in enumerate(whole, 1):
        place = f"{path.name} instance {number}"
        instance = _instance(record, known, excluded, place)
        if instance is not None and instance.id in instances:
            excluded.add("instance-repeated", f"{place} (id {instance.id})")
        elif instance is not None:
            instances[instance.id] = instance
    if not instances:
        raise WrongUse(f"{path}: has no instance that can be used (left out: {dict(excluded)}); {_ANNOTATIONS}")
    return sorted(instances.values(), key=lambda instance: (len(instance.id), instance.id))


def _instance(record: Any, known: Collection[str], excluded: LeftOut, place: str) -> Instance | None:
    record = record if isinstance(record, dict) else {}
    identifier, image = _identifier(record.get("instance_id")), _identifier(record.get("image_id"))
    name = record.get("object_name")
    said, denied = (_attributes(record.get(f"{side}_attributes")) for side in ("positive", "negative"))
    if not identifier or not image or not isinstance(name, str) or not _word(name) or said is None or denied is None:
        excluded.add("instance-malformed", place)
        return None
    box = _box(record.get("instance_bbox"))
    if box is None:
        excluded.add("instance-without-box", place)
        return None
    for attribute in (*said, *denied):
        if attribute not in known:
            excluded.add("attribute-unknown", f"{place} {attribute!r}")
    contradicted = set(said) & set(denied)
    for attribute in said:
        if attribute in contradicted and attribute in known:
            excluded.add("attribute-contradicted", f"{place} {attribute!r}")
    positive, negative = (
        tuple(attribute for attribute in side if attribute in known and attribute not in contradicted)
        for side in (said, denied)
    )
    return Instance(identifier, image, box, _word(name), positive, negative)


def _identifier(value: Any) -> str:
    """Digits, from text or a whole number; else nothing. It becomes the name of a file."""
    if type(value) is int and value >= 0:
        value = str(value)
    return value if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= LONGEST_ID else ""


def _attributes(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    return tuple(dict.fromkeys(_word(name) for name in value))


def _box(value: Any) -> Box | None:
    if not isinstance(value, list) or len(value) != 4 or any(type(number) not in (int, float) for number in value):
        return None
    if not all(-LARGEST <= number <= LARGEST for number in value):  # neither does one that is not a number
        return None
    x, y, width, height = (float(number) for number in value)
    inside = width > 0 and height > 0 and x + width > 0 and y + height > 0
    return (x, y, width, height) if inside else None


def _word(text: str) -> str:
    return " ".join(text.lower().split())


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
