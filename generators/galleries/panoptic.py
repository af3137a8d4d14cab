"""Reading COCO Panoptic annotations: which categories an image shows (GeneCIS, A.2).

``{images: [{id, width, height, file_name}], annotations: [{image_id, file_name, segments_info: [{id, category_id, area,
bbox, iscrowd}]}], categories: [{id, name, isthing, ...}]}``. The PNGs of segments need not be there: ``area`` counts
their pixels. Void pixels have no segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from generators.annotation_files import media_name, read_json
from manifests.errors import WrongUse

PERCENT = 1  # a category is present where it takes more than this much of the pixels (GeneCIS, A.2)
LARGEST_ID = 2**53  # what JSON readers of all languages agree on
LARGEST_SIDE = 1 << 16

SUFFIXES = ("-merged", "-other", "-stuff")
QUALIFIED = ("floor-", "wall-")  # what follows says what it is made of


@dataclass(frozen=True, slots=True, eq=False)
class Scenes:
    """Images and their categories, by image id.

    ids: (images,) int64. files: names of the images' files. names: of the categories, as a condition says them, sorted.
    present: (images, categories) bool.
    """

    ids: NDArray[np.int64]
    files: tuple[str, ...]
    names: tuple[str, ...]
    present: NDArray[np.bool_]


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


def read_scenes(path: Path) -> Scenes:
    """All annotated images of a COCO Panoptic file; categories that conditions call alike count as one.

    Raises `WrongUse` naming the entry for anything that is not in the format, repeats or contradicts itself (an unknown
    image or category, segments larger than their image).
    """
    whole = read_json(path)
    if not isinstance(whole, dict):
        _refuse(path, "the file", "is no JSON object")
    categories: dict[int, str] = {}
    for place, record in _records(path, whole, "categories"):
        name = record.get("name")
        if not isinstance(name, str) or not condition_name(name).strip():
            _refuse(path, f"{place}.name", f"{name!r} is no name")
        _once(path, place, categories, _whole_number(path, place, record, "id"), condition_name(name))
    sizes: dict[int, tuple[int, str]] = {}
    for place, record in _records(path, whole, "images"):
        name = record.get("file_name")
        if not isinstance(name, str):
            _refuse(path, f"{place}.file_name", f"{name!r} is no name of a file")
        width, height = (_whole_number(path, place, record, side, 1, LARGEST_SIDE) for side in ("width", "height"))
        _once(path, place, sizes, _whole_number(path, place, record, "id"), (width * height, media_name(path, name)))

    names = sorted(set(categories.values()))
    column = {identifier: names.index(name) for identifier, name in categories.items()}
    areas: dict[int, NDArray[np.int64]] = {}
    for place, record in _records(path, whole, "annotations"):
        image = _whole_number(path, place, record, "image_id")
        if image not in sizes:
            _refuse(path, f"{place}.image_id", f"{image} is no id of `images`")
        _once(path, place, areas, image, _areas(path, place, record, column, len(names), sizes[image][0]))
    ids = sorted(areas)
    taken = np.array([areas[image] for image in ids], dtype=np.int64).reshape(len(ids), len(names))
    pixels = np.array([sizes[image][0] for image in ids], dtype=np.int64)
    return Scenes(
        ids=np.array(ids, dtype=np.int64),
        files=tuple(sizes[image][1] for image in ids),
        names=tuple(names),
        present=taken * 100 > pixels[:, np.newaxis] * PERCENT,  # whole numbers: exactly one per cent is not more
    )


def _areas(
    path: Path, place: str, record: dict[str, Any], column: dict[int, int], columns: int, pixels: int
) -> NDArray[np.int64]:
    """Pixels of each category in one image, (columns,)."""
    areas = np.zeros(columns, dtype=np.int64)
    segments: dict[int, None] = {}
    for segment_place, segment in _records(path, record, "segments_info", f"{place}."):
        _once(path, segment_place, segments, _whole_number(path, segment_place, segment, "id"), None)
        category = _whole_number(path, segment_place, segment, "category_id")
        if category not in column:
            _refuse(path, f"{segment_place}.category_id", f"{category} is no id of `categories`")
        areas[column[category]] += _whole_number(path, segment_place, segment, "area", 0, pixels)
    if areas.sum() > pixels:
        _refuse(path, f"{place}.segments_info", f"take {areas.sum()} pixels of an image that has {pixels}")
    return areas


def _records(path: Path, holder: dict[str, Any], key: str, within: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Objects of a list with their places, such as ``annotations[3]``."""
    listed = holder.get(key)
    if not isinstance(listed, list):
        _refuse(path, f"{within}{key}", "is no list")
    for number, record in enumerate(listed):
        if not isinstance(record, dict):
            _refuse(path, f"{within}{key}[{number}]", "is no JSON object")
    return [(f"{within}{key}[{number}]", record) for number, record in enumerate(listed)]


def _whole_number(
    path: Path, place: str, record: dict[str, Any], key: str, least: int = 0, most: int = LARGEST_ID
) -> int:
    value = record.get(key)
    if type(value) is not int or not least <= value <= most:  # a bool is an int to isinstance
        _refuse(path, f"{place}.{key}", f"{str(value)[:40]} is no whole number from {least} to {most}")
    return value


def _once(path: Path, place: str, known: dict[int, Any], identifier: int, value: Any) -> None:
    if identifier in known:
        _refuse(path, place, f"has id {identifier}, which came before")
    known[identifier] = value


def _refuse(path: Path, place: str, what: str) -> NoReturn:
    remedy = "source.annotations must be a COCO Panoptic file such as panoptic_val2017.json; correct it there"
    raise WrongUse(f"{path}: {place} {what}; {remedy}")
