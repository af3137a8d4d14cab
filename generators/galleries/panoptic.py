"""Reading COCO Panoptic annotations: which categories an image shows (GeneCIS, A.2).

``{images: [{id, width, height, file_name}], annotations: [{image_id, file_name, segments_info: [{id, category_id, area,
bbox, iscrowd}]}], categories: [{id, name, isthing, ...}]}``. The PNGs of segments need not be there: ``area`` counts
their pixels. Void pixels have no segment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.licences.terms import NOTHING, Terms, coco_terms
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import is_media_name, read_json, refuse_unusable
from twinset.generators.record_fields import misfit

PERCENT = 1  # a category is present where it takes more than this much of the pixels (GeneCIS, A.2)

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


def _in_folder(name: str) -> str:
    if not is_media_name(name):
        raise ValueError("it is not the name of a file in the folder")
    return name


def _condition(name: str) -> str:
    if not condition_name(name).strip():
        raise ValueError("it is not a name")
    return condition_name(name)


#: What JSON readers of all languages agree on.
Id = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Side = Annotated[int, Field(strict=True, ge=1, le=1 << 16)]


class Category(BaseModel):
    """A category, named as conditions say it."""

    id: Id
    name: Annotated[str, AfterValidator(_condition)]


class PictureRecord(BaseModel):
    """An image."""

    id: Id
    file_name: Annotated[str, AfterValidator(_in_folder)]
    width: Side
    height: Side


class SegmentRecord(BaseModel):
    """A segment. area: its pixels."""

    id: Id
    category_id: Id
    area: Id


class SceneRecord(BaseModel):
    """The segments of an image."""

    image_id: Id
    segments_info: list[SegmentRecord]


class PanopticFile(BaseModel):
    """The whole file; its entries are checked one by one."""

    categories: list[Category]
    images: list[Any]
    annotations: list[Any]


_FILE, _PICTURE, _SCENE = TypeAdapter(PanopticFile), TypeAdapter(PictureRecord), TypeAdapter(SceneRecord)
_REMEDY = "source.annotations must be a COCO Panoptic file such as panoptic_val2017.json; correct it there"


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
    try:
        file = _FILE.validate_python(whole)
    except ValidationError as error:
        raise WrongUse(f"{path}: {misfit(error)[1]}; {_REMEDY}") from error
    if len({category.id for category in file.categories}) < len(file.categories):
        raise WrongUse(f"{path}: two categories have one id; {_REMEDY}")
    with naming(str(path), ValueError):
        terms = coco_terms(whole)
    pictures: dict[int, PictureRecord] = {}
    for number, value in enumerate(file.images):
        try:
            picture = _PICTURE.validate_python(value)
            if picture.id in pictures:
                raise ValueError(f"has id {picture.id}, which came before")
            pictures[picture.id] = picture
        except ValueError as error:
            excluded.add("image-malformed", f"{path.name} images[{number}] {_problem(error)}")
    names = sorted({category.name for category in file.categories})
    column = {category.id: names.index(category.name) for category in file.categories}
    areas: dict[int, NDArray[np.int64]] = {}
    for number, value in enumerate(file.annotations):
        try:
            scene = _SCENE.validate_python(value)
            if scene.image_id in areas:
                raise ValueError(f"has id {scene.image_id}, which came before")
            areas[scene.image_id] = _areas(scene, column, len(names), pictures)
        except ValueError as error:
            excluded.add("annotation-malformed", f"{path.name} annotations[{number}] {_problem(error)}")
    if not areas:
        refuse_unusable(path, excluded, _REMEDY)
    ids = sorted(areas)
    pixels = np.array([pictures[image].width * pictures[image].height for image in ids], dtype=np.int64)
    covered = np.array([areas[image] for image in ids], dtype=np.int64).reshape(len(ids), len(names))
    return Scenes(
        ids=np.array(ids, dtype=np.int64),
        files=tuple(pictures[image].file_name for image in ids),
        names=tuple(names),
        present=covered * 100 > pixels[:, np.newaxis] * PERCENT,  # whole numbers: exactly one per cent is not more
        terms=tuple(terms.get(str(image), NOTHING) for image in ids),
    )


def _problem(error: ValueError) -> str:
    return misfit(error)[1] if isinstance(error, ValidationError) else str(error)


def _areas(
    scene: SceneRecord, column: dict[int, int], columns: int, pictures: dict[int, PictureRecord]
) -> NDArray[np.int64]:
    """Pixels of each category in one image, (columns,); raises `ValueError` for what contradicts the rest."""
    picture = pictures.get(scene.image_id)
    if picture is None:
        raise ValueError(f"image_id {scene.image_id} is not an id of `images` that can be used")
    if len({segment.id for segment in scene.segments_info}) < len(scene.segments_info):
        raise ValueError("has a segment whose id came before")
    areas = [0] * columns
    for segment in scene.segments_info:
        if segment.category_id not in column:
            raise ValueError(f"category_id {segment.category_id} is not an id of `categories`")
        areas[column[segment.category_id]] += segment.area
    if sum(areas) > picture.width * picture.height:
        pixels = picture.width * picture.height
        raise ValueError(f"segments_info takes {sum(areas)} pixels of an image that has {pixels}")
    return np.array(areas, dtype=np.int64)
