"""The shares of published triplets that strict rules keep out: each counted one by one, and rules that find nothing."""

from pathlib import Path

import pytest

from studies.mining_rules import SAMPLE, compare
from tests.generators.triplets.conftest import (  # noqa: F401  # fixtures
    RATED,
    Said,
    own_ratings,
    own_said,
    real_graphs,
    real_ratings,
    real_relations,
    relations_of,
)
from tests.generators.triplets.published_procedure import Drawn, PublishedProcedure, table_of
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings, Rules
from twinset.generators.triplets.source import Triplets

DRAWS = Draws(5, "triplets")


def settings(rules: Rules, threshold: float, distractors: bool = True) -> Triplets:
    return Triplets(
        kind="genecis-triplets",
        graphs="graphs",
        concreteness=Path("r.txt"),
        rules=rules,
        min_images=5,
        threshold=threshold,
        distractors=distractors,
        min_support=1,
        licence="CC0-1.0",
    )


@pytest.mark.parametrize("distractors", [True, False])
def test_own_captions(own_said: list[Said], own_ratings: Ratings, distractors: bool) -> None:  # noqa: F811
    found = compare(relations_of(own_said), own_ratings, settings("strict", 4.6, distractors), DRAWS)
    assert found is not None and found.same_object > 0.01  # crowns
    glasses = next(one for one in found.overwritten if one.word == "glasses")
    assert (glasses.rated, glasses.published, glasses.relations) == (4.0, 4.9, 2)
    assert found.by_overwriting > 0 and (found.distractor_shows_target is not None) == distractors
    shares = found.model_dump(exclude={"triplets", "any", "strict_dropped", "overwritten"}, exclude_none=True)
    assert max(shares.values()) <= found.any <= sum(shares.values()) + 1e-5, "a union"


def test_shares_are_those_of_published_triplets_one_by_one(
    real_relations: Relations,  # noqa: F811
    real_ratings: Ratings,  # noqa: F811
) -> None:
    shares = compare(real_relations, real_ratings, settings("published", 4.8), DRAWS)
    assert shares is not None and real_ratings.published is not None
    pool = Pool(real_relations, real_ratings, "published", 5)
    mined = Miner(pool, 4.8).mine(DRAWS, 0, SAMPLE)
    table = table_of(real_relations)
    procedure = PublishedProcedure(table, real_ratings.published, 4.8, 5, seed=0)
    others = {**real_ratings.published, **real_ratings.rated}
    kept = PublishedProcedure(table, others, 4.8, 5, seed=0)
    words = real_relations.words
    lemma = {
        row: (words[one].lower(), words[other].lower())
        for row, (one, other) in enumerate(zip(real_relations.subject_lemma, real_relations.object_lemma, strict=True))
    }
    shown = {(table[row].image, *both) for row, both in lemma.items()}
    counts = dict.fromkeys(("same_object", "same_image", "target_image", "shows", "overwriting", "distractor"), 0)
    for reference, target, distractor in zip(
        mined.reference.tolist(), mined.target.tolist(), mined.distractor.tolist(), strict=True
    ):
        counts["same_object"] += lemma[reference][1] == lemma[target][1]
        counts["same_image"] += table[reference].image == table[target].image
        counts["target_image"] += table[distractor].image == table[target].image
        counts["shows"] += (table[distractor].image, *lemma[target]) in shown
        counts["overwriting"] += kept.concreteness(Drawn(reference, target, distractor)) <= 4.8
        four = [procedure.ratings.get(word, -1) for row in (reference, target) for word in table[row][1::2]]
        counts["distractor"] += sum(four) / 4 <= 4.8
    expected = {name: count / SAMPLE for name, count in counts.items()}
    assert expected == pytest.approx(
        {
            "same_object": shares.same_object,
            "same_image": shares.same_image,
            "target_image": shares.distractor_of_target_image,
            "shows": shares.distractor_shows_target,
            "overwriting": shares.by_overwriting,
            "distractor": shares.by_distractor,
        },
        abs=2e-4,  # means that round to the threshold
    )
    assert shares.any >= max(expected.values())


def test_published_rules_that_find_nothing_differ_in_nothing(own_said: list[Said]) -> None:  # noqa: F811
    ratings = Ratings(RATED, dict.fromkeys(RATED, 4.5))  # a mean of the threshold itself, which is not above it
    assert compare(relations_of(own_said), ratings, settings("strict", 4.5, False), DRAWS) is None
