"""The miniature's stills: one drawn world with the three annotations that GeneCIS is made from.

images/ID.jpg           of twelve digits, as both Visual Genome and COCO would name them
captions.json           COCO Captions; what they say is to be seen
concreteness.txt        ratings in the format of Brysbaert et al. (2014), made up
panoptic.json           COCO Panoptic, its segments in panoptic/ID.png
vaw.json                attributes of things as in VAW
attribute_types.json    attributes by type
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from generators.builtin.photos.annotations import (
    LICENCES,
    attribute_instances,
    attribute_types,
    caption_annotations,
    image_record,
    panoptic_annotation,
    panoptic_categories,
    ratings_table,
)
from generators.builtin.photos.concreteness import ratings
from generators.builtin.photos.relations import captions
from generators.builtin.photos.scenes import scenes

QUALITY = 92  # of the JPEGs
_INFO = {"description": "Stills of the miniature, drawn by twinset", "version": "1", "licence": "CC0 1.0"}


def draw_stills(folder: Path) -> None:
    """Draw all stills and write their annotations into an existing folder."""
    (folder / "images").mkdir()
    (folder / "panoptic").mkdir()
    images: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    panoptic: list[dict[str, Any]] = []
    instances: list[dict[str, Any]] = []
    for scene in scenes():
        still = scene.paint()
        # Colours as fine as brightness: a thin red line is red.
        Image.fromarray(still.pixels).save(folder / "images" / scene.file_name, quality=QUALITY, subsampling=0)
        images.append(image_record(scene, still))
        said += caption_annotations(scene, captions(scene, still))
        annotation, pixels = panoptic_annotation(scene, still)
        Image.fromarray(pixels).save(folder / "panoptic" / annotation["file_name"])
        panoptic.append(annotation)
        instances += attribute_instances(scene, still)
    head = {"info": _INFO, "licenses": LICENCES, "images": images}
    _write(folder / "captions.json", head | {"annotations": said})
    _write(folder / "panoptic.json", head | {"annotations": panoptic, "categories": panoptic_categories()})
    _write(folder / "vaw.json", instances)
    _write(folder / "attribute_types.json", attribute_types())
    (folder / "concreteness.txt").write_text(ratings_table(ratings()), "utf-8")


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value) + "\n", "utf-8")
