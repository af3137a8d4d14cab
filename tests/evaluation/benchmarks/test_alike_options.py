"""An option that says what the right one says is right too, or the question is not asked."""

import json
from pathlib import Path

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import captioned, queries
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import LeftOut


def test_two_captions_that_are_one_are_left_out_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path / "images" / "1.jpg", picture(1))
    rows = [{"filename": "1.jpg", "caption": "a dog", "negative_caption": one} for one in ("a cat", "a dog")]
    put(tmp_path / "swap_obj.json", {str(n): row for n, row in enumerate(rows)})
    asked, lost = open_benchmark("sugarcrepe", tmp_path).examples()
    assert isinstance(lost, LeftOut) and (asked.key, lost.reason) == ("swap_obj/0", "both captions are the same")


def test_the_caption_of_another_image_that_reads_the_same_is_found_too(tmp_path: Path) -> None:
    captioned(tmp_path, file := "dataset_flickr30k.json")
    held = json.loads((tmp_path / file).read_text())
    first, second = (image["sentences"] for image in held["images"][1:])
    second[2]["raw"] = first[0]["raw"]
    put(tmp_path / file, held)
    ways = {one.key: one.targets for one in queries(open_benchmark("flickr30k", tmp_path))}
    assert ways["image-to-text/000000000391"] == {0, 1, 2, 3, 4, 7}
    assert ways["image-to-text/000000000522"] == {5, 6, 7, 8, 9, 10, 0}
    assert ways["text-to-image/000000000391/0"] == {0} and ways["text-to-image/000000000522/2"] == {1}
