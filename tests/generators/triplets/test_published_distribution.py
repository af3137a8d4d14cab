"""The fast draws under the published rules are distributed as the published procedure's, triplet by triplet."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency

from tests.generators.triplets.conftest import OWN, RATED, relations_of
from tests.generators.triplets.published_procedure import PublishedProcedure, table_of
from twinset.generators.triplets import published
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import with_plurals
from twinset.generators.triplets.relations import Relations

pytest.importorskip("inflect", reason="inflect makes the plurals: pip install 'twinset[text]'")
pytestmark = pytest.mark.slow

SLOW, REAL_SLOW, FAST = 6000, 20_000, 200_000  # triplets
THRESHOLD = 4.6  # of the tests' own: a man's glasses pass as glass, and not as they are rated
SMALLEST = 12  # expected slow triplets of a cell; smaller ones are counted together
LIKELY, REFUTED = 1e-4, 1e-9

Ratings = dict[str, float]
Cells = Counter[tuple[str, ...]]  # triplets by subject, object of the reference, and condition


def cells(relations: Relations, pairs: Iterable[tuple[int, int]]) -> Cells:
    table, found = table_of(relations), Cells()
    for (reference, target), count in Counter(pairs).items():
        found[(*table[reference][1::2], *table[target][2:])] += count
    return found


def p_value(relations: Relations, slow: Ratings, fast: Ratings, threshold: float, triplets: int) -> tuple[float, int]:
    """Of both procedures drawing alike with their ratings, and the number of cells that are not counted together."""
    procedure = PublishedProcedure(table_of(relations), slow, threshold, min_images=5, seed=7)
    mined = PublishedRules(relations, fast, threshold, 5).mine(Draws(1, "triplets"), 0, FAST)
    assert mined["passes"].all()
    pairs = (procedure.triplet()[:2] for _ in range(triplets)), mined.select("reference", "target").iter_rows()
    slow_cells, fast_cells = (cells(relations, drawn) for drawn in pairs)
    often = [cell for cell, count in fast_cells.items() if count * triplets >= SMALLEST * FAST]
    table = np.array([[*(counts[cell] for cell in often), 0] for counts in (slow_cells, fast_cells)])
    table[:, -1] = (triplets, FAST) - table.sum(axis=1)
    return float(chi2_contingency(table[:, table.any(axis=0)]).pvalue), len(often)


def test_own_relations_with_targets_that_only_the_last_draw_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    relations, ratings = relations_of(OWN), with_plurals(RATED)
    p, number = p_value(relations, ratings, ratings, THRESHOLD, SLOW)
    assert p > LIKELY and number > 12
    assert p_value(relations, ratings, RATED, THRESHOLD, SLOW)[0] < REFUTED, "plurals not overwritten"
    monkeypatch.setattr(published, "DRAWS", 50)
    assert p_value(relations, ratings, ratings, THRESHOLD, SLOW)[0] < REFUTED, "bad targets pass after 50 draws"


def test_real_captions(real_relations: Relations, real_ratings: Ratings) -> None:
    """Of the most frequent subjects with the most frequent objects, so that cells are filled."""
    rows, ratings = real_relations.index.collect(), with_plurals(real_ratings)
    for name in ("subject", "object"):
        frequent = real_relations.index.collect()[name].value_counts().sort("count", name, descending=[True, False])
        rows = rows.filter(pl.col(name).is_in(frequent[name].head(12).implode()))
    relations = Relations(rows.drop("row").with_row_index("row").lazy(), real_relations.silent, rows.height)
    p, number = p_value(relations, ratings, ratings, 4.8, REAL_SLOW)
    assert p > LIKELY and number > 60


def test_scores_are_the_published_ones_to_the_last_bit(real_relations: Relations, real_ratings: Ratings) -> None:
    """So that means that round to the threshold fall on the same side of it."""
    ratings = with_plurals(real_ratings)
    mined = PublishedRules(real_relations, ratings, 4.8, 5).mine(Draws(1, "triplets"), 0, 2000)
    procedure = PublishedProcedure(table_of(real_relations), ratings, 4.8, min_images=5, seed=0)
    triplets = mined.select("reference", "target", "distractor").rows()
    assert [procedure.concreteness(triplet) for triplet in triplets] == mined["concreteness"].to_list()
