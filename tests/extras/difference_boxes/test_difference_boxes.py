"""Boxes where the images of a pair differ: where they are, what they are called, what is asked, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import twinset
from tests.extras.image_questions.test_image_questions import GivenAnswers
from tests.generators.finished_stage import finished
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.pair import PairRecord
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.recipe import parse_recipe
from twinset.generators.contract import check_source
from twinset.generators.copied_pairs import CopiedPair
from twinset.models.language_models.answers import ShownImage
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset_extras.difference_boxes.source import DifferenceBoxes

Earlier = Callable[[str], FinishedStage]
HEIGHT, WIDTH = 120, 160
RED, GREEN = (200, 40, 30), (20, 160, 40)
#: Left, top, width and height of what is painted green in image 1, and the two captions.
PAIRS: Mapping[str, tuple[Sequence[tuple[int, int, int, int]], str, str]] = {
    "colour": ([(20, 30, 40, 24)], "A red car on a road.", "A green car on a road."),
    "object": ([(100, 60, 30, 40)], "A dog in a park.", "A cat in a park."),
    "absent": ([(20, 30, 20, 20), (120, 90, 24, 12)], "A park with a dog.", "A park without a dog."),
    "count": ([(20, 30, 20, 20)], "Two dogs.", "A dog."),
    "place": ([(20, 30, 20, 20)], "A tree on the left.", "A tree on the right."),
    "same": ([(20, 30, 1, 1)], "A dog.", "A cat."),
    "small": ([(20, 30, 3, 3)], "A dog.", "A cat."),
    "large": ([(0, 0, WIDTH, HEIGHT)], "A dog.", "A cat."),
    "many": ([(x, y, 12, 12) for x in (4, 60, 120) for y in (4, 90)], "A dog.", "A cat."),
    "other-size": ([(20, 30, 20, 20)], "A dog.", "A cat."),
}


def painted(places: Sequence[tuple[int, int, int, int]]) -> Pixels:
    pixels = np.full((HEIGHT, WIDTH, 3), RED, np.uint8)
    for left, top, width, height in places:
        pixels[top : top + height, left : left + width] = GREEN
    return pixels


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    """The stage of all pairs."""
    folder = tmp_path_factory.mktemp("pairs")
    records = []
    for name, (places, caption0, caption1) in PAIRS.items():
        second = painted(places)[: HEIGHT - 8] if name == "other-size" else painted(places)
        for side, pixels in enumerate((painted([]), second)):
            Image.fromarray(pixels).save(folder / f"{name}-{side}.png")
        images = {f"image{side}": f"{name}-{side}.png" for side in (0, 1)}
        records.append({"id": name, **images, "caption0": caption0, "caption1": caption1, "group": name[0]})
    (folder / "pairs.json").write_text(json.dumps(records))
    source = {"kind": "image-pairs", "annotations": str(folder / "pairs.json"), "media": str(folder), "licence": "CC0"}
    mine = {"source": source, "encoding": {"format": "webp"}}
    twinset.build(parse_recipe({"name": "boxed", "subsets": {"mine": mine}}), str(folder / "out"))
    return finished(folder / "out", "mine")


def source(**given: Any) -> DifferenceBoxes:
    whole: dict[str, Any] = {"kind": "difference-boxes", "pairs": "mine", "engine": {"kind": "unasked"}, **given}
    return DifferenceBoxes.model_validate(whole)


def made(earlier: Earlier, answerer: Any = None, **given: Any) -> dict[str, CopiedPair | Rejected]:
    """What becomes of each pair, by its id."""
    engine = {} if answerer is None else {"engine": {"kind": "vqa", "model": "/nowhere"}}
    generator: Any = source(**engine, **given).open(Context("boxes", earlier=earlier))
    if answerer is not None:
        generator.__dict__["worker"] = answerer
    planned = list(generator.plan())
    return {json.loads(pair.identity)[0]: made for pair, made in zip(planned, generator.make(planned), strict=True)}


def reasons(results: Mapping[str, CopiedPair | Rejected]) -> dict[str, str]:
    return {name: result.reason for name, result in results.items() if isinstance(result, Rejected)}


def boxes_of(pair: CopiedPair | Rejected) -> list[Any]:
    assert isinstance(pair, CopiedPair)
    PairRecord.model_validate_json(pair.fields["json"])
    return [SimpleNamespace(**box) for box in json.loads(pair.fields["json"])["boxes"]]


def green(shown: ShownImage) -> bool:
    """Whether most of a crop is of the second colour."""
    pixels = np.asarray(shown.pixels)
    return bool((pixels[..., 1] > pixels[..., 0]).mean() > 0.5)


def test_boxes_are_where_the_images_differ_and_named_as_the_captions_say(earlier: Earlier) -> None:
    check_source(source(), Context("boxes", earlier=earlier))
    results = made(earlier)
    assert reasons(results) == {
        "count": "no-question",
        "place": "no-question",
        "same": "no-difference",
        "small": "no-difference",
        "large": "difference-too-large",
        "many": "too-many-boxes",
        "other-size": "other-size",
    }
    labels = {"colour": ("red car", "green car"), "object": ("dog", "cat"), "absent": ("dog", "")}
    for name, expected in labels.items():
        boxes = boxes_of(results[name])
        assert {(box.label0, box.label1) for box in boxes} == {expected} and not any(box.answers for box in boxes)
        for box, (left, top, width, height) in zip(boxes, PAIRS[name][0], strict=True):
            off = np.array([box.left - left, box.top - top, box.width - width, box.height - height])
            assert abs(off).max() <= 2, "the codec blurs an edge by a pixel or two"
    assert boxes_of(results["absent"])[0].difference == "image 0: dog; image 1: no dog"


def test_a_box_stays_where_each_image_alone_shows_what_its_caption_says(earlier: Earlier) -> None:
    seen = {"Is the car red?": False, "Is the car green?": True, "Is there a dog?": False, "Is there a cat?": True}
    right = GivenAnswers(lambda shown, question: float(green(shown) is seen[question]))
    kept = {name: boxes_of(pair) for name, pair in made(earlier, right, crop=8).items() if isinstance(pair, CopiedPair)}
    assert {name: len(boxes) for name, boxes in kept.items()} == {"colour": 1, "object": 1, "absent": 2}
    assert kept["colour"][0].answers == [
        {"question": "Is the car red?", "caption": 0, "yes0": 1.0, "yes1": 0.0},
        {"question": "Is the car green?", "caption": 1, "yes0": 0.0, "yes1": 1.0},
    ]
    assert {request.images[0].media_type for request in right.met} == {"image/png"}
    alike = GivenAnswers(lambda shown, _: float(not green(shown) and shown.pixels.height > 15))
    (box,) = boxes_of(made(earlier, alike, crop=8)["absent"])
    assert box.height > 15, "of two boxes only the one that holds stays"


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_no_box_stays_of_which_the_same_is_said_in_both_images(earlier: Earlier, answer: float) -> None:
    rejected = reasons(made(earlier, GivenAnswers(lambda *_: answer)))
    assert rejected["colour"] == rejected["absent"] == "box-does-not-hold"


def test_a_crop_is_no_smaller_than_models_see(earlier: Earlier) -> None:
    answerer = GivenAnswers(lambda *_: None)
    assert reasons(made(earlier, answerer, crop=200))["object"] == "no-answer"
    assert {request.images[0].pixels.size for request in answerer.met} == {(WIDTH, HEIGHT)}


def test_an_engine_that_gives_other_results_is_named(earlier: Earlier) -> None:
    with pytest.raises(BuildFailed, match=r"^vqa: gives no probability"):
        made(earlier, GivenAnswers(lambda *_: math.nan))
