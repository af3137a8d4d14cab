"""Captions in files of one JSON value: COCO's, Karpathy's, lists of images, Visual Genome's regions, SBU's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms, coco_terms
from twinset.generators.annotation_files import Skipped, read_json, text_of
from twinset.generators.captions.tables import Read, from_fields, from_record

_FORMS = (
    "COCO's {images, annotations}, Karpathy's {images: [{filename, split, sentences}]}, lists of {image_name, "
    "captions: […]}, Visual Genome's [{id, regions}], SBU's {image_urls, captions}, or a list of objects with a "
    "caption and an image"
)


def read_json_captions(path: Path) -> Iterator[Read]:
    """The captions of a file, in its order; each record of a list is read by itself, as in any other format.

    One JSON value, so that the whole file is held: Karpathy's of COCO has 144 MB.
    Raises `WrongUse` where it has another structure.
    """
    content: Any = read_json(path)
    records = content.get("images") if isinstance(content, dict) else content
    try:
        if isinstance(content, dict) and "annotations" in content:
            yield from _coco(content)
        elif isinstance(content, dict) and {"image_urls", "captions"} <= content.keys():
            for number, (url, caption) in enumerate(zip(content["image_urls"], content["captions"], strict=True), 1):
                yield from_fields({"url": url, "caption": caption}, f"caption {number}", f"{number:09d}")
        elif isinstance(records, list) and any(isinstance(record, dict) for record in records):
            for number, record in enumerate(records, 1):
                listed = isinstance(record, dict) and any(isinstance(value, list) for value in record.values())
                yield from from_record(record, f"{'image' if listed else 'object'} {number}", f"{number:09d}")
        else:
            raise WrongUse(f"{path}: not captions in a form that is known; they are {_FORMS}")
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise WrongUse(
            f"{path}: not captions as its form has them ({type(error).__name__}: {error}); forms are {_FORMS}"
        ) from error


def _coco(content: Any) -> Iterator[Read]:
    """``{"images": [{id, file_name, license, flickr_url}], "annotations": [{id, image_id, caption}], "licenses": [{id,
    name, url}]}``, of which the licences and addresses may be absent."""
    stated = coco_terms(content)
    files: dict[str, str] = {}
    terms: dict[str, Terms] = {}
    for image in content["images"]:
        image_id, name = text_of(image["id"]), str(image["file_name"])
        if not image_id or files.setdefault(image_id, name) != name:
            raise ValueError(f"image id {image['id']} is that of {files.get(image_id, 'none')} and of {name}")
        terms[image_id] = stated.get(str(image["id"]), NOTHING)
    without = dict.fromkeys(files)
    if not isinstance(content["annotations"], list):
        raise TypeError("annotations is not a list")
    for number, annotation in enumerate(content["annotations"], 1):
        place = f"annotation {number}"
        if not isinstance(annotation, dict) or not (caption_id := text_of(annotation.get("id"))):
            yield Skipped(place, "no-caption-id")
        elif (of := text_of(annotation.get("image_id"))) not in files:
            yield Skipped(place, "unknown-image")
        else:
            without.pop(of, None)
            yield from_fields({**annotation, **terms[of].columns, "image": files[of]}, place, caption_id)
    yield from (Skipped(f"image {image_id}", "no-caption") for image_id in without)
