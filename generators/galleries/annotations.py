"""Reading VAW, of labelled objects, and COCO Panoptic, of whole scenes; cutting out VAW's boxes (GeneCIS, 4 and A.2).

VAW (Visual Attributes in the Wild): ``[{image_id, instance_id, instance_bbox: [x, y, width, height], instance_polygon,
object_name, positive_attributes: [...], negative_attributes: [...]}]``; both ids are text of digits in the released
files, numbers in their description. Taxonomy: ``{type: [attribute, ...]}``, VAW's `attribute_types.json`; an attribute
may have several types.

COCO Panoptic: ``{images: [{id, width, height, file_name}], annotations: [{image_id, file_name, segments_info: [{id,
category_id, area, bbox, iscrowd}]}], categories: [{id, name, isthing, ...}]}``. The PNGs of segments need not be there:
``area`` counts their pixels. Void pixels have no segment.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import Pixels
from twinset.contracts.licences.terms import NOTHING, Terms
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import is_media_name, read_json, refuse_unusable
from twinset.generators.licences import coco_terms
from twinset.generators.record_fields import misfit

_VAW = "source.annotations must be a VAW file such as val.json; correct it or fetch it again"
_TAXONOMY = "source.taxonomy must be {type: [attribute, ...]}, such as VAW's attribute_types.json"
_PANOPTIC = "source.annotations must be a COCO Panoptic file such as panoptic_val2017.json; correct it there"

DILATION = 0.7
LARGEST = 1 << 16  # pixels: what lies beyond is in no picture
PERCENT = 1  # a category is present where it takes more than this much of the pixels (GeneCIS, A.2)


def condition_name(category: str) -> str:
    """A category's name as a condition says it: ``sky-other-merged`` is ``sky``, ``floor-wood`` is ``wood floor``.

    The paper strips "miscellaneous identifiers such as '-stuff' and '-other'"; that materials come first, and that
    `window-blind` becomes `window blind`, is in its published templates.
    """
    name = re.sub(r"^(floor|wall)-(.*)", r"\2 \1", re.sub(r"(-stuff)?(-other)?(-merged)?$", "", category))
    return name.replace("-", " ")


def _in_folder(name: str) -> str:
    if not is_media_name(name):
        raise ValueError("it is not the name of a file in the folder")
    return name


#: Digits, from text or a whole number: they become the name of a file.
FileNumber = Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^[0-9]{1,18}$")]
Word = Annotated[str, AfterValidator(lambda text: " ".join(text.lower().split()))]
Coordinate = Annotated[float, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Length = Annotated[float, Field(strict=True, gt=0, le=LARGEST)]
Box = tuple[Coordinate, Coordinate, Length, Length]
#: What JSON readers of all languages agree on.
Id = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Side = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]


@dataclass(frozen=True, slots=True)
class Instance:
    """One object in one image, by the names of VAW's fields.

    positive: attributes that it certainly has, negative: that it certainly has not; both in the order of the file, the
    lists are disjoint. box: x, y (of the upper left corner), width, height; pixels.
    """

    id: Annotated[FileNumber, Field(alias="instance_id")]
    image: Annotated[FileNumber, Field(alias="image_id")]
    object_name: Annotated[Word, Field(min_length=1)]
    positive: Annotated[tuple[Word, ...], Field(alias="positive_attributes")]
    negative: Annotated[tuple[Word, ...], Field(alias="negative_attributes")]
    box: Annotated[Box, Field(alias="instance_bbox")]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of COCO's."""

    id: Id
    file_name: Annotated[str, AfterValidator(_in_folder)]
    width: Side
    height: Side


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of an image. area: its pixels."""

    category_id: Id
    area: Id


@dataclass(frozen=True, slots=True)
class Segments:
    """Those of an image. id: the image's."""

    id: Annotated[Id, Field(alias="image_id")]
    segments_info: list[Segment]


@dataclass(frozen=True, slots=True)
class Category:
    """A category, named as conditions say it."""

    id: Id
    name: Annotated[str, AfterValidator(condition_name), Field(pattern=r"\S")]


@dataclass(frozen=True, slots=True)
class PanopticFile:
    """The whole file; its entries are checked one by one."""

    categories: list[Category]
    images: list[Any]
    annotations: list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Scenes:
    """Images and their categories, by image id.

    pictures: the images. names: of the categories, as a condition says them, sorted. present: (images, categories)
    bool. terms: of the images.
    """

    pictures: Sequence[Picture]
    names: Sequence[str]
    present: NDArray[np.bool_]
    terms: tuple[Terms, ...]


def read_taxonomy(path: Path) -> dict[str, tuple[str, ...]]:
    """Attributes by their type, both sorted; raises `WrongUse` for another shape."""
    form = Annotated[dict[str, list[Word]], Field(min_length=1)]
    types: dict[str, list[str]] = _whole(path, form, read_json(path), _TAXONOMY)
    return {kind: tuple(sorted({*attributes} - {""})) for kind, attributes in sorted(types.items())}


