"""Additions come in twos: beside each negative a caption of its length that has the same from the first."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.generators.exchanged_negatives.test_exchanged_negatives import planned, write
from twinset.contracts.errors import WrongUse
from twinset.generators.exchanged_negatives.given import additions_of
from twinset.generators.exchanged_negatives.vocabulary import exchanges
from twinset.generators.negative_captions.changes import words
from twinset.generators.negative_captions.kinds import NegativeCaption
from twinset.generators.negative_captions.rules.vocabulary import vocabulary
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline

COLOURS = ("red", "blue", "green", "yellow", "pink", "purple", "orange", "brown")
PLACES = ("a house", "the house", "some houses", "his house", "her house")
WITHOUT = [f"A bus stops behind a car near {place}." for place in PLACES for _ in COLOURS]
WITH = [f"A {colour} bus stops behind a car near {place}." for place in PLACES for colour in COLOURS]
WITH += [f"A bus stops behind a {colour} car near {place}." for place in PLACES for colour in COLOURS]


def coloured(text: str) -> list[tuple[str, str]]:
    found = words(text)
    return [(one, other) for one, other in pairwise(found) if one in COLOURS]


def longer(found: list[NegativeCaption], length: int) -> Counter[tuple[str, str]]:
    """Colours and their nouns in negatives of a length."""
    texts = [one.negative_caption for one in found if len(words(one.negative_caption)) == length]
    return Counter(pair for text in texts for pair in coloured(text))


def test_negatives_and_captions_of_one_length_have_the_same_adjectives(tmp_path: Path) -> None:
    found = planned(tmp_path, WITHOUT * 2 + WITH, kinds=["add_att"])
    length = len(words(WITH[0]))
    sources = [one.caption for one in found if len(words(one.caption)) == length]
    assert len(sources) >= 20 and len(found) == 2 * len(sources)
    colours = [Counter(colour for colour, _ in pairs) for pairs in (longer(found, length).elements(), _all(sources))]
    assert colours[0] == colours[1]
    assert all(len(coloured(one.negative_caption)) == len(coloured(one.caption)) + 1 for one in found)


def _all(texts: list[str]) -> list[tuple[str, str]]:
    return [pair for text in texts for pair in coloured(text)]


def test_captions_without_a_partner_get_none(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no words of its captions can change places"):
        planned(tmp_path, WITH, kinds=["add_att"])


def test_what_another_caption_contradicts_is_preferred(tmp_path: Path) -> None:
    told = [(f"told-{at}.jpg", text) for at, text in enumerate(WITHOUT)]
    told += [
        (image, f"Look at a {colour} {noun} there on the wet road.")
        for image, _ in told[:]
        for colour, noun in (("white", "bus"), ("white", "car"))
    ]
    other = [(f"other-{at}.jpg", text) for at, text in enumerate(WITHOUT * 4 + WITH)]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps({"image": image, "caption": text}) + "\n" for image, text in told + other))
    found = [one for one in planned(tmp_path, path, kinds=["add_att"]) if not coloured(one.caption)]
    assert len(found) >= 20
    assert sum(one.image.startswith("told") for one in found) > 0.9 * min(len(found), len(WITHOUT))


@pytest.mark.parametrize(
    ("caption", "kind", "expected"),
    [
        ("A red bus near a car.", "given_att", {"red"}),
        ("A red bus near a car.", "add_att", {"car"}),
        ("A black and white bus.", "given_att", set()),
        ("A light blue bus near a car.", "given_att", set()),
        ("A man in a pair of shorts.", "add_att", set()),
        ("A man near a car.", "add_att", {"car"}),  # nobody adds a colour to people
        ("A boat near a small dog.", "given_obj", {"near a small dog"}),
        ("A dog sleeps on a couch.", "add_obj", {"dog", "couch"}),
        ("A person sits there.", "add_obj", set()),  # "a person and a man" are perhaps one
        ("A bench near a dog that barks.", "given_obj", set()),
        ("A boat near a small dog on a beach.", "given_obj", {"near a small dog"}),
        ("A boat near a dog.", "add_obj", set()),  # "near a dog and a cat" says more than one thing of the cat
        ("A man with his horse on a beach.", "add_obj", set()),  # "and a woman with his horse"
        ("A man rides a horse in a park.", "add_obj", {"man", "park"}),  # "a horse and a cow in a park" are not ridden
        ("If you need a red bus near a car.", "given_att", set()),
        ("A red bus. A car.", "given_att", set()),
    ],
)
def test_what_is_given(caption: str, kind: str, expected: set[str]) -> None:
    doc = parser_of(find_pipeline(EMBEDDED)).nlp(caption)
    found = [one for one in additions_of(doc, exchanges(), vocabulary()) if one.kind == kind]
    assert {one.word or one.head for one in found} == expected


def test_repeated_ids_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ["A red bus near a car."])
    path.write_text(path.read_text() * 2)
    with pytest.raises(WrongUse, match="caption id '0' is duplicated"):
        planned(tmp_path, path)
