"""The fast draws under the published rules are distributed as the published procedure's, triplet by triplet."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
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

SLOW, FAST = 6000, 200_000  # triplets
THRESHOLD = 4.6  # of the tests' own: a man's glasses pass as glass, and not as they are rated
SMALLEST = 12  # expected slow triplets of a cell; smaller ones are counted together
LIKELY, REFUTED = 1e-4, 1e-9

Ratings = dict[str, float]
Cells = Counter[tuple[str, ...]]  # triplets by subject, object of the reference, and condition


def cells(relations: Relations, pairs: Iterable[tuple[int, int]]) -> Cells:
    table, counts = table_of(relations), Cells()
    for (reference, target), count in Counter(pairs).items():
        counts[(*table[reference][1::2], *table[target][2:])] += count
    return counts


def p_value(relations: Relations, slow: Ratings, fast: Ratings) -> tuple[float, int]:
    """Of both procedures drawing alike with their ratings, and the number of cells that are not counted together."""
    procedure = PublishedProcedure(table_of(relations), slow, THRESHOLD, min_images=5, seed=7)
    mined = PublishedRules(relations, fast, THRESHOLD, 5).mine(Draws(1, "triplets"), 0, FAST)
    assert mined["passes"].all()
    slow_cells = cells(relations, (procedure.triplet()[:2] for _ in range(SLOW)))
    fast_cells = cells(relations, mined.select("reference", "target").iter_rows())
    often = [cell for cell, count in fast_cells.items() if count * SLOW >= SMALLEST * FAST]
    table = np.array([[*(counts[cell] for cell in often), 0] for counts in (slow_cells, fast_cells)])
    table[:, -1] = (SLOW, FAST) - table.sum(axis=1)
    return float(chi2_contingency(table[:, table.any(axis=0)]).pvalue), len(often)


def test_own_relations_with_targets_that_only_the_last_draw_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    relations, ratings = relations_of(OWN), with_plurals(RATED)
    p, number = p_value(relations, ratings, ratings)
    assert p > LIKELY and number > 12
    assert p_value(relations, ratings, RATED)[0] < REFUTED, "plurals not overwritten"
    monkeypatch.setattr(published, "DRAWS", 50)
    assert p_value(relations, ratings, ratings)[0] < REFUTED, "bad targets pass after 50 draws"


def test_scores_are_the_published_ones_to_the_last_bit() -> None:
    """So that means that round to the threshold fall on the same side of it."""
    relations, ratings = relations_of(OWN), with_plurals({word: rating + 0.1 / 3 for word, rating in RATED.items()})
    mined = PublishedRules(relations, ratings, THRESHOLD, 5).mine(Draws(1, "triplets"), 0, 2000)
    procedure = PublishedProcedure(table_of(relations), ratings, THRESHOLD, min_images=5, seed=0)
    triplets = mined.select("reference", "target", "distractor").rows()
    assert [procedure.concreteness(triplet) for triplet in triplets] == mined["concreteness"].to_list()
