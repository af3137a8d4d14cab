"""Triplets by number, the strict rules as invariants, and what happens where little or nothing passes."""

import hashlib
import tracemalloc
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import NONE, Draws
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import BLOCK, Miner, TripletTable
from twinset.generators.triplets.pool import Pool, rate
from twinset.generators.triplets.ratings import Balance, Ratings, Rules
from twinset.generators.triplets.source import Triplets

DRAWS = Draws(3, "triplets")
COLUMNS = ("number", "reference", "target", "distractor", "concreteness")
AS_RATED = Ratings(RATED, RATED)  # under the published rules, without plurals


def miner(
    relations: Relations,
    ratings: Ratings,
    rules: Rules,
    threshold: float,
    min_images: int = 5,
    distractors: bool = True,
    balance: Balance = "images",
) -> Miner:
    return Miner(Pool(relations, ratings, rules, min_images, balance=balance), threshold, distractors)


def assert_equal(one: TripletTable, other: TripletTable) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert one.left_out == other.left_out


def joined(tables: list[TripletTable]) -> TripletTable:
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS}
    return TripletTable(**columns, left_out=sum(table.left_out for table in tables))


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_any_split_gives_the_same_triplets(own_said: list[Said], rules: Rules) -> None:
    last = 2 * BLOCK + 77
    whole = miner(relations_of(own_said), AS_RATED, rules, 4.6).mine(DRAWS, 0, last)
    assert len(whole) == last
    again = miner(relations_of(own_said), AS_RATED, rules, 4.6)
    for cuts in ([1, 5, BLOCK], [BLOCK // 2, 2 * BLOCK - 1, 2 * BLOCK], [last - 1]):
        ends = list(zip([0, *cuts], [*cuts, last], strict=True))
        parts = {ends: again.mine(DRAWS, *ends) for ends in reversed(ends)}
        assert_equal(whole, joined([parts[one] for one in ends]))


def test_more_triplets_keep_the_first(own_said: list[Said]) -> None:
    mine = miner(relations_of(own_said), AS_RATED, "strict", 4.6).mine
    few, many = mine(DRAWS, 0, 500), mine(DRAWS, 0, 20_000)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:500])
    streamed = joined(list(islice(miner(relations_of(own_said), AS_RATED, "strict", 4.6).stream(DRAWS), 2)))
    assert_equal(streamed, mine(DRAWS, 0, 2 * BLOCK))
    assert len(mine(DRAWS, 5, 5)) == 0


@pytest.mark.parametrize(
    ("rules", "digest"),
    [("strict", "4a7e551b392cb79e4445b1e0c308958f"), ("published", "ba42b1fc185cb031578ca0e48b20eb27")],
)
def test_the_same_triplets_as_ever(own_said: list[Said], rules: Rules, digest: str) -> None:
    """A change to what is drawn raises the generator's version, then this digest."""
    table = miner(relations_of(own_said), AS_RATED, rules, 4.6).mine(DRAWS, 0, 5000)
    found = hashlib.blake2b(digest_size=16)
    for name in COLUMNS:
        found.update(np.ascontiguousarray(getattr(table, name)).tobytes())
    assert (Triplets.version, found.hexdigest()) == (7, digest)


def test_seed_and_subset_change_the_triplets(own_said: list[Said]) -> None:
    mine = miner(relations_of(own_said), AS_RATED, "strict", 4.6).mine
    first = mine(DRAWS, 0, 1000)
    for other in (Draws(4, "triplets"), Draws(3, "others")):
        assert (mine(other, 0, 1000).reference != first.reference).mean() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("distractors", [True, False])
def test_strict_triplets_of_real_captions(real_relations: Relations, real_ratings: Ratings, distractors: bool) -> None:
    found = miner(real_relations, real_ratings, "strict", 4.8, distractors=distractors).mine(DRAWS, 0, 3000)
    assert found.left_out == 0
    image_ids = real_relations.texts["image_id"].to_pylist()  # of captions
    shown = {
        (image_ids[caption], real_relations.words[one].lower(), real_relations.words[other].lower())
        for caption, one, other in zip(
            real_relations.caption, real_relations.subject_lemma, real_relations.object_lemma, strict=True
        )
    }

    def facts(row: int) -> tuple[str, str, str, float]:
        """Image id, lemmas, and the sum of both ratings."""
        words, total = [], 0.0
        for surface, lemma in (
            (real_relations.subject, real_relations.subject_lemma),
            (real_relations.object, real_relations.object_lemma),
        ):
            word, base = real_relations.words[surface[row]].lower(), real_relations.words[lemma[row]].lower()
            words.append(base)
            total += real_ratings.rated[word if word in real_ratings.rated else base]
        return image_ids[real_relations.caption[row]], words[0], words[1], total

    for at in range(len(found)):
        reference, target = facts(found.reference[at]), facts(found.target[at])
        assert reference[1] == target[1] and reference[2] != target[2] and reference[0] != target[0]
        assert (reference[0], *target[1:3]) not in shown
        assert (reference[3] + target[3]) / 4 == pytest.approx(found.concreteness[at])
        assert found.concreteness[at] > 4.8
        if not distractors:
            assert found.distractor[at] == NONE
            continue
        distractor = facts(found.distractor[at])
        assert distractor[2] == target[2] and distractor[1] != target[1]
        assert distractor[0] not in (reference[0], target[0])
        assert (distractor[0], *target[1:3]) not in shown
        assert distractor[3] > 2 * 4.8


