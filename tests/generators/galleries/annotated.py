"""Small faithful annotations: COCO Panoptic, and VAW with its taxonomy."""

import json
from pathlib import Path
from typing import Any

import numpy as np

KITCHEN = ["person", "bottle", "cup", "bowl", "chair", "dining table", "refrigerator", "oven", "sink", "microwave"]
KITCHEN += ["wall-other-merged", "floor-wood", "window-other", "door-stuff", "cabinet-merged", "food-other-merged"]
STREET = ["person", "car", "bus", "road", "sky-other-merged", "building-other-merged", "tree-merged", "traffic light"]
STREET += ["bicycle", "fence-merged", "grass-merged", "house", "wall-brick", "bench", "truck", "window-blind"]
CATEGORIES = [*KITCHEN, *STREET[1:]]
WIDTH, HEIGHT = 40, 30
ONE_PERCENT = WIDTH * HEIGHT // 100

TAXONOMY = {
    "color": ["red", "green", "blue", "white", "black"],
    "material": ["wooden", "metal", "plastic"],
    "size": ["large", "small"],
    "tone": ["dark", "light", "black"],  # an attribute can have two types
    "state": ["open", "closed"],
}
OBJECTS = ["cup", "chair", "car", "cat", "red car", "door", "dogs", "dog"]


def scenes(rich: int = 120, simple: int = 240, seed: int = 0) -> dict[str, Any]:
    """COCO Panoptic: scenes of seven to fourteen categories of one place, and simple ones of one to three of any."""
    random = np.random.default_rng(seed)
    images, annotations = [], []
    for number in range(rich + simple):
        if number < rich:
            names = random.permutation(KITCHEN if number % 2 else STREET)[: random.integers(7, 15)]
            faint = random.permutation([name for name in CATEGORIES if name not in names])[:2]
        else:
            names, faint = random.permutation(CATEGORIES)[: random.integers(1, 4)], []
        areas = [(name, int(random.integers(ONE_PERCENT + 1, 60))) for name in names]
        areas += [(name, ONE_PERCENT) for name in faint]  # not more than one per cent
        areas += [(names[0], 5)] if number % 3 else []  # a second segment of the same category
        identifier = 1000 + 7 * number
        images.append({"id": identifier, "width": WIDTH, "height": HEIGHT, "file_name": f"{identifier:012d}.jpg"})
        annotations.append(annotated(identifier, areas, random))
    random.shuffle(annotations)
    return {"images": images, "annotations": annotations, "categories": categories()}


def categories() -> list[dict[str, Any]]:
    return [{"id": 3 * n + 1, "name": name, "isthing": 0, "supercategory": "any"} for n, name in enumerate(CATEGORIES)]


def annotated(image: int, areas: list[tuple[str, int]], random: np.random.Generator) -> dict[str, Any]:
    """An entry of ``annotations``."""
    ids = random.integers(1, 1 << 19, len(areas)) * 32 + np.arange(len(areas))  # all different, of all three bytes
    segments = [
        {"id": int(i), "category_id": 3 * CATEGORIES.index(name) + 1, "area": area, "bbox": [0, 0, 1, 1], "iscrowd": 0}
        for i, (name, area) in zip(ids, areas, strict=True)
    ]
    return {"image_id": image, "file_name": f"{image:012d}.png", "segments_info": segments}


def labelled(count: int = 1500, images: int = 500, seed: int = 0) -> list[dict[str, Any]]:
    """VAW: each object has one attribute of some types, sometimes two, and is labelled to lack some of the others."""
    random = np.random.default_rng(seed)
    records = []
    for number in range(count):
        positive, negative = [], []
        for kind, attributes in TAXONOMY.items():
            if kind == "tone" or random.random() < 0.2:
                continue
            shuffled = [str(name) for name in random.permutation(attributes)]
            has = 2 if kind == "color" and random.random() < 0.2 else 1
            positive += shuffled[:has]
            negative += [name for name in shuffled[has:] if random.random() < 0.8]
        x, y, width, height = (float(value) for value in random.integers(1, 20, 4))
        records.append(
            {
                "image_id": str(1 + int(random.integers(images))),
                "instance_id": str(5000 + number),
                "instance_bbox": [x, y + 0.5, width, height],
                "instance_polygon": None,
                "object_name": OBJECTS[int(random.integers(len(OBJECTS)))],
                "positive_attributes": positive,
                "negative_attributes": negative,
            }
        )
    return records


def save(value: Any, path: Path) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
