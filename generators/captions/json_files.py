"""Captions in files of one JSON value: COCO's, Karpathy's, lists of images, Visual Genome's regions, SBU's."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from twinset.generators.annotation_files import Skipped, read_json
from twinset.generators.captions.tables import Read, from_fields, terms_in
from twinset.manifests.errors import WrongUse
from twinset.manifests.licences.terms import NOTHING, coco_terms

_FORMS = (
    "COCO's {images, annotations}, Karpathy's {images: [{filename, split, sentences}]}, lists of {image_name, "
    "captions: […]}, Visual Genome's [{id, regions}], SBU's {image_urls, captions}, or a list of objects with a "
    "caption and an image"
)


def read_json_captions(path: Path) -> Iterator[Read]:
    """The captions of a file, in its order, by the form that its first records have.

    One JSON value, so that the whole file is held: Karpathy's of COCO has 144 MB.
    Raises `WrongUse` where it has another structure.
    """
    content: Any = read_json(path)
    reader = _reader(content)
    if reader is None:
        raise WrongUse(f"{path}: not captions in a form that is known; they are {_FORMS}")
    try:
        yield from reader(content)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise WrongUse(
            f"{path}: not captions as its form has them ({type(error).__name__}: {error}); forms are {_FORMS}"
        ) from error


def _reader(content: Any) -> Callable[[Any], Iterator[Read]] | None:
    if isinstance(content, dict):
        if "annotations" in content:
            return _coco
        if "image_urls" in content and "captions" in content:
            return _sbu
        first = next(iter(content["images"]), None) if isinstance(content.get("images"), list) else None
        return _karpathy if isinstance(first, dict) and "sentences" in first else None
    if isinstance(content, list) and content and isinstance(content[0], dict):
        several = "captions" in content[0] or isinstance(content[0].get("caption"), list)  # the latter is ARO's
        return _regions if "regions" in content[0] else _images if several else _objects
    return None


def _coco(content: Any) -> Iterator[Read]:
    """``{"images": [{id, file_name, license, flickr_url}], "annotations": [{id, image_id, caption}], "licenses": [{id,
    name, url}]}``, of which the licences and addresses may be absent."""
    terms = coco_terms(content)
    files: dict[int, str] = {}
    for image in content["images"]:
        number, name = int(image["id"]), str(image["file_name"])
        if files.setdefault(number, name) != name:
            raise ValueError(f"image id {number} is that of {files[number]} and of {name}")
    without = dict.fromkeys(files)
    if not isinstance(content["annotations"], list):
        raise TypeError("annotations is not a list")
    for number, annotation in enumerate(content["annotations"], 1):
        place = f"annotation {number}"
        if not isinstance(annotation, dict) or not isinstance(annotation.get("id"), int):
            yield Skipped(place, "no-caption-id")
        elif not isinstance(of := annotation.get("image_id"), int) or of not in files:
            yield Skipped(place, "unknown-image")
        else:
            without.pop(of, None)
            stated = terms.get(str(of), NOTHING).columns
            yield from_fields({**annotation, **stated, "image": files[of]}, place, str(annotation["id"]))
    yield from (Skipped(f"image {number}", "no-caption") for number in without)


def _karpathy(content: Any) -> Iterator[Read]:
    """``{"images": [{filename, split, sentences: [{raw, sentid}], filepath, cocoid}]}``, the last two of COCO alone.

    Images of COCO go by COCO's number, so that they are those of its own files.
    """
    for number, image in enumerate(content["images"], 1):
        folder = f"{image['filepath']}/" if image.get("filepath") else ""
        named = {"image_id": image.get("cocoid", image["filename"]), "image": f"{folder}{image['filename']}"}
        named |= terms_in(image)
        if not image["sentences"]:
            yield Skipped(f"image {number}", "no-caption")
        for sentence in image["sentences"]:
            fields = {**named, "caption": sentence["raw"], "split": image.get("split")}
            yield from_fields(fields, f"image {number}", str(sentence["sentid"]))


def _images(content: Any) -> Iterator[Read]:
    """``[{image_name, captions: […], split, file_path}]``, or ``[{image, caption: […]}]`` as ARO has it; an id of a
    caption is that of its image and a number.
    """
    for number, image in enumerate(content, 1):
        name = str(image["image_name"] if "image_name" in image else image["image"])
        folder = f"{image['file_path']}/" if image.get("file_path") else ""
        said = image["captions"] if "captions" in image else image["caption"]
        if not isinstance(said, str | list):
            raise TypeError(f"captions of {name[:100]!r} are neither text nor a list")
        said = [said] if isinstance(said, str) else said
        if not said:
            yield Skipped(f"image {number}", "no-caption")
        for at, caption in enumerate(said):
            fields = {"image_id": name, "image": f"{folder}{name}", "caption": caption, "split": image.get("split")}
            yield from_fields(fields | terms_in(image), f"image {number}", f"{name}#{at}")


def _regions(content: Any) -> Iterator[Read]:
    """``[{id, regions: [{region_id, phrase}]}]``: each region's phrase is a caption of its image, ``ID.jpg``."""
    for number, image in enumerate(content, 1):
        for region in image["regions"]:
            fields = {"image_id": image["id"], "image": f"{image['id']}.jpg", "caption": region["phrase"]}
            yield from_fields(fields | terms_in(image), f"image {number}", str(region["region_id"]))


def _sbu(content: Any) -> Iterator[Read]:
    """``{"image_urls": […], "captions": […]}``, side by side."""
    for number, (url, caption) in enumerate(zip(content["image_urls"], content["captions"], strict=True), 1):
        yield from_fields({"url": url, "caption": caption}, f"caption {number}", f"{number:09d}")


def _objects(content: Any) -> Iterator[Read]:
    """A list of objects with the fields of `generators.captions.tables`."""
    for number, record in enumerate(content, 1):
        if isinstance(record, dict):
            yield from_fields(record, f"object {number}", f"{number:09d}")
        else:
            yield Skipped(f"object {number}", "no-object")