def read_instances(path: Path, taxonomy: Mapping[str, Collection[str]], excluded: LeftOut) -> list[Instance]:
    """Instances in the order of their ids.

    excluded gains, by reason: ``instance-malformed`` (no object with an id of its own, a name, a box in a picture and
    two lists of attributes), and of the attributes ``attribute-unknown`` (not in the taxonomy) and
    ``attribute-contradicted`` (said and denied of one instance; neither is believed). Raises `WrongUse` when the file
    is no list or nothing is left.
    """
    known = {attribute for attributes in taxonomy.values() for attribute in attributes}
    values: list[Any] = _whole(path, list[Any], read_json(path), _VAW)
    instances = []
    for place, instance in _by_id(values, Instance, f"{path.name} instance", "instance-malformed", excluded).values():
        stated, denied = dict.fromkeys(instance.positive), dict.fromkeys(instance.negative)
        for attribute in (name for name in (*stated, *denied) if name not in known):
            excluded.add("attribute-unknown", f"{place} {attribute!r}")
        for attribute in (name for name in stated if name in denied and name in known):
            excluded.add("attribute-contradicted", f"{place} {attribute!r}")
        positive = tuple(name for name in stated if name in known and name not in denied)
        negative = tuple(name for name in denied if name in known and name not in stated)
        instances.append(replace(instance, positive=positive, negative=negative))
    if not instances:
        refuse_unusable(path, excluded, _VAW)
    return sorted(instances, key=lambda instance: (len(instance.id), instance.id))


def read_scenes(path: Path, excluded: LeftOut) -> Scenes:
    """All annotated images of a COCO Panoptic file; categories that conditions call alike count as one.

    Args:
        path: the annotation file.
        excluded: gains ``image-malformed`` and ``annotation-malformed``: entries that are not in the format, have an id
            that came before, or contradict others (an unknown image or category, segments larger than their image).

    Raises:
        WrongUse: the file has another structure, a category is malformed, or no annotation can be used.
    """
    whole = read_json(path)
    file: PanopticFile = _whole(path, PanopticFile, whole, _PANOPTIC)
    with naming(str(path), ValueError):
        terms = coco_terms(whole)
    name_of = {category.id: category.name for category in file.categories}
    if len(name_of) < len(file.categories):
        raise WrongUse(f"{path}: two categories have one id; {_PANOPTIC}")
    names = sorted({*name_of.values()})
    pictures = _by_id(file.images, Picture, f"{path.name} images", "image-malformed", excluded)
    reason = "annotation-malformed"
    present = dict[Id, NDArray[np.bool_]]()
    for place, scene in _by_id(file.annotations, Segments, f"{path.name} annotations", reason, excluded).values():
        areas = Counter[str]()
        for segment in scene.segments_info:
            areas[name_of.get(segment.category_id, "")] += segment.area
        _, picture = pictures.get(scene.id, ("", None))
        pixels = picture.width * picture.height if picture is not None else 0
        if picture is None or "" in areas or areas.total() > pixels:
            excluded.add(reason, f"{place} is of no usable image or category, or larger than its image")
        else:  # whole numbers: exactly one per cent is not more
            present[scene.id] = np.array([areas[name] * 100 > pixels * PERCENT for name in names], np.bool_)
    if not present:
        refuse_unusable(path, excluded, _PANOPTIC)
    ids = sorted(present)
    return Scenes(
        pictures=[pictures[image][1] for image in ids],
        names=names,
        present=np.array([present[image] for image in ids]),
        terms=tuple(terms.get(str(image), NOTHING) for image in ids),
    )


def _whole(path: Path, form: Any, value: Any, remedy: str) -> Any:
    """A whole file in its form; raises `WrongUse`."""
    try:
        return TypeAdapter(form).validate_python(value)
    except ValidationError as error:
        raise WrongUse(f"{path}: {misfit(error)[1]}; {remedy}") from error


R = TypeVar("R", Instance, Picture, Segments)


def _by_id(values: list[Any], form: type[R], place: str, reason: str, excluded: LeftOut) -> dict[Any, tuple[str, R]]:
    """Place and record of each entry of a list, by its id; those of another form, or with an id again, are counted."""
    adapter, records = TypeAdapter(form), dict[Any, tuple[str, R]]()
    for number, value in enumerate(values):
        here = f"{place}[{number}]"
        try:
            record = adapter.validate_python(value)
        except ValidationError as error:
            excluded.add(reason, f"{here} {misfit(error)[1]}")
            continue
        if record.id in records:
            excluded.add(reason, f"{here} has id {record.id}, which came before")
        else:
            records[record.id] = here, record
    return records


class OutsideImage(Exception):
    """A box of which nothing lies in its image."""


def crop(pixels: Pixels, box: Box, published: bool = False) -> Pixels:
    """The object in ``box`` and its surroundings, padded to a square with zeros, (side, side, 3).

    The box is made 1.7 times as wide and as high around its centre, which is what "dilate the box by a factor of 0.7 in
    height and width" says, and cut off at the image.

    Args:
        pixels: of the whole image, (height, width, 3).
        box: x, y, width, height; pixels.
        published: as the released evaluation does, by 0.7 of width and height to the left and the top; right and
            bottom are then 1.7 times the size from the new corner, which is cut off first. So nothing is seen to the
            right of and below an object that is far from the border.

    Raises:
        OutsideImage: nothing of the box lies in the image, also where its surroundings would.
    """
    size, start, length = np.array(pixels.shape[1::-1]), np.array(box[:2]), np.array(box[2:])
    before = DILATION if published else DILATION / 2
    first = np.clip(start - before * length, 0, size)
    last = np.minimum((first if published else start) + (1 + before) * length, size)
    (left, top), (right, bottom) = np.rint([first, last]).astype(int).tolist()  # as Pillow rounds, half to even
    if not ((start < size) & (start + length > 0)).all() or right <= left or bottom <= top:
        shown = ", ".join(f"{number:g}" for number in box)
        raise OutsideImage(f"box [{shown}] has no pixel in an image of {size[0]} x {size[1]}")
    cut = pixels[top:bottom, left:right]
    side = max(cut.shape[:2])
    y, x = ((side - length) // 2 for length in cut.shape[:2])
    return np.pad(cut, ((y, side - cut.shape[0] - y), (x, side - cut.shape[1] - x), (0, 0)))
