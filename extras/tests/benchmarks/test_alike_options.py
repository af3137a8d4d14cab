"""An option that says what the right one says is right too."""

from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import queries
from twinset.evaluation.benchmarks import open_benchmark


def options(root: Path, name: str, right: str, wrong: str) -> None:
    """Two records, the second of which offers the right answer twice."""
    pairs = [(f"{right} {n}", f"{right if n else wrong} {n}") for n in range(2)]
    for n in range(2):
        put(root / "images" / f"{n}.jpg", picture(n))
    if name == "aro-order":
        rows = [{"image": f"{n}.jpg", "caption_options": [*two, "x"]} for n, two in enumerate(pairs)]
        put(root / "coco_order.json", rows)
    elif name == "sugarcrepe++":
        rows = [
            {"filename": f"{n}.jpg", "caption": a, "caption2": "the same", "negative_caption": b}
            for n, (a, b) in enumerate(pairs)
        ]
        put(root / "swap_obj.json", {str(n): row for n, row in enumerate(rows)})
    elif name == "spec":
        rows = [{"query": f"{n}.jpg", "keys": [*two, "x"], "label": 0} for n, two in enumerate(pairs)]
        put(root / "count" / "image2text.json", rows)
        for n in range(2):
            put(root / "count" / f"{n}.jpg", picture(n))


@pytest.mark.parametrize(("name", "right"), [("aro-order", {0}), ("sugarcrepe++", {0, 1}), ("spec", {0})])
def test_of_several_options_all_that_say_the_same_are_targets(tmp_path: Path, name: str, right: set[int]) -> None:
    options(tmp_path, name, "a dog", "a cat")
    plain, twice = queries(open_benchmark(name, tmp_path))
    assert (plain.targets, twice.targets) == (right, right | {2 if name == "sugarcrepe++" else 1})


def test_classes_with_one_name_are_both_right(tmp_path: Path) -> None:
    """... as sunglasses and missiles are, two of ImageNet's classes each."""
    for number, name in enumerate(("n1", "n2", "zebra")):
        put(tmp_path / "val" / name / f"{number}.JPEG", picture(number))
    put(tmp_path / "classnames.txt", "n1 sunglasses\nn2 sunglasses\nzebra zebra\n")
    assert [one.targets for one in queries(open_benchmark("imagenet", tmp_path))] == [{0, 1}, {0, 1}, {2}]
