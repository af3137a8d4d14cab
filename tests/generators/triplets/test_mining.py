"""Triplets by number, the strict rules as invariants, and what happens where little or nothing passes."""

import hashlib
from collections import Counter
from itertools import islice

import polars as pl
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import BLOCK, Miner
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.relations import Relations
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import StrictRules

DRAWS = Draws(3, "triplets")


def miner(relations: Relations, rules: str, threshold: float, min_images: int = 5, distractors: bool = True) -> Miner:
    if rules == "published":
        return PublishedRules(relations, RATED, threshold, min_images)  # without plurals
    return StrictRules(relations, RATED, threshold, min_images, 1, distractors=distractors)


@pytest.mark.parametrize("rules", ["strict", "published"])
def test_any_split_gives_the_same_triplets_and_more_keep_the_first(own_said: list[Said], rules: str) -> None:
    last = 2 * BLOCK + 77
    whole = miner(relations_of(own_said), rules, 4.6).mine(DRAWS, 0, last)
    assert whole["passes"].all()
    again = miner(relations_of(own_said), rules, 4.6)
    parts = [again.mine(DRAWS, *ends) for ends in ((2 * BLOCK - 1, last), (5, 2 * BLOCK - 1), (0, 5))]
    assert whole.equals(pl.concat(parts[::-1]))
    assert whole[: 2 * BLOCK].equals(pl.concat(islice(again.stream(DRAWS), 2)))
    for draws in (Draws(4, "triplets"), Draws(3, "others")):
        assert (again.mine(draws, 0, 1000)["reference"] != whole["reference"][:1000]).mean() > 0.5


@pytest.mark.parametrize(
    ("rules", "digest"),
    [("strict", "4a7e551b392cb79e4445b1e0c308958f"), ("published", "ba42b1fc185cb031578ca0e48b20eb27")],
)
def test_the_same_triplets_as_ever(own_said: list[Said], rules: str, digest: str) -> None:
    """A change to what is drawn raises the source's version, then this digest."""
    table = miner(relations_of(own_said), rules, 4.6).mine(DRAWS, 0, 5000)
    drawn = hashlib.blake2b(table["number"].to_numpy().tobytes(), digest_size=16)
    for name in ("reference", "target", "distractor"):
        drawn.update(table[name].cast(pl.Int32).to_numpy().tobytes())
    drawn.update(table["concreteness"].to_numpy().tobytes())
    assert (Triplets.version, drawn.hexdigest()) == (7, digest)


@pytest.mark.slow
@pytest.mark.parametrize("distractors", [True, False])
def test_strict_triplets_of_real_captions(
    real_relations: Relations, real_ratings: dict[str, float], distractors: bool
) -> None:
    """Held against the table itself, row by row."""
    table = StrictRules(real_relations, real_ratings, 4.8, 5, 2, distractors=distractors).mine(DRAWS, 0, 3000)
    assert table["passes"].all()
    index = real_relations.index.collect().to_dicts()
    named: dict[str, set[str]] = {}
    for row in index:
        named.setdefault(row["photo"], set()).update({row["subject_lemma"].lower(), row["object_lemma"].lower()})
    for drawn in table.iter_rows(named=True):
        reference, target = (index[drawn[name]] for name in ("reference", "target"))
        assert reference["subject_lemma"].lower() == target["subject_lemma"].lower()
        assert reference["subject_number"] == target["subject_number"]
        assert target["object_lemma"].lower() not in named[reference["photo"]]
        assert reference["photo"] != target["photo"] and drawn["concreteness"] > 4.8
        assert distractors == (drawn["distractor"] is not None)
        if distractors:
            distractor = index[drawn["distractor"]]
            assert distractor["object_lemma"].lower() == target["object_lemma"].lower()
            assert target["subject_lemma"].lower() not in named[distractor["photo"]]


