"""The small world's checker answers the questions of a caption about a painted picture of it."""

import io

import numpy as np
import pytest
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline
from twinset.models.visual_questions.settings import Inquiry, Unanswered
from twinset_demo.small_diffusion.painter import paint
from twinset_demo.small_diffusion.scenes import Scene
from twinset_demo.small_world.engine import SmallWorldChecker
from twinset_extras.image_questions.asking import questions_of

SCENES = [
    Scene(size="small", colour="red", object="star", position="on the left", place="in the desert", time="at night"),
    Scene(style="painting", count="two", colour="blue", object="ball"),
    Scene(colour="yellow", object="fish", position="at the bottom"),
    Scene(count="three", colour="green", object="heart", place="on the grass"),
]


def _painted(scene: Scene) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(paint(scene, np.random.default_rng(5))).save(stream, "PNG")
    return stream.getvalue()


def _asked(scene: Scene, image: bytes) -> list[float]:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp(scene.caption())
    questions = tuple(one.question for one in questions_of(doc))
    (found,) = SmallWorldChecker().answers([Inquiry("k", image, "image/png", questions)])
    assert isinstance(found, list) and len(found) == len(questions) >= 3
    return found


def test_all_that_a_caption_says_is_seen_in_its_own_picture_alone() -> None:
    pictures = [_painted(scene) for scene in SCENES]
    for number, scene in enumerate(SCENES):
        for other, image in enumerate(pictures):
            assert all(_asked(scene, image)) == (number == other), (scene, SCENES[other])


def test_what_the_world_has_no_word_for_is_not_answered() -> None:
    inquiry = Inquiry("k", _painted(SCENES[0]), "image/png", ("Is there a star?", "Is the man happy?"))
    (found,) = SmallWorldChecker().answers([inquiry])
    assert isinstance(found, Unanswered) and found.reason == "no-answer" and "man" in found.detail


def test_pictures_of_another_size_are_refused() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (65, 64)).save(stream, "PNG")
    with pytest.raises(WrongUse, match="65 x 64 pixels, and the small world's have 64 x 64"):
        SmallWorldChecker().answers([Inquiry("k", stream.getvalue(), "image/png", ("Is there a star?",))])
