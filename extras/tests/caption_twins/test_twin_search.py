"""The search for twins: equal to a plain double loop; phrases where they stand; what the lists keep apart."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from twinset.generators.captions.tables import Caption
from twinset_extras.caption_twins import search
from twinset_extras.caption_twins.choice import MOST_PAIRS, Limits, choose
from twinset_extras.caption_twins.search import Captions, phrases_in, span_of, sums_of, twins
from twinset_extras.caption_twins.vocabulary import vocabulary


def test_groups_stay_small() -> None:
    photo = np.array([[0, n] for n in range(1, 300)], np.int64)
    found = choose(
        photo, np.tile(np.array([[0, 1]], np.int64), (299, 1)), np.arange(299, dtype=np.uint64), Limits(999, 999, 999)
    )
    assert [len(one) for one in found] == [MOST_PAIRS]


def double_loop(captions: Sequence[str]) -> set[tuple[int, int]]:
    """Captions that differ in one word of the lists, by comparing all with all."""
    listed = vocabulary()
    number = {phrase: n for n, phrase in enumerate(listed.phrases)}
    texts = [[word for word in one.split() if word not in ("a", "the")] for one in captions]
    found = set()
    for (one, own), (other, others) in combinations(enumerate(texts), 2):
        differ = [both for both in zip(own, others, strict=False) if both[0] != both[1]]
        if len(own) != len(others) or len(differ) != 1 or not all(word in number for word in differ[0]):
            continue
        if listed.twin[number[differ[0][0]], number[differ[0][1]]] >= 0:
            found.add((one, other))
    return found


def test_neighbours_are_those_of_a_double_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(5)
    choices = (
        ("the", "a"), ("dog", "cat", "horse", "man", "cup"), ("runs", "sits", "sleeps"), ("in",), ("a", "the"),
        ("snow", "grass", "sand", "rain"), ("", "now"),
    )  # fmt: skip
    texts = [" ".join(str(drawn.choice(words)) for words in choices).strip() for _ in range(150)]
    captions = Captions(Caption(str(n), str(n), text, "", "") for n, text in enumerate(texts))
    monkeypatch.setattr(search, "WINDOW", 1000)
    listed = vocabulary()
    found = search.neighbours(captions, phrases_in(captions, listed.phrases), listed, np.uint64(1))
    both = np.sort(np.concatenate([one.caption for one in found]), axis=1)
    pairs = set(map(tuple, both.tolist()))
    assert pairs == double_loop(texts) and len(pairs) > 400
    kept = twins(captions, listed, np.ones(len(listed.phrases), np.bool_), np.uint64(1))
    assert set(map(tuple, np.sort(kept.caption, axis=1).tolist())) <= pairs and len(kept) > 300


def test_phrases_are_found_where_they_stand() -> None:
    texts = ["A Dog in front of THE tennis-court", "in front of", "dog", "", "x " * 200]
    captions = Captions(Caption(str(n), str(n), text, "", "") for n, text in enumerate(texts))
    found = phrases_in(captions, ("dog", "in front of", "tennis court"))
    places = zip(found.caption.tolist(), found.start.tolist(), found.which.tolist(), strict=True)
    assert sorted(places) == [(0, 0, 0), (0, 1, 1), (0, 4, 2), (1, 0, 1), (2, 0, 0)]
    assert len({sums_of(one.split())[-1] for one in vocabulary().phrases}) == len(vocabulary().phrases)
    begin, end = span_of(texts[0], "tennis court", 4)
    assert texts[0][begin:end] == "tennis-court"


def test_the_lists_say_what_excludes_what() -> None:
    listed = vocabulary()
    number = {phrase: n for n, phrase in enumerate(listed.phrases)}

    def apart(one: str, other: str) -> str:
        line = listed.twin[number[one], number[other]]
        assert (line < 0) == (listed.twin[number[other], number[one]] < 0)
        return listed.lines[line].kind if line >= 0 else ""

    same = [("man", "guy"), ("man", "person"), ("man", "boy"), ("hill", "slope"), ("dog", "cats"), ("dog", "spaniel")]
    same += [("sitting", "stands"), ("brown", "tan"), ("water", "lake"), ("one", "single")]
    assert [apart(*pair) for pair in same] == [""] * len(same)
    assert apart("dogs", "cats") == apart("men", "girls") == apart("canoe", "kayak") == "object"
    assert (apart("snow", "grass"), apart("two", "four"), apart("in front of", "behind")) == (
        "place",
        "count",
        "relation",
    )
    assert apart("red", "blue") == "attribute"
