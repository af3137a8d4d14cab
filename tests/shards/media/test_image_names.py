"""Names and ids of one image: a folder of COCO's images of 2014 serves annotations of 2017, and the other way round."""

import time
from pathlib import Path

import pytest

from twinset.shards.media.media_folder import ImageFolder


@pytest.mark.parametrize("name", ["139", "000000000139", "000000000139.jpg", "COCO_val2014_000000000139.jpg"])
@pytest.mark.parametrize(
    "file", ["000000000139.jpg", "COCO_val2014_000000000139.jpg", "val/COCO_train2014_000000000139.jpg"]
)
def test_coco_images_are_found_by_the_names_of_either_year(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"x")
    found = ImageFolder(tmp_path).find(name)
    if name.startswith("COCO_val") and "train" in file:
        assert found is None, "images of both parts are others"
    else:
        assert found is not None and found.name == file


def test_the_very_name_comes_first(tmp_path: Path) -> None:
    for file in ("COCO_val2014_000000000139.jpg", "000000000139.jpg", "139.png"):
        (tmp_path / file).write_bytes(b"x")
        found = ImageFolder(tmp_path).find("139")
        assert found is not None and found.name == file


@pytest.mark.parametrize("name", ["a/" * 100_000 + "1.jpg", "1" * 100_000])
def test_a_name_of_very_many_folders_is_looked_up_nowhere(tmp_path: Path, name: str) -> None:
    began = time.process_time()
    assert ImageFolder(tmp_path).find(name) is None
    assert time.process_time() - began < 1, "seconds"