def test_strict_triplets_are_drawn_by_their_chances(own_said: list[Said]) -> None:
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
        for reference in own:
            for target in own:
                of_object = sum(relation[2] == target[2] for relation in own)
                unsaid = (reference[0], subject, target[2]) not in shown
                if unsaid and reference[3] + target[3] > 4 * 4.6 + 1e-9:
                    expected[reference[4], target[4]] = len(images) / len(own) / len(objects) / of_object
    table = miner(relations_of(own_said), "strict", 4.6, distractors=False).mine(DRAWS, 0, 200_000)
    counts = Counter(table.select("reference", "target").iter_rows())
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
    every = mining.mine(DRAWS, 0, 3 * BLOCK).select("number", "reference", "target")
    expected: list[int] = []
    uses: list[tuple[str, str]] = []
    for number, *rows in every.iter_rows():
        names = [(own_said[row][0], " ".join(own_said[row][1:])) for row in rows]
        parts = [(part, name) for part, both in zip("rt", names, strict=True) for name in both]
        pair = ("p", str([caption for _, caption in names]))
        if pair not in uses and all(uses.count(part) < 2 for part in parts):
            uses += [*parts, pair]
            expected.append(number)
            if len(expected) % 30 == 0:
                uses.clear()
    admitted = pl.concat(mining.stream(DRAWS, max_uses=2))["number"].to_list()
    assert len(admitted) < 200 and admitted == expected[: len(admitted)]


def test_where_nothing_can_pass_the_message_says_what_is_left_and_what_to_do(own_said: list[Said]) -> None:
    men = relations_of([said for said in own_said if said[1] == "man"])
    with pytest.raises(WrongUse, match=r"1 eligible subjects.* lower the threshold"):
        miner(men, "strict", 4.6)  # none of their objects has a distractor
    assert miner(men, "strict", 4.6, distractors=False).mine(DRAWS, 0, 10)["passes"].all()
    for rules in ("strict", "published"):
        with pytest.raises(WrongUse, match=r"4 eligible subjects.* lower the threshold"):
            miner(relations_of(own_said), rules, 5.5, distractors=False)
        with pytest.raises(WrongUse, match=r"0 eligible subjects.*min_images"):
            miner(relations_of(own_said), rules, 4.6, min_images=1000)
    with pytest.raises(WrongUse, match=r"0 relations with both words rated.*min_support"):
        miner(relations_of([("a", "unheard", "of", "words")]), "strict", 4.6, min_images=1)


ALIKE: list[Said] = [("a", "man", "with", "hat"), ("a", "man", "on", "horse"), ("a", "dog", "with", "hat")]


def test_pairs_of_one_image_alone_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    relations = relations_of([*ALIKE, ("b", "tree", "with", "hat"), ("c", "bird", "on", "horse")])
    strict = miner(relations, "strict", 4.6, min_images=1)
    assert strict.mine(DRAWS, 0, 50)["passes"].null_count() == 50
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)
    with pytest.raises(WrongUse, match="no triplet in 64 times 1000 draws"):
        next(strict.stream(DRAWS))
    table = miner(relations, "published", 4.6, min_images=1).mine(DRAWS, 0, 200)
    assert table["passes"].all()  # the last of 101 draws is taken, whatever it is
    images = [row["image_id"] for row in relations.index.collect().to_dicts()]
    assert all(images[reference] == images[target] for reference, target in table.select("reference", "target").rows())


def test_numbers_are_left_out_alone() -> None:
    """One reference in many thousands can pass, so that most numbers find nothing: the others are as they would be."""
    said: list[Said] = [*[("a", "man", "with", "hat")] * 3000, ("b", "man", "with", "hat")]
    said += [("a", "man", "on", "horse")] * 3000
    mining = miner(relations_of(said), "strict", 4.6, min_images=2, distractors=False)
    table = mining.mine(DRAWS, 0, 200)
    assert 0 < table["passes"].null_count() < 200
    assert table.equals(pl.concat([mining.mine(DRAWS, 0, 33), mining.mine(DRAWS, 33, 200)]))
