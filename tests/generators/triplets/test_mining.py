"""Triplets by number, the strict rules as invariants, and what happens where little or nothing passes."""

import hashlib
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import NONE, Draws, below, uniform
from twinset.generators.triplets.mining import BLOCK, Miner, TripletTable
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.relations import Relations
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import Balance, StrictRules

DRAWS = Draws(3, "triplets")
COLUMNS = ("number", "reference", "target", "distractor", "concreteness")


class AsRated(Ratings):
    """Under the published rules, without plurals."""

    published = RATED  # type: ignore[assignment]


def miner(relations: Relations, rules: str, threshold: float, min_images: int = 5, **settings: Any) -> Miner:
    if rules == "published":
        return Miner(PublishedRules(relations, AsRated(RATED), threshold, min_images))
    settings = {"min_support": 1, "distractors": True, **settings}
    return Miner(StrictRules(relations, AsRated(RATED), threshold, min_images, **settings))


def rows_of(mining: Miner, table: TripletTable) -> dict[str, Any]:
    """Columns of a table, with numbers of relations in the stage."""
    row = mining.rules.pool.row
    parts = {name: getattr(table, name) for name in COLUMNS}
    return {**parts, **{name: np.where(parts[name] < 0, NONE, row[parts[name]]) for name in COLUMNS[1:4]}}


def assert_equal(first: TripletTable, second: TripletTable) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    assert first.left_out == second.left_out


