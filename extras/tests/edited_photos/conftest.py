"""Three photographs, instances and negative captions of them, and the generator that edits them."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from extras.tests.edited_photos.made_edits import LEFT, SIDE, TOP, Opened, photo, source
from tests.generators.finished_stage import finish, finished
from tests.models.diffusion.conftest import opens, saved  # noqa: F401 - fixtures
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.shards.contracts import Context

ROWS = (
    ("0.jpg", "A red car on a road.", "A green car on a road.", "replace", "att"),
    ("0.jpg", "A red car on a road.", "A red bus on a road.", "replace", "obj"),
    ("0.jpg", "A red car on a road.", "A road with no car.", "replace", "obj"),
    ("1.jpg", "Two dogs.", "One dog.", "replace", "att"),
    ("1.jpg", "A dog.", "No dog.", "replace", "obj"),
    ("2.jpg", "A red car.", "A blue car.", "replace", "att"),
    ("", "A red car.", "A blue car.", "replace", "att"),
    ("0.jpg", "A dog.", "A cat.", "replace", "obj"),
)


def replay(folder: Path, stage: str, licence: str) -> None:
    """Finish a stage of the negative captions."""
    captions = (folder / "negatives.json",)
    finish(ReplayedNegatives(kind="replayed-negatives", captions=captions, licence=licence), folder, stage)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number in range(3):
        Image.fromarray(photo()).save(tmp_path / f"photos/{number}.jpg", quality=95)
    box = [LEFT, TOP, SIDE, SIDE]
    corners = [[LEFT, TOP, LEFT + SIDE, TOP, LEFT + SIDE, TOP + SIDE, LEFT, TOP + SIDE]]
    annotations: list[Any] = [
        {"image_id": 7, "category_id": 1, "bbox": box, "segmentation": corners, "iscrowd": 0},
        {"image_id": 8, "category_id": 2, "bbox": [200, 100, 60, 60]},
        {"image_id": 8, "category_id": 2, "bbox": [20, 20, 40, 50], "segmentation": {"size": [9, 9], "counts": [81]}},
        {"image_id": 8, "category_id": 2, "bbox": [0, 0, -1, 5]},
        {"image_id": 99, "category_id": 2, "bbox": box},
    ]
    images = [{"id": 7, "file_name": "0.jpg"}, {"id": 8, "file_name": "1.jpg"}]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}]
    whole = {"images": images, "categories": categories, "annotations": annotations}
    (tmp_path / "instances.json").write_text(json.dumps(whole))
    names = ("image", "caption", "negative_caption", "type", "subtype")
    (tmp_path / "negatives.json").write_text(json.dumps([dict(zip(names, row, strict=True)) for row in ROWS]))
    replay(tmp_path, "negatives", "CC0-1.0")
    return tmp_path


@pytest.fixture
def context(folder: Path) -> Context:
    return Context("twins", earlier=finished(folder, "negatives"))


@pytest.fixture
def opened(folder: Path, context: Context) -> Opened:
    """Opens the generator with some settings."""
    return lambda **given: source(folder, **given).open(context)
