"""The fast draws under the published rules are distributed as the published procedure's, triplet by triplet."""

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.generators.triplets.conftest import Said, relations_of
from tests.generators.triplets.published_procedure import Drawn, PublishedProcedure, table_of
from twinset.generators.triplets import rules
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.graphs import Relations
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings

pytestmark = pytest.mark.slow

SLOW, REAL_SLOW, FAST = 6000, 20_000, 200_000  # triplets
THRESHOLD = 4.6  # of the tests' own: a man's glasses pass as glass, and not as they are rated
SMALLEST = 12  # expected slow triplets of a cell; smaller ones are counted together
LIKELY, REFUTED = 1e-4, 1e-9

Cell = tuple[str, ...]  # subject, object of the reference, object of the target, condition; or the first of these


def cells(relations: Relations, pairs: Iterable[tuple[int, int]]) -> Counter[Cell]:
    table = table_of(relations)
    found: Counter[Cell] = Counter()
    for (reference, target), count in Counter(pairs).items():
        one, other = table[reference], table[target]
        found[one.subject, one.object, other.object, f"{other.predicate} {other.object}"] += count
    return found


def slow_cells(relations: Relations, ratings: Ratings, threshold: float, triplets: int) -> Counter[Cell]:
    assert ratings.published is not None
    procedure = PublishedProcedure(table_of(relations), ratings.published, threshold, min_images=5, seed=7)
    return cells(relations, (procedure.triplet()[:2] for _ in range(triplets)))


def fast_cells(pool: Pool, threshold: float) -> Counter[Cell]:
    mined = Miner(pool, threshold).mine(Draws(1, "triplets"), 0, FAST)
    assert mined.left_out == 0
    return cells(pool.relations, zip(mined.reference.tolist(), mined.target.tolist(), strict=True))


def p_value(slow: Counter[Cell], fast: Counter[Cell]) -> tuple[float, int]:
    """Of both being drawn alike, and the number of cells: small ones fall to their subject, then to the rest."""
    ratio = slow.total() / fast.total()
    total = slow.total() + fast.total()
    for length in (1, 0):
        small = {cell for cell in slow | fast if fast[cell] * ratio < SMALLEST}
        for counts in (slow, fast):
            for cell in small & counts.keys():
                counts[cell[:length]] += 0 if len(cell) <= length else counts.pop(cell)
    kept = sorted(slow | fast)
    table = np.array([[counts[cell] for cell in kept] for counts in (slow, fast)])
    assert table.sum() == total
    return float(chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue), len(kept)


@pytest.fixture(scope="module")
def own(own_said: list[Said], own_ratings: Ratings) -> tuple[Pool, Counter[Cell]]:
    relations = relations_of(own_said)
    pool = Pool(relations, own_ratings, "published", min_images=5)
    return pool, slow_cells(relations, own_ratings, THRESHOLD, SLOW)


def test_own_relations_with_targets_that_only_the_last_draw_gives(own: tuple[Pool, Counter[Cell]]) -> None:
    pool, slow = own
    fast = fast_cells(pool, THRESHOLD)
    assert sum(count for (_, one, other, _), count in fast.items() if one == other) > 0.01 * FAST
    p, number = p_value(slow.copy(), fast)
    assert number > 15
    assert p > LIKELY


def test_what_is_drawn_otherwise_is_refuted(
    own: tuple[Pool, Counter[Cell]], own_said: list[Said], own_ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, slow = own
    evenly = copy(pool)
    evenly.images = np.ones_like(pool.images)
    assert p_value(slow.copy(), fast_cells(evenly, THRESHOLD))[0] < REFUTED, "subjects drawn evenly"
    as_rated = replace(own_ratings, published=own_ratings.rated)
    relations = pool.relations
    other = Pool(relations, as_rated, "published", min_images=5)
    assert p_value(slow.copy(), fast_cells(other, THRESHOLD))[0] < REFUTED, "plurals not overwritten"
    monkeypatch.setattr(rules, "DRAWS", 50)
    assert p_value(slow.copy(), fast_cells(pool, THRESHOLD))[0] < REFUTED, "bad targets pass after 50 draws"


def test_real_captions(real_relations: Relations, real_ratings: Ratings) -> None:
    relations = often_said(real_relations)
    pool = Pool(relations, real_ratings, "published", min_images=5)
    p, number = p_value(slow_cells(relations, real_ratings, 4.8, REAL_SLOW), fast_cells(pool, 4.8))
    assert number > 60
    assert p > LIKELY


def test_scores_are_the_published_ones_to_the_last_bit(real_relations: Relations, real_ratings: Ratings) -> None:
    """So that means that round to the threshold fall on the same side of it."""
    pool = Pool(real_relations, real_ratings, "published", min_images=5)
    mined = Miner(pool, 4.8).mine(Draws(1, "triplets"), 0, 2000)
    assert real_ratings.published is not None
    procedure = PublishedProcedure(table_of(real_relations), real_ratings.published, 4.8, min_images=5, seed=0)
    three = zip(mined.reference.tolist(), mined.target.tolist(), mined.distractor.tolist(), strict=True)
    assert [procedure.concreteness(Drawn(*one)) for one in three] == mined.concreteness.tolist()


def often_said(relations: Relations, words: int = 12) -> Relations:
    """The relations of the most frequent subjects with the most frequent objects, so that cells are filled."""
    chosen = np.ones(len(relations), dtype=np.bool_)
    for codes in (relations.subject, relations.object):
        chosen &= np.isin(codes, np.argsort(-np.bincount(codes), kind="stable")[:words])
    columns = {
        field.name: getattr(relations, field.name)[chosen]
        for field in fields(relations)
        if field.name in ("subject", "object", "subject_lemma", "object_lemma", "predicate", "caption", "image")
    }
    return replace(relations, **columns)
