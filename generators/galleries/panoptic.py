"""Reading COCO Panoptic annotations: which categories an image shows (GeneCIS, A.2).

``{images: [{id, width, height, file_name}], annotations: [{image_id, file_name, segments_info: [{id, category_id, area,
bbox, iscrowd}]}], categories: [{id, name, isthing, ...}]}``. The PNGs of segments need not be there: ``area`` counts
their pixels. Void pixels have no segment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.licences.terms import NOTHING, Terms, coco_terms
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import is_media_name, read_json, refuse_unusable

PERCENT = 1  # a category is present where it takes more than this much of the pixels (GeneCIS, A.2)
LARGEST_ID = 2**53  # what JSON readers of all languages agree on
LARGEST_SIDE = 1 << 16

SUFFIXES = ("-merged", "-other", "-stuff")
QUALIFIED = ("floor-", "wall-")  # what follows says what it is made of


@dataclass(frozen=True, slots=True, eq=False)
class Scenes:
    """Images and their categories, by image id.

    ids: (images,) int64. files: names of the images' files. names: of the categories, as a condition says them, sorted.
    present: (images, categories) bool. terms: of the images.
    """

    ids: NDArray[np.int64]
    files: tuple[str, ...]
    names: tuple[str, ...]
    present: NDArray[np.bool_]
    terms: tuple[Terms, ...]


def condition_name(category: str) -> str:
    """A category's name as a condition says it: ``sky-other-merged`` is ``sky``, ``floor-wood`` is ``wood floor``.

    The paper strips "miscellaneous identifiers such as '-stuff' and '-other'"; that materials come first, and that
    `window-blind` becomes `window blind`, is in its published templates.
    """
    name = category
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    for thing in QUALIFIED:
        if name.startswith(thing):
            return f"{name.removeprefix(thing).replace('-', ' ')} {thing[:-1]}"
    return name.replace("-", " ")


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
    if not isinstance(whole, dict) or not all(
        isinstance(whole.get(key), list) for key in ("categories", "images", "annotations")
    ):
        raise WrongUse(f"{path}: not an object with lists of images, annotations and categories; {_REMEDY}")
    categories: dict[int, str] = {}
    sizes: dict[int, tuple[int, str]] = {}
    areas: dict[int, NDArray[np.int64]] = {}
    for number, record in enumerate(whole["categories"]):
        try:
            _once(categories, *_category(record))
        except _Malformed as error:
            raise WrongUse(f"{path}: categories[{number}] {error}; {_REMEDY}") from error
    with naming(str(path), ValueError):
        terms = coco_terms(whole)
    for number, record in enumerate(whole["images"]):
        try:
            _once(sizes, *_image(record))
        except _Malformed as error:
            excluded.add("image-malformed", f"{path.name} images[{number}] {error}")
    names = sorted(set(categories.values()))
    column = {identifier: names.index(name) for identifier, name in categories.items()}
    for number, record in enumerate(whole["annotations"]):
        try:
            image = _whole_number(record, "image_id")
            if image not in sizes:
                raise _Malformed(f"image_id {image} is not an id of `images` that can be used")
            _once(areas, image, _areas(record, column, len(names), sizes[image][0]))
        except _Malformed as error:
            excluded.add("annotation-malformed", f"{path.name} annotations[{number}] {error}")
    if not areas:
        refuse_unusable(path, excluded, _REMEDY)
    ids = sorted(areas)
    taken = np.array([areas[image] for image in ids], dtype=np.int64).reshape(len(ids), len(names))
    pixels = np.array([sizes[image][0] for image in ids], dtype=np.int64)
    return Scenes(
        ids=np.array(ids, dtype=np.int64),
        files=tuple(sizes[image][1] for image in ids),
        names=tuple(names),
        present=taken * 100 > pixels[:, np.newaxis] * PERCENT,  # whole numbers: exactly one per cent is not more
        terms=tuple(terms.get(str(image), NOTHING) for image in ids),
    )


_REMEDY = "source.annotations must be a COCO Panoptic file such as panoptic_val2017.json; correct it there"


class _Malformed(Exception):
    """What is wrong with one entry."""


def _category(record: Any) -> tuple[int, str]:
    """Id, and name as conditions say it."""
    identifier, name = _whole_number(record, "id"), record.get("name")
    if not isinstance(name, str) or not condition_name(name).strip():
        raise _Malformed(f"name {name!r} is not a name")
    return identifier, condition_name(name)


def _image(record: Any) -> tuple[int, tuple[int, str]]:
    """Id, number of pixels and file name."""
    identifier, name = _whole_number(record, "id"), record.get("file_name")
    if not isinstance(name, str) or not is_media_name(name):
        raise _Malformed(f"file_name {name!r} is not the name of a file in the folder")
    width, height = (_whole_number(record, side, 1, LARGEST_SIDE) for side in ("width", "height"))
    return identifier, (width * height, name)


def _areas(record: dict[str, Any], column: dict[int, int], columns: int, pixels: int) -> NDArray[np.int64]:
    """Pixels of each category in one image, (columns,)."""
    areas = np.zeros(columns, dtype=np.int64)
    segments: dict[int, None] = {}
    listed = record.get("segments_info")
    if not isinstance(listed, list):
        raise _Malformed("segments_info is not a list")
    for segment in listed:
        _once(segments, _whole_number(segment, "id"), None)
        category = _whole_number(segment, "category_id")
        if category not in column:
            raise _Malformed(f"category_id {category} is not an id of `categories`")
        areas[column[category]] += _whole_number(segment, "area", 0, pixels)
    if areas.sum() > pixels:
        raise _Malformed(f"segments_info takes {areas.sum()} pixels of an image that has {pixels}")
    return areas


def _whole_number(record: Any, key: str, least: int = 0, most: int = LARGEST_ID) -> int:
    if not isinstance(record, dict):
        raise _Malformed("is not a JSON object")
    value = record.get(key)
    if type(value) is not int or not least <= value <= most:  # a bool is an int to isinstance
        raise _Malformed(f"{key} {str(value)[:40]} is not a whole number from {least} to {most}")
    return value


def _once(known: dict[int, Any], identifier: int, value: Any) -> None:
    if identifier in known:
        raise _Malformed(f"has id {identifier}, which came before")
    known[identifier] = value
