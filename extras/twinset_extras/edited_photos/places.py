"""Where things are in a picture: COCO's boxes and masks, which of them a noun means, and the mask of a change."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import read_json, refuse_unusable, text_of
from twinset.generators.licences import coco_terms
from twinset_extras.comparison import Bools

SIDES = 2  # numbers of a corner
FARTHEST = 1e9  # pixels


class BadMask(Exception):
    """A segmentation that is not one of its picture."""


@dataclass(frozen=True, slots=True)
class Place:
    """One instance. box: left, top, width, height in pixels. outline: COCO's ``segmentation``, null for the box alone.

    crowd: whether it stands for several that nobody counted.
    """

    category: str
    box: tuple[float, float, float, float]
    outline: Any
    crowd: bool

    @property
    def area(self) -> float:
        return self.box[2] * self.box[3]


class Instances:
    """COCO's ``{images: [{id, file_name}], categories: [{id, name}], annotations: [{image_id, bbox, …}]}``.

    What is wrong with an annotation is counted in `left_out`. Raises `WrongUse` where nothing can be used.
    """

    def __init__(self, path: Path, left_out: LeftOut) -> None:
        raw = read_json(path)
        try:
            names = _by_id(raw["categories"], "name")
            images = _by_id(raw["images"], "file_name")
            annotations, self._terms = [*raw["annotations"]], coco_terms(raw)
        except (TypeError, KeyError, ValueError) as error:
            form = "give COCO's instances: objects with images (id, file_name), categories (id, name) and annotations"
            raise WrongUse(f"{path}: {error!r}; {form}") from error
        names = {number: name.lower() for number, name in names.items()}
        self.categories = sorted({*names.values()})
        self._by_id: dict[str, list[Place]] = {image: [] for image in images}
        # Captions name a photo by its file, with or without folders, or by its number.
        self._by_file = {file: image for image, file in images.items()}
        stems = Counter(map(_stem, images.values()))
        self._by_stem = {stem: file for file in images.values() if stems[stem := _stem(file)] == 1}
        for number, entry in enumerate(annotations, 1):
            if not isinstance(entry, dict):
                left_out.add("bad-instance", f"{path.name} annotation {number}")
                continue
            image, category = (text_of(entry.get(field)) for field in ("image_id", "category_id"))
            box = entry.get("bbox")
            if image not in images or category not in names or not _is_box(box):
                left_out.add("bad-instance", f"{path.name} annotation {number}")
                continue
            place = Place(
                names[category], (box[0], box[1], box[2], box[3]), entry.get("segmentation"), bool(entry.get("iscrowd"))
            )
            self._by_id[image].append(place)
        if not any(self._by_id.values()):
            refuse_unusable(path, left_out, "annotations need the id of an image and of a category, and a bbox")

    def of(self, image: str, image_id: str) -> list[Place] | None:
        """The instances of a photo by its name or its id; None where it is not annotated."""
        return self._by_id.get(self._id_of(image, image_id))

    def terms_of(self, image: str, image_id: str) -> Terms:
        """What the file states of a photo."""
        return self._terms.get(self._id_of(image, image_id), NOTHING)

    def _id_of(self, image: str, image_id: str) -> str:
        file = image if image in self._by_file else self._by_stem.get(_stem(image))
        return image_id if file is None or _differ(file, image) else self._by_file[file]


def _stem(file: str) -> str:
    return PurePosixPath(file).stem


def _differ(file: str, other_file: str) -> bool:
    """Whether two names of one stem lie in folders of which neither ends with the other."""
    folders = [PurePosixPath(name).parent.parts[::-1] for name in (file, other_file)]
    return any(folder != other_folder for folder, other_folder in zip(*folders, strict=False))


def _by_id(rows: Sequence[Mapping[str, Any]], field: str) -> dict[str, str]:
    """A field of each row by the row's id; raises ValueError for an id or a text that is none, or comes twice."""
    by_id = dict[str, str]()
    for row in rows:
        number, text = text_of(row["id"]), row[field]
        if not number or not isinstance(text, str) or not text.strip() or number in by_id:
            raise ValueError(f"id {row['id']!r} with {field} {text!r}: empty or there twice")
        by_id[number] = text
    return by_id


