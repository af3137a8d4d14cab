"""Annotations of the photos in the formats of COCO Panoptic and VAW, and ratings of their captions' words."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset_demo.photos.painter import KINDS, Photo
from twinset_demo.photos.relations import VISIBLE
from twinset_demo.photos.scenes import Scene

LICENCES = [{"id": 1, "name": "CC0 1.0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}]
#: Concreteness of the words of the captions, from 1 to 5: made up for this little world, rated by nobody.
CONCRETENESS: dict[float, tuple[str, ...]] = {
    5.0: ("apple", "banana", "ball", "bicycle", "car", "cat", "chair", "cup", "dog", "horse", "house", "tree"),
    4.96: ("bird", "boat", "book", "bottle", "bus", "cow", "pizza", "rock", "sheep", "truck", "umbrella"),
    4.93: ("backpack", "bed", "bench", "bowl", "box", "cake", "clock", "couch", "flower", "flowers", "table", "window"),
    4.9: ("dress", "grass", "lamp", "laptop", "oven", "pillow", "refrigerator", "rug", "sand", "shirt", "sink", "vase"),
    4.87: ("curtain", "fence", "kite", "microwave", "plant", "snow", "suitcase", "surfboard", "television", "towel"),
    4.84: ("fire hydrant", "stop sign", "teddy bear", "traffic light", "man", "woman", "lake", "wall"),
    4.72: ("building", "floor", "path", "road", "sidewalk"),
    4.6: ("counter", "sea"),
    4.45: ("sky",),
    3.4: ("front",),
}
#: COCO's panoptic categories that the photos have, by their supercategory, with their identifiers.
SUPERCATEGORIES: dict[str, dict[str, int]] = {
    "person": {"person": 1},
    "vehicle": {"bicycle": 2, "car": 3, "bus": 6, "truck": 8, "boat": 9},
    "outdoor": {"traffic light": 10, "fire hydrant": 11, "stop sign": 13, "bench": 15},
    "animal": {"bird": 16, "cat": 17, "dog": 18, "horse": 19, "sheep": 20, "cow": 21},
    "accessory": {"backpack": 27, "umbrella": 28, "suitcase": 33},
    "sports": {"sports ball": 37, "kite": 38, "surfboard": 42},
    "kitchen": {"bottle": 44, "cup": 47, "bowl": 51},
    "food": {"banana": 52, "apple": 53, "pizza": 59, "cake": 61},
    "furniture": {"chair": 62, "couch": 63, "potted plant": 64, "bed": 65},
    "electronic": {"tv": 72, "laptop": 73},
    "appliance": {"microwave": 78, "oven": 79, "sink": 81, "refrigerator": 82},
    "indoor": {"book": 84, "clock": 85, "vase": 86, "teddy bear": 88},
    "raw-material": {"cardboard": 100},
    "furniture-stuff": {"counter": 107, "light": 130, "cabinet-merged": 188, "table-merged": 189},
    "textile": {"curtain": 109, "pillow": 141, "towel": 168, "rug-merged": 200},
    "floor": {"floor-wood": 118, "floor-other-merged": 190},
    "plant": {"flower": 119, "tree-merged": 184, "grass-merged": 193},
    "building": {"house": 128, "building-other-merged": 197},
    "ground": {"road": 149, "sand": 154, "snow": 159, "pavement-merged": 191, "dirt-merged": 194},
    "water": {"sea": 155, "water-other": 178},
    "window": {"window-other": 181},
    "structural": {"fence-merged": 185},
    "sky": {"sky-other-merged": 187},
    "solid": {"mountain-merged": 192, "rock-merged": 198},
    "wall": {"wall-other-merged": 199},
}
CATEGORIES = {name: identifier for of in SUPERCATEGORIES.values() for name, identifier in of.items()}
FIRST_STUFF = 92  # categories from this one on are stuff, of which an image has one segment each

_NOT_LABELLED = {"man", "woman"}  # their colours are those of their clothes


def panoptic_annotation(scene: Scene, photo: Photo) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    """An entry of COCO Panoptic's ``annotations`` and its PNG's pixels, (240, 320, 3): red is the id's lowest byte.

    Every thing is a segment, and all stuff of a category together is one.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for segment in photo.segments:
        if segment.number in photo.extents:
            category = CATEGORIES[segment.category]
            identifier = category * 65536 + (0 if category >= FIRST_STUFF else segment.number * 251)
            members[identifier].append(segment.number)
    pixels = np.zeros((*photo.labels.shape, 3), np.uint8)
    infos = []
    for identifier, numbers in members.items():
        mask = np.isin(photo.labels, numbers)
        pixels[mask] = (identifier % 256, identifier // 256 % 256, identifier // 65536)
        infos.append(
            {
                "id": identifier,
                "category_id": identifier // 65536,
                "area": int(mask.sum()),
                "bbox": list(cv2.boundingRect(mask.astype(np.uint8))),
                "iscrowd": 0,
            }
        )
    return {"image_id": scene.image_id, "file_name": f"{scene.image_id}.png", "segments_info": infos}, pixels


def panoptic_categories() -> list[dict[str, Any]]:
    """COCO Panoptic's ``categories``, those that the photos have, by their ids."""
    of = ((identifier, name, above) for above, names in SUPERCATEGORIES.items() for name, identifier in names.items())
    return [
        {"supercategory": above, "isthing": int(identifier < FIRST_STUFF), "id": identifier, "name": name}
        for identifier, name, above in sorted(of)
    ]


def attribute_instances(scene: Scene, photo: Photo) -> Iterator[dict[str, Any]]:
    """Instances of VAW: each visible thing with all its attributes, and those that its kind could have instead."""
    for segment in photo.segments:
        mask = photo.labels == segment.number
        if segment.thing is None or segment.noun in _NOT_LABELLED or int(mask.sum()) < VISIBLE:
            continue
        attributes = segment.thing.look.attributes()
        if not attributes:
            continue
        possible = KINDS[segment.noun].choices
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        yield {
            "image_id": str(scene.image_id),
            "instance_id": f"{scene.image_id}{segment.number:03d}",
            "instance_bbox": [float(side) for side in photo.extents[segment.number]],
            "instance_polygon": [cv2.approxPolyDP(one, 1.0, True)[:, 0].astype(float).tolist() for one in contours],
            "object_name": segment.noun,
            "positive_attributes": list(attributes.values()),
            "negative_attributes": [
                other
                for kind, attribute in attributes.items()
                for other in dict.fromkeys(possible[kind])
                if other != attribute
            ],
        }


def attribute_types() -> dict[str, list[str]]:
    """VAW's taxonomy: the attributes of each type."""
    found: dict[str, set[str]] = defaultdict(set)
    for kind in KINDS.values():
        for of, attributes in kind.choices.items():
            found[of].update(attributes)
    return {of: sorted(attributes) for of, attributes in sorted(found.items())}


def ratings_table() -> str:
    """Concreteness ratings as in the file of Brysbaert et al. (2014): tab-separated, a word a line.

    What that file counts of its raters is 0, since there were none.
    """
    lines = ["Word\tBigram\tConc.M\tConc.SD\tUnknown\tTotal\tPercent_known\tSUBTLEX\tDom_Pos"]
    for rating, words in CONCRETENESS.items():
        lines += [f"{word}\t{int(' ' in word)}\t{rating:g}\t0\t0\t0\t1.00\t0\tNoun" for word in words]
    return "\n".join(lines) + "\n"
