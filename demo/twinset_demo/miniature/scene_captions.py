"""Captions that the engine ``kubric`` reads, and that rules can change in each of the seven ways."""

import json
from pathlib import Path
from typing import Any

CAPTIONS = (
    "A red mug to the left of a blue car.",
    "A green bottle behind a yellow cup.",
    "A white cup on top of a brown table.",
    "A blue chair to the right of a red bed.",
    "A yellow bowl next to a green bottle.",
    "A white plate next to a red vase.",
    "A pink hat on top of a purple box.",
    "A red ball under a white table.",
    "A green truck in front of a yellow bus.",
    "A purple couch behind a brown stool.",
    "A large orange ball next to a small yellow bucket.",
    "Two blue vases next to a white bucket.",
    "Three red balls.",
    "Four green bottles.",
    "A car behind a bench.",
    "A bowl on top of a stool.",
)
SIDE = 256  # pixels of their images, which nobody stores
_INFO = {"description": "Captions of scenes that twinset renders", "version": "1", "licence": "CC0 1.0"}


def coco() -> dict[str, Any]:
    """The captions in COCO's layout, an image each."""
    images = [
        {"id": number, "file_name": f"{number:012d}.png", "width": SIDE, "height": SIDE, "license": 1}
        for number in range(1, len(CAPTIONS) + 1)
    ]
    annotations = [
        {"id": number * 10 + 1, "image_id": number, "caption": caption} for number, caption in enumerate(CAPTIONS, 1)
    ]
    licences = [{"id": 1, "name": "CC0 1.0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}]
    return {"info": _INFO, "licenses": licences, "images": images, "annotations": annotations}


def write_scenes(folder: Path) -> None:
    """Write ``captions.json`` into an existing folder."""
    (folder / "captions.json").write_text(json.dumps(coco(), indent=1) + "\n", "utf-8")