def chosen(places: Sequence[Place], count: int, removed: int) -> list[Place] | str:
    """The instances that must change, or the reason why it is not clear which.

    places: all that the noun may be. count, removed: as `twinset_extras.edited_photos.wording.Wanted`.
    """
    categories = {place.category for place in places}
    if not categories:
        return "not-in-photo"
    if len(categories) > 1:
        return "several-categories"
    if count and any(place.crowd for place in places):
        return "other-number"
    if len(places) != count if count else len(places) < 2 and not places[0].crowd:
        return "other-number"
    return sorted(places, key=lambda place: place.area)[: removed if removed > 0 else None]


def stored(places: Sequence[Place]) -> str:
    """Places as a plan holds them."""
    return json.dumps([[place.box, place.outline] for place in places], separators=(",", ":"))


def mask_of(text: str, height: int, width: int) -> Bools:
    """Where some `stored` places are in a picture of that size; raises `BadMask`."""
    return np.asarray(np.logical_or.reduce([np.zeros((height, width), np.bool_), *_masks(text, height, width)]))


def largest_overlap(text: str, mask: Bools) -> float:
    """The largest share of any of some `stored` places that lies in a mask (0-1); raises `BadMask`."""
    masks = _masks(text, *mask.shape)
    return max((float((instance & mask).sum() / max(instance.sum(), 1)) for instance in masks), default=0.0)


def _masks(text: str, height: int, width: int) -> Iterator[Bools]:
    for box, outline in json.loads(text):
        yield outline_mask(outline, height, width) if outline else box_mask(box, height, width)


def box_mask(box: Sequence[float], height: int, width: int) -> Bools:
    """A box; raises `BadMask` where it lies outside of the picture by more than a pixel."""
    left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
    if min(left, top) < -1 or right > width + 1 or bottom > height + 1:
        raise BadMask(f"box {list(box)} in a picture of {width} x {height}")
    mask = np.zeros((height, width), np.bool_)
    mask[max(math.floor(top), 0) : math.ceil(bottom), max(math.floor(left), 0) : math.ceil(right)] = True
    return mask


def outline_mask(outline: Any, height: int, width: int) -> Bools:
    """COCO's segmentation: polygons ``[[x, y, x, y …]]``, or run lengths ``{size, counts}``; raises `BadMask`."""
    if isinstance(outline, Mapping):
        return _runs(outline, height, width)
    import cv2

    mask = np.zeros((height, width), np.uint8)
    for polygon in outline if isinstance(outline, list) else [outline]:
        if (
            not isinstance(polygon, list)
            or len(polygon) < 3 * SIDES
            or len(polygon) % SIDES
            or not all(map(_is_number, polygon))
        ):
            raise BadMask(f"polygon {str(polygon)[:60]}")
        corners = np.asarray(polygon, np.float64).reshape(-1, SIDES)
        if corners.min() < -1 or (corners.max(axis=0) > (width + 1, height + 1)).any():
            raise BadMask(f"a polygon to {corners.max(axis=0).tolist()} in a picture of {width} x {height}")
        cv2.fillPoly(mask, [np.round(corners).astype(np.int32)], 1)
    return mask.astype(np.bool_)


def _runs(outline: Mapping[str, Any], height: int, width: int) -> Bools:
    """Lengths of runs down the columns, of nothing first."""
    runs = outline.get("counts")
    if outline.get("size") != [height, width]:
        raise BadMask(f"a mask of size {str(outline.get('size'))[:60]} in a picture of {width} x {height}")
    if not isinstance(runs, list) or not all(type(run) is int and 0 <= run <= height * width for run in runs):
        raise BadMask("runs that are no numbers")
    if sum(runs) != height * width:
        raise BadMask(f"runs of {sum(runs)} pixels in a picture of {width} x {height}")
    flat = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return flat.reshape(width, height).T


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < FARTHEST


def _is_box(value: Any) -> TypeGuard[list[float]]:
    return isinstance(value, list) and len(value) == 4 and all(map(_is_number, value)) and min(value[2:]) > 0
