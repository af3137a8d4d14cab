"""Benchmarks that are opened for their captions need no image, and give none."""

import json
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import LeftOut, Matching


@pytest.fixture
def without_images(tmp_path: Path) -> Path:
    record = {"filename": "000000000139.jpg", "caption": "A dog.", "negative_caption": "A cat."}
    (tmp_path / "add_obj.json").write_text(json.dumps({"0": record}), "utf-8")
    return tmp_path


def test_captions_are_read_where_images_are_missing(without_images: Path) -> None:
    opened = open_benchmark("sugarcrepe", without_images, captions_only=True)
    (example,) = opened.examples()
    assert isinstance(example, Matching)
    assert (example.captions, example.group) == (("A dog.", "A cat."), "000000000139")
    with pytest.raises(WrongUse, match=r"139\.jpg: the benchmark was opened for its captions alone"):
        example.images[0].read()


def test_otherwise_they_are_left_out(without_images: Path) -> None:
    examples = open_benchmark("sugarcrepe", without_images).examples()
    assert isinstance(next(examples), LeftOut)
