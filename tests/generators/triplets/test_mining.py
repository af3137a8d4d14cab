"""Triplets by number, the strict rules as invariants, what is planned and reported, and what the card says of it."""

import hashlib
import json
from collections import Counter
from itertools import islice, product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.generators.triplets.conftest import OWN, RATED, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.markdown import card_block
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import BLOCK, Miner
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.relations import Relations
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import StrictRules
from twinset.shards.contracts import Context

DRAWS = Draws(3, "triplets")
DIGESTS = {"strict": "ea777f7f5eda34fd72d645663c888cc1", "published": "ba42b1fc185cb031578ca0e48b20eb27"}


def opened(said: str = OWN, **settings: Any) -> Triplets:
    """The source at work on relations."""
    names = {"graphs": "graphs", "concreteness": Path("ratings.txt"), "licence": "CC0-1.0", **settings}
    source: Triplets = Triplets(kind="genecis-triplets", **names).open(Context("triplets", seed=5))
    vars(source)["_miner"] = StrictRules(relations_of(said), RATED, 4.6, 5, 1, source.distractors)
    return source


def miner(said: str, rules: str = "strict", threshold: float = 4.6, min_images: int = 5, **settings: bool) -> Miner:
    if rules == "published":
        return PublishedRules(relations_of(said), RATED, threshold, min_images)  # without plurals
    return StrictRules(relations_of(said), RATED, threshold, min_images, 1, **settings)


@pytest.mark.parametrize("rules", DIGESTS)
def test_any_split_gives_the_same_triplets_and_more_keep_the_first(rules: str) -> None:
    last = 2 * BLOCK + 77
    whole = miner(OWN, rules, distractors=True).mine(DRAWS, 0, last)
    assert whole["passes"].all()
    again = miner(OWN, rules, distractors=True)
    split = [again.mine(DRAWS, *ends) for ends in ((2 * BLOCK - 1, last), (5, 2 * BLOCK - 1), (0, 5))]
    assert whole.equals(pl.concat(split[::-1]))
    assert whole[: 2 * BLOCK].equals(pl.concat(islice(again.stream(DRAWS), 2)))
    for draws in (Draws(4, "triplets"), Draws(3, "others")):
        assert (again.mine(draws, 0, 1000)["reference"] != whole["reference"][:1000]).mean() > 0.5
    # A change to what is drawn raises the source's version, then this digest.
    parts = whole[:5000].select("number", pl.col("reference", "target", "distractor").cast(pl.Int32), "concreteness")
    drawn = hashlib.blake2b(b"".join(column.to_numpy().tobytes() for column in parts), digest_size=16)
    assert (Triplets.version, drawn.hexdigest()) == (8, DIGESTS[rules])


@pytest.mark.slow
def test_strict_triplets_of_real_captions(real_relations: Relations, real_ratings: dict[str, float]) -> None:
    """Held against the table itself, row by row."""
    table = StrictRules(real_relations, real_ratings, 4.8, 5, 2, distractors=True).mine(DRAWS, 0, 3000)
    assert table["passes"].all()
    index = real_relations.index.with_columns(pl.col("subject_lemma", "object_lemma").str.to_lowercase()).collect()
    rows, named = index.to_dicts(), dict[str, set[str]]()
    for row in rows:
        named.setdefault(row["photo"], set()).update((row["subject_lemma"], row["object_lemma"]))
    for drawn in table.iter_rows(named=True):
        reference, target, distractor = (rows[drawn[name]] for name in ("reference", "target", "distractor"))
        assert all(reference[name] == target[name] for name in ("subject_lemma", "subject_number"))
        assert target["object_lemma"] not in named[reference["photo"]]
        assert reference["photo"] != target["photo"] and drawn["concreteness"] > 4.8
        assert distractor["object_lemma"] == target["object_lemma"]
        assert target["subject_lemma"] not in named[distractor["photo"]]


def test_strict_triplets_are_drawn_by_their_chances() -> None:
    """Counted from the list itself. Captions of ideas comment; no target is worn, and none is a new kind of place."""
    own, expected = dict[str, list[tuple[int, str, str, str]]](), dict[tuple[int, int], float]()
    for row, said in enumerate(OWN.replace("glasses", "glass").split(", ")):
        image, subject, predicate, object_ = said.split()
        if {subject, object_} <= RATED.keys() - {"idea"}:
            own.setdefault(subject, []).append((row, image, predicate, object_))
    for subject, relations in own.items():
        images, objects = {relation[1] for relation in relations}, Counter(relation[3] for relation in relations)
        for reference, target in product(relations, relations) if len(images) >= 5 and len(objects) >= 2 else ():
            unsaid = not any((image, object_) == (reference[1], target[3]) for _, image, _, object_ in relations)
            places = {"on", "in", "near", "behind"}
            fits = target[3] not in ("hat", "glass") and (target[2] not in places or reference[2] in places)
            rated = 2 * RATED[subject] + RATED[reference[3]] + RATED[target[3]] > 4 * 4.6 + 1e-9
            if unsaid and fits and rated:
                expected[reference[0], target[0]] = len(images) / len(relations) / len(objects) / objects[target[3]]
    table = miner(OWN).mine(DRAWS, 0, 200_000)
    counts = Counter(table.select("reference", "target").iter_rows())
    assert counts.keys() == expected.keys()
    for pair, weight in expected.items():
        mean = weight / sum(expected.values()) * 200_000
        assert abs(counts[pair] - mean) < 6 * mean**0.5 + 6


