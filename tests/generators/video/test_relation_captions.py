from pathlib import Path

import pytest

from twinset.generators.video.relation_captions import (
    CONTACTING,
    RELATIONS,
    SPATIAL,
    captions,
    noun,
    official,
    relation,
)

OFFICIAL = Path(__file__).parents[3] / "../shared/data/action_genome"


@pytest.mark.parametrize(
    ("object_class", "spatial", "contacting", "caption"),
    [  # the published examples (EqBen, Figure 16)
        ("dish", "in_front_of", "holding", "The person is holding the dish which is in front of him/her."),
        ("dish", "on_the_side_of", "not_contacting",
         "The person is not contacting the dish which is on the side of him/her."),
        ("clothes", "in_front_of", "holding", "The person is holding the clothes which is in front of him/her."),
        ("pillow", "behind", "carrying", "The person is carrying the pillow which is behind him/her."),
        ("cup_glass_bottle", "in_front_of", "drinking_from",
         "The person is drinking from the bottle which is in front of him/her."),
        ("sofa/couch", "beneath", "lying_on", "The person is lying on the sofa which is beneath him/her."),
    ],
)  # fmt: skip
def test_captions_are_worded_as_published(object_class: str, spatial: str, contacting: str, caption: str) -> None:
    assert captions(object_class, [spatial], [contacting]) == (caption,)


@pytest.mark.parametrize(
    ("object_class", "contacting", "published", "correct"),
    [
        ("clothes", "holding", "holding the clothes which is", "holding the clothes which are"),
        ("groceries", "carrying", "carrying the groceries which is", "carrying the groceries which are"),
        ("bag", "have_it_on_the_back", "carrying on the back the bag which is",
         "carrying on his/her back the bag which is"),
        ("closet/cabinet", "touching", "touching the closet which is", "touching the closet which is"),
    ],
)  # fmt: skip
def test_grammar_is_right_only_when_asked_for(object_class: str, contacting: str, published: str, correct: str) -> None:
    for grammar, words in ((False, published), (True, correct)):
        assert captions(object_class, ["behind"], [contacting], grammar) == (f"The person is {words} behind him/her.",)


def test_several_relations_give_several_captions_contact_outermost() -> None:
    said = captions("chair", ["beneath", "behind"], ["sitting_on", "leaning_on", "other_relationship"])
    assert said == (
        "The person is sitting on the chair which is beneath him/her.",
        "The person is sitting on the chair which is behind him/her.",
        "The person is leaning on the chair which is beneath him/her.",
        "The person is leaning on the chair which is behind him/her.",
    )


@pytest.mark.parametrize(
    ("spatial", "contacting"),
    [
        ([], ["holding"]),
        (["behind"], []),
        (["unsure"], ["holding"]),
        (["behind"], ["other_relationship"]),
        (["behind"], ["unsure"]),
        (["floating_over"], ["holding"]),
    ],
)
def test_what_cannot_be_said_makes_no_caption(spatial: list[str], contacting: list[str]) -> None:
    assert captions("bag", spatial, contacting) == ()


@pytest.mark.parametrize("spelling", ["cup_glass_bottle", "cupglassbottle", "cup/glass/bottle", "cup glass bottle"])
def test_every_spelling_of_a_class_is_the_same_word(spelling: str) -> None:
    assert official(spelling) == "cupglassbottle"
    assert noun(spelling) == "bottle"
    assert captions(spelling, ["infrontof"], ["drinkingfrom"]) == captions(spelling, ["in_front_of"], ["drinking_from"])


def test_repeated_relations_say_nothing_twice() -> None:
    assert len(captions("bag", ["behind", "behind"], ["holding", "holding"])) == 1


def test_vocabulary_covers_the_official_lists() -> None:
    if not OFFICIAL.is_dir():
        pytest.skip("the official lists of ../shared/data/action_genome are not on this machine")
    named = (OFFICIAL / "relationship_classes.txt").read_text("utf-8").split()
    assert sorted(named) == sorted(RELATIONS)
    assert {relation(name) for name in named} >= SPATIAL.keys() | CONTACTING.keys()
    for object_class in (OFFICIAL / "object_classes.txt").read_text("utf-8").split():
        assert noun(object_class) in object_class
