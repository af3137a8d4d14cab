"""The miniature's photos: one painted world with the three annotations that GeneCIS is made from.

images/ID.jpg           of twelve digits, as both Visual Genome and COCO would name them
captions.json           COCO Captions; all of them are true
concreteness.txt        ratings in the format of Brysbaert et al. (2014), made up
panoptic.json           COCO Panoptic, its segments in panoptic/ID.png
vaw.json                attributes of things, as in VAW
attribute_types.json    attributes by type
"""

import json
from pathlib import Path
from typing import Any

from PIL import Image

from twinset_demo.canvas import HEIGHT, WIDTH
from twinset_demo.photos import formats
from twinset_demo.photos.relations import captions
from twinset_demo.photos.scenes import scenes

QUALITY = 92  # of the JPEGs
_INFO = {"description": "Stills of the miniature, drawn by twinset", "version": "1", "licence": "CC0 1.0"}


def write_photos(folder: Path) -> None:
    """Paint all photos and write their annotations into an existing folder."""
    (folder / "images").mkdir()
    (folder / "panoptic").mkdir()
    images: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    panoptic: list[dict[str, Any]] = []
    instances: list[dict[str, Any]] = []
    for scene in scenes():
        photo = scene.paint()
        # Colours as fine as brightness: a thin red line is red.
        Image.fromarray(photo.pixels).save(folder / "images" / scene.file_name, quality=QUALITY, subsampling=0)
        identifier = scene.image_id
        images.append({"id": identifier, "file_name": scene.file_name, "width": WIDTH, "height": HEIGHT, "license": 1})
        for number, relation in enumerate(captions(scene, photo), 1):
            said.append({"id": identifier * 10 + number, "image_id": identifier, "caption": relation.said})
        annotation, pixels = formats.panoptic_annotation(scene, photo)
        Image.fromarray(pixels).save(folder / "panoptic" / annotation["file_name"])
        panoptic.append(annotation)
        instances += formats.attribute_instances(scene, photo)
    head = {"info": _INFO, "licenses": formats.LICENCES, "images": images}
    written = {
        "captions": head | {"annotations": said},
        "panoptic": head | {"annotations": panoptic, "categories": formats.panoptic_categories()},
        "vaw": instances,
        "attribute_types": formats.attribute_types(),
    }
    for name, value in written.items():
        (folder / f"{name}.json").write_text(json.dumps(value) + "\n", "utf-8")
    (folder / "concreteness.txt").write_text(formats.ratings_table(), "utf-8")