def test_a_limit_of_uses_keeps_the_first_of_each_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted here again, one triplet after the other; photos of one caption count as one."""
    monkeypatch.setattr("twinset.generators.triplets.mining.IN_A_ROW", 16)
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 2048)  # refused draws lie on both sides of its end
    words = product(("on", "near", "riding", "chewing"), ("horse", "ball", "tree", "dog", "bird"))
    own = ", ".join(f"m{image} man {predicate} {object_}" for image, (predicate, object_) in enumerate(words))
    every = miner(own).mine(Draws(5, "triplets"), 0, 8192).select("number", "reference", "target")
    said, expected, uses = [relation.split(" ", 1) for relation in own.split(", ")], list[int](), list[Any]()
    for number, *rows in every.iter_rows():
        parts = [(part, name) for part, row in zip("rt", rows, strict=True) for name in said[row]]
        pair = [said[row][1] for row in rows]
        if pair not in uses and all(uses.count(part) < 2 for part in parts):
            uses += [*parts, pair]
            expected.append(number)
            if len(expected) % 16 == 0:
                uses.clear()
    source = opened(own, max_uses=2)
    plan = islice(source.plan(), 120)
    planned, distractors = zip(*((candidate.number, candidate.images[2]) for candidate in plan), strict=True)
    assert {*distractors} == {""}, "none is asked for"
    assert [*planned] == expected[:120] and 0 < len(list(opened(max_uses=2).plan())) < 16
    assert not source.excluded, "what a limit refuses is not left out"


def test_where_nothing_can_pass_the_message_says_what_is_left_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    men = ", ".join(said for said in OWN.split(", ") if said.split()[1] == "man")
    with pytest.raises(WrongUse, match=r"1 eligible subjects.* lower the threshold"):
        miner(men, distractors=True)  # none of their objects has a distractor
    with pytest.raises(WrongUse, match=r"0 eligible subjects.*min_images"):
        miner(OWN, min_images=1000)
    said = "a man with hat, a man on horse, a dog with hat, b tree with hat, c bird on horse"
    alike = miner(said, min_images=1, distractors=True)  # of one image, always
    assert alike.mine(DRAWS, 0, 50)["passes"].null_count() == 50
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)
    with pytest.raises(WrongUse, match="no triplet in 64 times 1000 draws"):
        next(alike.stream(DRAWS))


def test_numbers_are_left_out_alone() -> None:
    """One reference in many thousands can pass, so that most numbers find nothing: the others are as they would be."""
    mining = miner("a man with ball, " * 3000 + "b man with ball" + ", a man riding horse" * 3000, min_images=2)
    table = mining.mine(DRAWS, 0, 200)
    assert 0 < table["passes"].null_count() < 200
    assert table.equals(pl.concat([mining.mine(DRAWS, 0, 33), mining.mine(DRAWS, 33, 200)]))


def test_the_plan_has_what_each_part_says() -> None:
    plan, own = opened(distractors=True).plan(), OWN.split(", ")
    for candidate in (next(plan) for _ in range(200)):
        assert candidate.condition == f"{candidate.predicates[1]} {candidate.objects[1]}"
        for part in range(3):
            image, *words = own[int(candidate.caption_ids[part])].split()
            assert candidate.image_ids[part] == image and candidate.images[part] == f"{image}.jpg"
            said = [candidate.subjects[part], candidate.predicates[part], candidate.objects[part]]
            assert said == words == candidate.captions[part].split()


def test_the_report_counts_and_the_card_tells_it() -> None:
    source = opened(distractors=True)
    report = json.loads(source.report_files()["mining.json"])
    funnel, relations = report["funnel"], len(OWN.split(", "))
    assert (funnel["relations with both words rated"], funnel["eligible subjects"]) == (relations - 1, 4)
    card = card_block(source, "how_made", {"mining.json": report})
    last, relations_of_eligible = (
        funnel["references within reach of the threshold"],
        funnel["relations of eligible subjects"],
    )
    assert f"| all | {relations} |" in card and f"| {last} | {relations_of_eligible - last} |" in card
    assert "6. The *distractor*" in card


def test_the_card_claims_no_limit_that_is_not_set() -> None:
    source = opened(max_uses=2)
    assert "at most 2 have one image" in card_block(source, "how_made")
    assert "at most 2" not in card_block(source.model_copy(update={"rules": "published"}), "how_made")
