"""Cola's single objects: which images are ranked for a class, and files that are not it."""

import json
from pathlib import Path
from typing import Any

import pytest

from extras.tests.benchmarks.made_layouts import cola_single
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Picture, Query

FILE = "data/COLA_singleobjects_benchmark_GQA.json"


def asked(folder: Path) -> list[Query]:
    items = open_benchmark("cola-single", folder, ["gqa"]).examples()
    return [one for one in items if isinstance(one, Query)]


def test_a_class_is_ranked_among_the_images_of_its_hard_list(tmp_path: Path) -> None:
    cola_single(tmp_path)
    found = asked(tmp_path)
    shown = [[Path(one.where).name for one in query.gallery if isinstance(one, Picture)] for query in found]
    assert shown == [["0.jpg", "1.jpg", "2.jpg", "3.jpg"], ["0.jpg", "1.jpg", "2.jpg"]]
    assert [(one.text, one.targets) for one in found] == [("red cup", {0}), ("square plate", {1, 2})]
    (tmp_path / "vg" / "1.jpg").unlink()
    assert [(len(one.gallery), one.targets) for one in asked(tmp_path)] == [(3, {0}), (2, {1})]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((), [], "not a list of labels and a list of images"),
        (("labels",), None, "not a list of labels"),
        (("labels", 0), " ", "a label is not a text"),
        (("data", 1), "1.jpg", "image 1: not an image with its labels"),
        (("data", 1, 0), "", "image 1: not an image with its labels"),
        (("data", 2, 2), [1, 0], "image 2: not 3 labels of 0 or 1"),
        (("data", 2, 3), [1, 0, 7], "image 2: not 3 labels of 0 or 1"),
        (("data", 2, 3), [1, 0, [1]], "image 2: not 3 labels of 0 or 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, path: tuple[Any, ...], value: object, words: str) -> None:
    cola_single(tmp_path)
    held = inner = json.loads((tmp_path / FILE).read_text())
    for key in path[:-1]:
        inner = inner[key]
    if path:
        inner[path[-1]] = value
    (tmp_path / FILE).write_text(json.dumps(held if path else value))
    with pytest.raises(WrongUse, match=words):
        asked(tmp_path)
