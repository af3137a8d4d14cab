"""The fast draws under the published rules are distributed as the published procedure's, triplet by triplet."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency

from tests.generators.triplets.conftest import RATED, Said, relations_of
from tests.generators.triplets.published_procedure import Drawn, PublishedProcedure, table_of
from twinset.generators.triplets import published
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import with_plurals
from twinset.generators.triplets.relations import Relations

pytestmark = pytest.mark.slow

SLOW, REAL_SLOW, FAST = 6000, 20_000, 200_000  # triplets
THRESHOLD = 4.6  # of the tests' own: a man's glasses pass as glass, and not as they are rated
SMALLEST = 12  # expected slow triplets of a cell; smaller ones are counted together
LIKELY, REFUTED = 1e-4, 1e-9

Ratings = dict[str, float]
Cell = tuple[str, ...]  # subject, object of the reference, object of the target, condition; or the first of these


def cells(relations: Relations, pairs: Iterable[tuple[int, int]]) -> Counter[Cell]:
    table = table_of(relations)
    found: Counter[Cell] = Counter()
    for (reference, target), count in Counter(pairs).items():
        one, other = table[reference], table[target]
        found[one.subject, one.object, other.object, f"{other.predicate} {other.object}"] += count
    return found


def slow_cells(relations: Relations, ratings: Ratings, threshold: float, triplets: int) -> Counter[Cell]:
    procedure = PublishedProcedure(table_of(relations), ratings, threshold, min_images=5, seed=7)
    return cells(relations, (procedure.triplet()[:2] for _ in range(triplets)))


def fast_cells(relations: Relations, ratings: Ratings, threshold: float) -> Counter[Cell]:
    mined = PublishedRules(relations, ratings, threshold, 5).mine(Draws(1, "triplets"), 0, FAST)
    assert mined["passes"].all()
    return cells(relations, mined.select("reference", "target").iter_rows())


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
def own(own_said: list[Said], own_ratings: Ratings) -> tuple[Relations, Counter[Cell]]:
    relations = relations_of(own_said)
    return relations, slow_cells(relations, own_ratings, THRESHOLD, SLOW)


def test_own_relations_with_targets_that_only_the_last_draw_gives(
    own: tuple[Relations, Counter[Cell]], own_ratings: Ratings
) -> None:
    relations, slow = own
    fast = fast_cells(relations, own_ratings, THRESHOLD)
    assert sum(count for (_, reference, target, _), count in fast.items() if reference == target) > 0.01 * FAST
    p, number = p_value(slow.copy(), fast)
    assert number > 15
    assert p > LIKELY


def test_what_is_drawn_otherwise_is_refuted(
    own: tuple[Relations, Counter[Cell]], own_ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    relations, slow = own
    assert p_value(slow.copy(), fast_cells(relations, RATED, THRESHOLD))[0] < REFUTED, "plurals not overwritten"
    monkeypatch.setattr(published, "DRAWS", 50)
    early = fast_cells(relations, own_ratings, THRESHOLD)
    assert p_value(slow.copy(), early)[0] < REFUTED, "bad targets pass after 50 draws"


def test_real_captions(real_relations: Relations, real_ratings: Ratings) -> None:
    relations, real_ratings = often_said(real_relations), with_plurals(real_ratings)
    p, number = p_value(slow_cells(relations, real_ratings, 4.8, REAL_SLOW), fast_cells(relations, real_ratings, 4.8))
    assert number > 60
    assert p > LIKELY


def test_scores_are_the_published_ones_to_the_last_bit(real_relations: Relations, real_ratings: Ratings) -> None:
    """So that means that round to the threshold fall on the same side of it."""
    ratings = with_plurals(real_ratings)
    mined = PublishedRules(real_relations, ratings, 4.8, 5).mine(Draws(1, "triplets"), 0, 2000)
    procedure = PublishedProcedure(table_of(real_relations), ratings, 4.8, min_images=5, seed=0)
    three = mined.select("reference", "target", "distractor").iter_rows()
    assert [procedure.concreteness(Drawn(*parts)) for parts in three] == mined["concreteness"].to_list()


def often_said(relations: Relations, words: int = 12) -> Relations:
    """The relations of the most frequent subjects with the most frequent objects, so that cells are filled."""
    rows = relations.index.collect()
    for name in ("subject", "object"):
        frequent = relations.index.collect()[name].value_counts().sort("count", name, descending=[True, False])
        rows = rows.filter(pl.col(name).is_in(frequent[name].head(words).implode()))
    return Relations(rows.drop("row").with_row_index("row").lazy(), relations.silent, rows.height)