def joined(tables: list[TripletTable]) -> TripletTable:
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS}
    return TripletTable(**columns, left_out=sum(table.left_out for table in tables))


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_any_split_gives_the_same_triplets_and_more_keep_the_first(own_said: list[Said], rules: str) -> None:
    last = 2 * BLOCK + 77
    whole = miner(relations_of(own_said), rules, 4.6).mine(DRAWS, 0, last)
    assert len(whole) == last
    again = miner(relations_of(own_said), rules, 4.6)
    cuts = [0, 5, BLOCK // 2, 2 * BLOCK - 1, last]
    parts = {ends: again.mine(DRAWS, *ends) for ends in reversed(list(pairwise(cuts)))}
    assert_equal(whole, joined(list(parts.values())[::-1]))
    assert_equal(joined(list(islice(again.stream(DRAWS), 2))), again.mine(DRAWS, 0, 2 * BLOCK))
    assert len(again.mine(DRAWS, 5, 5)) == 0
    for draws in (Draws(4, "triplets"), Draws(3, "others")):
        assert (again.mine(draws, 0, 1000).reference != whole.reference[:1000]).mean() > 0.5


@pytest.mark.parametrize(
    ("rules", "digest"),
    [("strict", "4a7e551b392cb79e4445b1e0c308958f"), ("published", "ba42b1fc185cb031578ca0e48b20eb27")],
)
def test_the_same_triplets_as_ever(own_said: list[Said], rules: str, digest: str) -> None:
    """A change to what is drawn raises the source's version, then this digest."""
    mining = miner(relations_of(own_said), rules, 4.6)
    columns = rows_of(mining, mining.mine(DRAWS, 0, 5000))
    drawn = hashlib.blake2b(digest_size=16)
    for name in COLUMNS:
        drawn.update(np.ascontiguousarray(columns[name]).tobytes())
    assert (Triplets.version, drawn.hexdigest()) == (7, digest)


@pytest.mark.slow
@pytest.mark.parametrize("distractors", [True, False])
def test_strict_triplets_of_real_captions(real_relations: Relations, real_ratings: Ratings, distractors: bool) -> None:
    """Held against the table itself, row by row."""
    mining = Miner(StrictRules(real_relations, real_ratings, 4.8, 5, 2, distractors=distractors))
    table = mining.mine(DRAWS, 0, 3000)
    assert table.left_out == 0
    index = real_relations.index.collect().to_dicts()
    named: dict[str, set[str]] = {}
    for row in index:
        named.setdefault(row["photo"], set()).update({row["subject_lemma"].lower(), row["object_lemma"].lower()})
    columns = rows_of(mining, table)
    for place in range(len(table)):
        reference, target = (index[columns[name][place]] for name in ("reference", "target"))
        assert reference["subject_lemma"].lower() == target["subject_lemma"].lower()
        assert reference["subject_number"] == target["subject_number"]
        assert target["object_lemma"].lower() not in named[reference["photo"]]
        assert reference["photo"] != target["photo"] and columns["concreteness"][place] > 4.8
        if distractors:
            distractor = index[columns["distractor"][place]]
            assert distractor["object_lemma"].lower() == target["object_lemma"].lower()
            assert target["subject_lemma"].lower() not in named[distractor["photo"]]
    assert distractors or set(columns["distractor"]) == {NONE}


@pytest.mark.parametrize("balance", ["images", "subjects"])
def test_strict_triplets_are_drawn_by_their_chances(own_said: list[Said], balance: Balance) -> None:
    """Counted from the list itself. A man's idea counts among his images; no triplet is drawn of it."""
    lemmas = {"glasses": "glass"}
    rated = [
        (image, subject, lemmas.get(object_, object_), RATED[subject] + RATED[object_], row)
        for row, (image, subject, _, object_) in enumerate(own_said)
        if {subject, object_} <= RATED.keys()
    ]
    shown = {(image, subject, object_) for image, subject, object_, *_ in rated}
    expected: dict[tuple[int, int], float] = {}
    for subject in {relation[1] for relation in rated}:
        seen = {relation[0] for relation in rated if relation[1] == subject}
        own = [relation for relation in rated if relation[1] == subject and relation[2] != "idea"]
        images, objects = {relation[0] for relation in own}, {relation[2] for relation in own}
        if len(seen) < 5 or len(objects) < 2:
            continue
        times = len(images) if balance == "images" else 1
        for reference in own:
            for target in own:
                of_object = sum(relation[2] == target[2] for relation in own)
                unsaid = (reference[0], subject, target[2]) not in shown
                if unsaid and reference[3] + target[3] > 4 * 4.6 + 1e-9:
                    expected[reference[4], target[4]] = times / len(own) / len(objects) / of_object
    mining = miner(relations_of(own_said), "strict", 4.6, distractors=False, balance=balance)
    columns = rows_of(mining, mining.mine(DRAWS, 0, 200_000))
    counts = Counter(zip(columns["reference"].tolist(), columns["target"].tolist(), strict=True))
    assert counts.keys() == expected.keys()
    for pair, weight in expected.items():
        mean = weight / sum(expected.values()) * 200_000
        assert abs(counts[pair] - mean) < 6 * mean**0.5 + 6


def test_a_limit_of_uses_keeps_the_first_of_each_thousand(
    own_said: list[Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted here again, one triplet after the other; photos of one caption count as one."""
    monkeypatch.setattr("twinset.generators.triplets.mining.IN_A_ROW", 30)
    mining = miner(relations_of(own_said), "strict", 4.6, distractors=False)
    every = rows_of(mining, mining.mine(DRAWS, 0, 3 * BLOCK))
    expected: list[int] = []
    uses: list[tuple[str, str]] = []
    for number, *rows in zip(*(every[name].tolist() for name in ("number", "reference", "target")), strict=True):
        names = [(own_said[row][0], " ".join(own_said[row][1:])) for row in rows]
        parts = [(part, name) for part, both in zip("rt", names, strict=True) for name in both]
        pair = ("p", str([caption for _, caption in names]))
        if pair not in uses and all(uses.count(part) < 2 for part in parts):
            uses += [*parts, pair]
            expected.append(number)
            if len(expected) % 30 == 0:
                uses.clear()
    tables = list(mining.stream(DRAWS, max_uses=2))
    admitted = np.concatenate([table.number for table in tables]).tolist()
    assert len(admitted) < 200 and admitted == expected[: len(admitted)]
    assert sorted([*tables[0].number.tolist(), *tables[0].used.tolist()]) == list(range(BLOCK))
    published = miner(relations_of(own_said), "published", 4.6)
    assert len(next(published.stream(DRAWS, max_uses=1))) == BLOCK, "a rule of the strict ones"


def test_relations_tell_what_was_mined(own_said: list[Said]) -> None:
    relations = relations_of(own_said)
    rows = np.array([7, 3, NONE, 7])
    texts = relations.texts(rows).to_dicts()
    for row, text in zip(rows.tolist(), texts, strict=True):
        if row == NONE:
            assert text["caption"] is text["image_id"] is None
            continue
        image, *said = own_said[row]
        assert [text["subject"], text["predicate"], text["object"]] == said
        assert (text["image_id"], text["image"], text["caption_id"]) == (image, f"{image}.jpg", str(row))


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_a_threshold_that_nothing_passes_is_refused_with_what_can_be_reached(own_said: list[Said], rules: str) -> None:
    with pytest.raises(WrongUse, match=r"4 eligible subjects.* at most .*lower the threshold") as refused:
        miner(relations_of(own_said), rules, 5.5, distractors=False)
    reach = float(str(refused.value).partition("at most ")[2].split()[0])
    assert len(miner(relations_of(own_said), rules, reach - 0.001, distractors=False).mine(DRAWS, 0, 10))
    with pytest.raises(WrongUse, match="at most"):
        miner(relations_of(own_said), rules, reach + 0.001, distractors=False)


def test_where_nothing_can_pass_the_message_says_what_to_do(own_said: list[Said]) -> None:
    men = relations_of([said for said in own_said if said[1] == "man"])
    with pytest.raises(WrongUse, match=r"has a distractor above 4\.6.*mine without distractors"):
        miner(men, "strict", 4.6)
    assert len(miner(men, "strict", 4.6, distractors=False).mine(DRAWS, 0, 10)) == 10
    for rules in ("strict", "published"):
        with pytest.raises(WrongUse, match=r"0 eligible subjects.*min_images"):
            miner(relations_of(own_said), rules, 4.6, min_images=1000)
    with pytest.raises(WrongUse, match=r"0 relations with both words rated.*min_support"):
        miner(relations_of([("a", "unheard", "of", "words")]), "strict", 4.6, min_images=1)


ALIKE: list[Said] = [("a", "man", "with", "hat"), ("a", "man", "on", "horse"), ("a", "dog", "with", "hat")]


def test_pairs_of_one_image_alone_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    relations = relations_of([*ALIKE, ("b", "tree", "with", "hat"), ("c", "bird", "on", "horse")])
    strict = miner(relations, "strict", 4.6, min_images=1)
    assert strict.mine(DRAWS, 0, 50).left_out == 50
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)
    with pytest.raises(WrongUse, match="no triplet in 64 times 1000 draws"):
        next(strict.stream(DRAWS))
    published = miner(relations, "published", 4.6, min_images=1)
    table = published.mine(DRAWS, 0, 200)
    assert table.left_out == 0  # the last of 101 draws is taken, whatever it is
    images = published.rules.pool.image
    assert (images[table.reference] == images[table.target]).all()


def test_numbers_are_left_out_alone() -> None:
    """One reference in many thousands can pass, so that most numbers find nothing: the others are as they would be."""
    said: list[Said] = [*[("a", "man", "with", "hat")] * 3000, ("b", "man", "with", "hat")]
    said += [("a", "man", "on", "horse")] * 3000
    mining = miner(relations_of(said), "strict", 4.6, min_images=2, distractors=False)
    table = mining.mine(DRAWS, 0, 200)
    assert 0 < len(table) < 200 and table.left_out == 200 - len(table)
    assert_equal(table, joined([mining.mine(DRAWS, 0, 33), mining.mine(DRAWS, 33, 200)]))


def test_random_numbers_are_even_and_independent_of_slots() -> None:
    states = DRAWS.states(np.arange(200_000), np.zeros(200_000, dtype=np.int64))
    first, second = uniform(states, 0), uniform(states, 1)
    assert abs(first.mean() - 0.5) < 0.003 and abs(np.corrcoef(first, second)[0, 1]) < 0.01
    counts = np.bincount(below(states, 2, np.full(200_000, 7, dtype=np.int32)))
    assert len(counts) == 7 and (abs(counts - 200_000 / 7) < 800).all()
