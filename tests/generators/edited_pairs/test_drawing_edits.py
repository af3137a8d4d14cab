"""Drawn pairs of captions: one difference each, evenly spread, the same however many are asked for."""

from collections import Counter
from dataclasses import asdict
from itertools import islice

import pytest

from twinset.contracts.canonical import digest
from twinset.generators.edited_pairs.generator import EditedPairGenerator
from twinset.generators.edited_pairs.vocabulary import KINDS, DrawnEdit, draw_edits, load_captions, vocabulary_file

GOLDEN = {"figure-15": "51bfd7d16c451d26343ce779069a5e43", "small-world": "cd7af4b3fc2e0b3792c974aae8c4b8d4"}


def _without(caption: str, word: str) -> list[str]:
    said = f" {caption.rstrip('.')} "
    assert not word or said.count(f" {word} ") == 1
    return said.replace(f" {word} ", " ").split()


def drawn(name: str, count: int, seed: int = 0, subset: str = "eq-sd") -> list[DrawnEdit]:
    return list(islice(draw_edits(load_captions(vocabulary_file(name)), seed, subset), count))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_captions_of_a_pair_differ_in_its_words_alone(name: str) -> None:
    for pair in drawn(name, 300):
        rest = [_without(caption, word) for caption, word in zip(pair.captions, pair.words, strict=True)]
        assert pair.words[0] != pair.words[1] and rest[0] == rest[1]
        for caption, word in zip(pair.captions, pair.region or (), strict=False):
            assert f" {word} " in f" {caption.rstrip('.')} "


@pytest.mark.parametrize("name", GOLDEN)
def test_kinds_rows_and_words_come_equally_often(name: str) -> None:
    pairs, vocabulary = drawn(name, 1513), load_captions(vocabulary_file(name))
    kinds = Counter(pair.kind for pair in pairs)
    assert set(kinds) == set(KINDS) and max(kinds.values()) - min(kinds.values()) <= 1
    for kind in KINDS:
        sides = Counter(pair.plain for pair in pairs if pair.kind == kind)
        assert abs(sides[0] - sides[1]) <= 0.1 * kinds[kind]
        for number in vocabulary.of_kind(kind):
            row = vocabulary.rows[number]
            said = Counter(word for pair in pairs if pair.row == number for word in pair.words)
            assert set(said) == set(row.words[row.changes]) and max(said.values()) <= 1.35 * min(said.values())


def test_captions_come_again_only_when_they_must() -> None:
    pairs = [pair for pair in drawn("figure-15", 1513) if pair.kind == "object"]
    distinct = {frozenset(pair.captions) for pair in pairs}
    # 63 or 64 pairs of each of eight sets, the smallest of which can be said in 4, 4, 18, 24, 36 and 40 ways.
    assert len(pairs) == 505 and len(distinct) > 0.9 * (4 + 4 + 18 + 24 + 36 + 40 + 2 * 63)
    small = drawn("small-world", 300)
    assert len({frozenset(pair.captions) for pair in small}) > 280


def test_a_phrase_is_always_added_to_the_picture_without_it() -> None:
    with_and_without = [pair for pair in drawn("figure-15", 900) if "" in pair.words]
    assert {pair.kind for pair in with_and_without} == {"scene", "attribute"}
    assert all(pair.words[pair.plain] == "" for pair in with_and_without)
    assert {pair.plain for pair in with_and_without} == {0, 1}


def test_the_stream_of_a_version_never_changes() -> None:
    # Raise the version of `EditedPairGenerator` with these.
    found = {name: digest([asdict(pair) for pair in drawn(name, 100)]) for name in GOLDEN}
    assert (EditedPairGenerator.version, found) == (3, GOLDEN)


def test_asking_for_more_keeps_the_first_ones_and_another_seed_or_subset_draws_others() -> None:
    assert drawn("figure-15", 200)[:50] == drawn("figure-15", 50)
    others = [drawn("figure-15", 50, seed=1), drawn("figure-15", 50, subset="eq-sd-2")]
    assert drawn("figure-15", 50) not in others and others[0] != others[1]