@pytest.mark.parametrize("balance", ["images", "subjects"])
def test_strict_draws_every_triplet_that_the_rules_allow(own_said: list[Said], balance: Balance) -> None:
    """Enumerated here: subjects by images or evenly, references evenly, targets by object, and what breaks a rule drawn
    again. A man's idea counts among his images; of a caption that speaks of ideas no triplet is drawn."""
    relations = relations_of(own_said)
    table = [(image, said[0], said[2]) for (image, *said) in own_said]
    lemmas = {"glasses": "glass"}
    rated = [
        (image, subject, lemmas.get(object_, object_), RATED[subject] + RATED[object_], row)
        for row, (image, subject, object_) in enumerate(table)
        if {subject, object_} <= RATED.keys()
    ]
    shown = {(image, subject, object_) for image, subject, object_, *_ in rated}
    expected: dict[tuple[int, int], float] = {}
    for subject in {one[1] for one in rated}:
        seen = {one[0] for one in rated if one[1] == subject}
        own = [one for one in rated if one[1] == subject and one[2] != "idea"]
        images, objects = {one[0] for one in own}, {one[2] for one in own}
        if len(seen) < 5 or len(objects) < 2:
            continue
        times = len(images) if balance == "images" else 1
        for one in own:
            for other in own:
                allowed = (one[0], subject, other[2]) not in shown and one[3] + other[3] > 4 * 4.6 + 1e-9
                of_object = sum(each[2] == other[2] for each in own)
                if allowed:
                    expected[one[4], other[4]] = times / len(own) / len(objects) / of_object
    found = miner(relations, AS_RATED, "strict", 4.6, distractors=False, balance=balance).mine(DRAWS, 0, 200_000)
    counts: dict[tuple[int, int], int] = {}
    for pair in zip(found.reference.tolist(), found.target.tolist(), strict=True):
        counts[pair] = counts.get(pair, 0) + 1
    assert counts.keys() == expected.keys()
    total = sum(expected.values())
    for pair, weight in expected.items():
        mean = weight / total * len(found)
        assert abs(counts[pair] - mean) < 6 * mean**0.5 + 6


