"""Choices in both orders as scores."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from twinset.evaluation.answers.figures import scores
from twinset.evaluation.examples import Grounding, Matching, Picture
from twinset.evaluation.features.pairs import ByChoices
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import Chooser, NotApplicable


class Stubborn(Chooser):
    """Sees red; of other colours it chooses by the place alone, and of black it says nothing."""

    name = "stubborn"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def digest(self) -> str:
        return "stubborn"

    def choose(self, images: Sequence[Image.Image], captions: Sequence[tuple[str, str]]) -> list[int | None]:
        self.asked += captions
        colours = [image.getpixel((0, 0)) for image in images]
        found = {(255, 0, 0): lambda two: two.index("red"), (0, 0, 0): lambda two: None}
        return [found.get(colour, lambda two: 1)(two) for colour, two in zip(colours, captions, strict=True)]  # type: ignore[arg-type, no-untyped-call]


def picture(colour: str) -> Picture:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(buffer, "PNG")
    content = b"not an image" if colour == "purple" else buffer.getvalue()
    return Picture(colour, lambda: content)


def example(*colours: str, captions: tuple[str, str] = ("red", "blue")) -> Matching:
    images = tuple(picture(colour) for colour in colours)
    return Matching(key="-".join(colours), subset="s", group="g", images=images, captions=captions)


@pytest.fixture
def similarities(tmp_path: Path) -> Iterator[ByChoices]:
    opened = ByChoices(Stubborn(), FeatureStore(tmp_path, "stubborn"), 2)
    yield opened
    opened.close()


def test_orders_that_agree_are_a_score_and_others_a_tie() -> None:
    assert scores(0, 1) == (1, 0) and scores(1, 0) == (0, 1)
    for straight, swapped in ((0, 0), (1, 1), (None, 0), (1, None), (None, None)):
        assert scores(straight, swapped) == (0.5, 0.5)


def test_each_image_is_asked_about_in_both_orders_once(similarities: ByChoices) -> None:
    examples = [example("red", "blue"), example("black"), example("red", captions=("blue", "red")), example("red")]
    assert similarities.prepare(examples) == {}
    found = [similarities.matrix(one.images, one.captions) for one in examples]
    assert [one.tolist() for one in found] == [[[1, 0], [0.5, 0.5]], [[0.5, 0.5]], [[0, 1]], [[1, 0]]]
    assert found[0].dtype == np.float32
    assert isinstance(similarities.scorer, Stubborn)
    assert sorted(similarities.scorer.asked) == [("blue", "red")] * 4 + [("red", "blue")] * 4


def test_an_image_that_cannot_be_read_leaves_its_example_out(similarities: ByChoices) -> None:
    left = similarities.prepare([example("red", "purple"), example("red")])
    assert [*left] == ["red-purple"] and left["red-purple"].reason == "undecodable image"


def test_only_matchings_can_be_asked(similarities: ByChoices) -> None:
    frames = [picture("red")] * 2
    grounding = Grounding(
        key="g", subset="s", group="g", frames=frames, times=np.arange(2.0), captions=("red", "blue"), boundary=0.5
    )
    with pytest.raises(NotApplicable, match="stubborn: chooses between two captions of an image, which example g does"):
        similarities.prepare([grounding])
