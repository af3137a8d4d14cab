"""The small models that the demo brings: found by their names, and with words that they know."""

from itertools import product

import pytest

from twinset.generators.edited_pairs.vocabulary import load_captions, vocabulary_file
from twinset.models.files import local_folder
from twinset_demo.models import SMALL, SMALL_CLIP, SMALL_RELATIONS
from twinset_demo.small_diffusion.scenes import read_caption


@pytest.mark.parametrize(
    ("name", "model"), [("small", SMALL), ("small-clip", SMALL_CLIP), ("small-relations", SMALL_RELATIONS)]
)
def test_a_model_is_found_by_its_name(name: str, model: object) -> None:
    folder = local_folder(name, "")
    assert (folder / "README.md").is_file() and folder == model.folder  # type: ignore[attr-defined]


def test_the_small_model_can_draw_every_caption_of_its_vocabulary() -> None:
    found = {
        row.caption(dict(zip(row.words, chosen, strict=True)))
        for row in load_captions(vocabulary_file("small-world")).rows
        for chosen in product(*row.words.values())
    }
    assert len(found) > 1000
    for caption in found:
        assert read_caption(caption).caption() == caption.rstrip(".").lower()


def test_the_model_of_two_things_refuses_other_captions() -> None:
    assert SMALL_RELATIONS.refuses is not None
    assert SMALL_RELATIONS.refuses("a red ball above a blue box") == ""
    assert "not a caption of two things" in SMALL_RELATIONS.refuses("a red ball")