def test_a_limit_of_uses_keeps_the_first_of_each_thousand(
    own_said: list[Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted here again, one triplet after the other; photos of one caption count as one."""
    monkeypatch.setattr("twinset.generators.triplets.mining.IN_A_ROW", 30)
    relations = relations_of(own_said)
    mining = miner(relations, AS_RATED, "strict", 4.6, distractors=False)
    every = mining.mine(DRAWS, 0, 3 * BLOCK)
    expected: list[int] = []
    uses: list[tuple[str, str]] = []
    for number, *both in zip(every.number.tolist(), every.reference.tolist(), every.target.tolist(), strict=True):
        names = [(own_said[row][0], " ".join(own_said[row][1:])) for row in both]
        parts = [(part, name) for part, both in zip("rt", names, strict=True) for name in both]
        pair = ("p", str([caption for _, caption in names]))
        if pair not in uses and all(uses.count(one) < 2 for one in parts):
            uses += [*parts, pair]
            expected.append(number)
            if len(expected) % 30 == 0:
                uses.clear()
    tables = list(mining.stream(DRAWS, max_uses=2))
    found = np.concatenate([table.number for table in tables]).tolist()
    assert len(found) < 200 and found == expected[: len(found)]
    first = tables[0]
    assert sorted([*first.number.tolist(), *first.used.tolist()]) == list(range(BLOCK))
    published = miner(relations, AS_RATED, "published", 4.6)
    assert len(next(published.stream(DRAWS, max_uses=1))) == BLOCK, "a rule of the strict ones"


def test_relations_tell_what_was_mined(own_said: list[Said]) -> None:
    relations = relations_of(own_said)
    table = miner(relations, AS_RATED, "strict", 4.6, distractors=False).mine(DRAWS, 0, 300)
    for column in (table.reference, table.target):
        told = relations.texts_of(column)
        for at, row in enumerate(column.tolist()):
            image, *said = own_said[row]
            mention = {name: texts[at] for name, texts in told.items()}
            assert [mention["subject"], mention["predicate"], mention["object"]] == said
            assert (mention["image_id"], mention["image"], mention["caption_id"]) == (image, f"{image}.jpg", str(row))
            assert mention["caption"] == " ".join(said)
    assert {text for texts in relations.texts_of(table.distractor).values() for text in texts} == {""}


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_a_threshold_that_nothing_passes_is_refused_with_what_can_be_reached(
    own_said: list[Said], rules: Rules
) -> None:
    with pytest.raises(WrongUse, match=r"4 eligible subjects.* at most .*lower the threshold") as refused:
        miner(relations_of(own_said), AS_RATED, rules, 5.5, distractors=False)
    reach = float(str(refused.value).partition("at most ")[2].split()[0])
    assert len(miner(relations_of(own_said), AS_RATED, rules, reach - 0.001, distractors=False).mine(DRAWS, 0, 10))
    with pytest.raises(WrongUse, match="at most"):
        miner(relations_of(own_said), AS_RATED, rules, reach + 0.001, distractors=False)


def test_what_reaches_the_threshold_but_not_more_is_refused_at_once(own_said: list[Said]) -> None:
    tops = [one for one in own_said if {one[1], one[3]} <= {"tree", "horse", "ball", "hat", "bird"}]
    alike = Ratings(dict.fromkeys(RATED, 4.5), dict.fromkeys(RATED, 4.5))
    with pytest.raises(WrongUse, match=r"at most 4\.500 and must exceed 4\.5:"):
        miner(relations_of(tops), alike, "strict", 4.5, distractors=False)
    assert len(miner(relations_of(tops), alike, "strict", 4.49, distractors=False).mine(DRAWS, 0, 10)) == 10


def test_objects_without_distractors_are_refused(own_said: list[Said]) -> None:
    men = relations_of([one for one in own_said if one[1] == "man"])
    with pytest.raises(WrongUse, match=r"has a distractor above 4\.6.*mine without distractors"):
        miner(men, AS_RATED, "strict", 4.6)
    assert len(miner(men, AS_RATED, "strict", 4.6, distractors=False).mine(DRAWS, 0, 10)) == 10


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_too_few_images_are_refused(own_said: list[Said], rules: Rules) -> None:
    with pytest.raises(WrongUse, match=r"0 eligible subjects.*min_images"):
        miner(relations_of(own_said), AS_RATED, rules, 4.6, min_images=1000)
    with pytest.raises(WrongUse, match="0 eligible subjects"):
        miner(relations_of([("a", "unheard", "of", "words")]), AS_RATED, rules, 4.6, min_images=1)


ALIKE: list[Said] = [("a", "man", "with", "hat"), ("a", "man", "on", "horse"), ("a", "dog", "with", "hat")]


def test_pairs_of_one_image_alone_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    relations = relations_of([*ALIKE, ("b", "tree", "with", "hat"), ("c", "bird", "on", "horse")])
    strict = miner(relations, AS_RATED, "strict", 4.6, min_images=1)
    nothing = strict.mine(DRAWS, 0, 50)
    assert len(nothing) == 0 and nothing.left_out == 50
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)
    with pytest.raises(WrongUse, match="no triplet in 64 times 1000 draws"):
        next(strict.stream(DRAWS))
    published = miner(relations, AS_RATED, "published", 4.6, min_images=1).mine(DRAWS, 0, 200)
    assert published.left_out == 0  # the last of 101 draws is taken, whatever it is
    images = relations.image
    assert (images[published.reference] == images[published.target]).all()


def test_numbers_are_left_out_alone(own_said: list[Said]) -> None:
    """One reference in many thousands can pass, so that most numbers find nothing: the others are as they would be."""
    said = [*[("a", "man", "with", "hat")] * 3000, ("b", "man", "with", "hat"), *[("a", "man", "on", "horse")] * 3000]
    mining = miner(relations_of(said), AS_RATED, "strict", 4.6, min_images=2, distractors=False)
    found = mining.mine(DRAWS, 0, 200)
    assert 0 < len(found) < 200 and found.left_out == 200 - len(found)
    assert_equal(found, joined([mining.mine(DRAWS, 0, 33), mining.mine(DRAWS, 33, 200)]))


def test_a_pool_does_not_change_with_the_numbers_of_words(own_said: list[Said]) -> None:
    """More words in the vocabulary change nothing for captions that do not use them."""
    relations = relations_of(own_said)
    longer = relations_of([*own_said, ("z", "aardvark", "above", "zebu")])
    one, other = (miner(each, AS_RATED, "strict", 4.6).mine(DRAWS, 0, 200) for each in (relations, longer))
    assert_equal(one, other)


def test_one_endless_word_does_not_multiply_the_memory_of_all(own_said: list[Said]) -> None:
    relations = relations_of(own_said)
    words = [*relations.words, *(f"~{number:04d}" for number in range(2000)), "~" * 9900]
    tracemalloc.start()
    try:
        rated = rate(replace(relations, words=words), AS_RATED, "strict")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(rated.object, rate(relations, AS_RATED, "strict").object)
    assert peak < 10e6  # bytes; 80 MB where each word takes as much as the longest
