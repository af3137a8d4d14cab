"""Additions come in twos: beside each negative a caption of its length that has the same from the first.

Words change places within their pool, as often in as out, beside the words that they stand beside in captions.
What captions name together, and how surely they name what is there.
"""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generators.exchanged_negatives.test_exchanged_negatives import planned, write
from twinset.contracts.errors import WrongUse
from twinset.generators.exchanged_negatives.choice import PairCounts, Places, exchanged, swapped
from twinset.generators.exchanged_negatives.company import Company, Ints, Seen
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


NOTHING = PairCounts(np.empty(0, np.int64), np.empty(0, np.int64), 10)


def places(
    pools: list[int], words: list[int], names: list[int] | None = None, beside: list[int] | None = None
) -> Places:
    pool, word = np.array(pools), np.array(words)
    neighbours = [pool * 100 + np.array(beside)] if beside else []
    return Places(pool, word, np.array(names if names is not None else words), np.arange(len(pool)), neighbours)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=60), st.integers(0, 99))
def test_words_are_dealt_anew_within_their_pool(drawn: list[tuple[int, int]], seed: int) -> None:
    pools, words = (list(column) for column in zip(*drawn, strict=True))
    now = exchanged(places(pools, words), NOTHING, np.random.default_rng(seed)).tolist()
    assert Counter(zip(pools, now, strict=True)) == Counter(drawn)


def test_the_same_seed_deals_the_same_words() -> None:
    some = places([0] * 40, list(range(4)) * 10)
    first, second = (exchanged(some, NOTHING, np.random.default_rng(7)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert np.mean(first != some.word) > 0.5


def test_no_photo_gets_what_its_captions_say() -> None:
    some = places([0] * 30, [1, 2, 3] * 10)
    told = PairCounts(np.arange(30), np.array([2, 3, 1] * 10), 10)  # of each photo another word than its own
    now = exchanged(some, told, np.random.default_rng(0))
    assert set(zip([1, 2, 3] * 10, now.tolist(), strict=True)) <= {(1, 1), (1, 3), (2, 2), (2, 1), (3, 3), (3, 2)}


def test_synonyms_do_not_change_places() -> None:
    now = exchanged(places([0] * 20, [1, 2] * 10, names=[5] * 20), NOTHING, np.random.default_rng(0))
    assert now.tolist() == [1, 2] * 10


def test_words_stand_beside_what_they_stand_beside_in_captions() -> None:
    # Neighbours 1 and 2 have words 1 and 2 each, or 3 and 4; a word of the other two would be known at once.
    beside = [1, 1, 2, 2] * 50
    some = places([0] * 200, [1, 2, 3, 4] * 50, beside=beside)
    now = exchanged(some, NOTHING, np.random.default_rng(0))
    moved = now != some.word
    fitting = [(word > 2) == (neighbour == 2) for word, neighbour in zip(now, beside, strict=True)]
    assert moved.mean() > 0.8
    assert np.mean(np.array(fitting)[moved]) > 0.9


def test_a_word_that_nothing_else_replaces_stays() -> None:
    assert exchanged(places([0, 0, 1], [5, 5, 6]), NOTHING, np.random.default_rng(0)).tolist() == [5, 5, 6]


def test_swaps_are_as_likely_as_captions_make_them() -> None:
    known = PairCounts(np.array([1] * 20 + [2] * 20 + [1]), np.array([7] * 20 + [8] * 20 + [8]), 10)
    heads, words = np.array([1] * 2000), np.array([2] * 2000)
    first, second = np.array([7] * 2000), np.array([8] * 2000)
    away = swapped((heads, words), (first, second), known, np.random.default_rng(0))
    back = swapped((heads, words), (second, first), known, np.random.default_rng(0))
    assert away.mean() < 0.02 < 0.98 < back.mean()


def test_counts_of_pairs() -> None:
    pairs = PairCounts(np.array([3, 3, 5]), np.array([1, 1, 2]), 4)
    assert pairs.both(np.array([3, 3, 5, 9]), np.array([1, 2, 2, 1])).tolist() == [2, 0, 1, 0]
    assert pairs.first(np.array([3, 4, 5, 9])).tolist() == [2, 0, 1, 0]


NAMES = ["boat", "bus", "wave", "street"]
BOAT, BUS = 0, 1


def numbers(*values: int) -> Ints:
    return np.array(values, np.int64)


def test_a_thing_goes_with_what_captions_of_two_photos_name_beside_it() -> None:
    said = [["boat", "wave"]] * 3 + [["bus", "street"]] * 3 + [["boat", "street"]]
    company = Company(numbers(BOAT, BUS), said, NAMES, np.arange(7))
    assert company(numbers(0, 3, 3), numbers(BUS, BOAT, BUS)).tolist() == [False, False, True]
    assert company(numbers(0), numbers(BOAT), numbers(BOAT)).tolist() == [True]


def test_captions_of_one_photo_count_once() -> None:
    said = [["boat", "wave"]] * 3 + [["bus", "wave"]] * 3
    company = Company(numbers(BOAT, BUS), said, NAMES, numbers(0, 1, 2, 3, 3, 3))
    assert company(numbers(3, 0), numbers(BOAT, BUS), numbers(BUS, BOAT)).tolist() == [True, False]


def test_what_is_replaced_need_not_go_with_what_replaces_it() -> None:
    said = [["boat", "wave"], ["bus", "wave"]] * 2
    company = Company(numbers(BOAT, BUS), said, NAMES, np.arange(4))
    assert company(numbers(0), numbers(BUS), numbers(BOAT)).all()
    assert not company(numbers(0), numbers(BUS)).any()


def test_a_thing_that_captions_of_a_photo_agree_on_is_not_there_unsaid() -> None:
    captions, photo = np.arange(400), np.arange(400) // 4
    sure, seldom = captions, captions[::4]  # all captions of a photo say the first thing, one of them the second
    both = np.r_[sure, seldom], np.r_[np.full(400, BOAT), np.full(100, BUS)]
    seen = Seen(photo, *both)
    assert seen(numbers(0, 0), numbers(BOAT, BUS)).tolist() == [True, False]
    assert seen.captions(numbers(0, 99)).tolist() == [4, 4]


def test_one_caption_a_photo_tells_nothing_of_what_goes_unsaid() -> None:
    assert Seen(np.arange(3), np.arange(3), numbers(BOAT, BUS, BUS))(numbers(0), numbers(BUS)).all()
