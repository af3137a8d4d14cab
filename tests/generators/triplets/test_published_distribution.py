"""The fast draws under the published rules are distributed as the published procedure's, triplet by triplet."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency

from tests.generators.triplets.conftest import Said, relations_of
from tests.generators.triplets.published_procedure import Drawn, PublishedProcedure, table_of
from tests.generators.triplets.test_mining import AsRated, rows_of
from twinset.generators.triplets import published
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import Ratings
from twinset.generators.triplets.relations import Relations

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
    procedure = PublishedProcedure(table_of(relations), ratings.published, threshold, min_images=5, seed=7)
    return cells(relations, (procedure.triplet()[:2] for _ in range(triplets)))


def fast_cells(
    relations: Relations, ratings: Ratings, threshold: float, rules: PublishedRules | None = None
) -> Counter[Cell]:
    mining = Miner(rules or PublishedRules(relations, ratings, threshold, 5))
    mined = mining.mine(Draws(1, "triplets"), 0, FAST)
    assert mined.left_out == 0
    rows = rows_of(mining, mined)
    return cells(relations, zip(rows["reference"].tolist(), rows["target"].tolist(), strict=True))


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
    unlike = AsRated(own_ratings.rated)
    assert p_value(slow.copy(), fast_cells(relations, unlike, THRESHOLD))[0] < REFUTED, "plurals not overwritten"
    monkeypatch.setattr(published, "DRAWS", 50)
    early = fast_cells(relations, own_ratings, THRESHOLD)
    assert p_value(slow.copy(), early)[0] < REFUTED, "bad targets pass after 50 draws"


def test_real_captions(real_relations: Relations, real_ratings: Ratings) -> None:
    relations = often_said(real_relations)
    p, number = p_value(slow_cells(relations, real_ratings, 4.8, REAL_SLOW), fast_cells(relations, real_ratings, 4.8))
    assert number > 60
    assert p > LIKELY


def test_scores_are_the_published_ones_to_the_last_bit(real_relations: Relations, real_ratings: Ratings) -> None:
    """So that means that round to the threshold fall on the same side of it."""
    mining = Miner(PublishedRules(real_relations, real_ratings, 4.8, 5))
    rows = rows_of(mining, mining.mine(Draws(1, "triplets"), 0, 2000))
    procedure = PublishedProcedure(table_of(real_relations), real_ratings.published, 4.8, min_images=5, seed=0)
    three = zip(*(rows[name].tolist() for name in ("reference", "target", "distractor")), strict=True)
    assert [procedure.concreteness(Drawn(*parts)) for parts in three] == rows["concreteness"].tolist()


@pytest.mark.parametrize("seed", [20261128, 7331])
def test_the_pool_is_the_published_procedure_s_on_random_tables(own_ratings: Ratings, seed: int) -> None:
    """Subjects that may be drawn, their chances, and the relations of every subject, object and pair of both."""
    random = np.random.default_rng(seed)
    words = [*own_ratings.rated, "thingummy", "Men", "läufer"]
    zipf = 1 / np.arange(1, len(words) + 1)
    drawn = random.choice(words, (3000, 2), p=zipf / zipf.sum())
    said = [(f"i{random.integers(400)}", subject, "on", object_) for subject, object_ in drawn.tolist()]
    relations = relations_of(said)
    slow = PublishedProcedure(table_of(relations), own_ratings.published, 4.0, min_images=5, seed=0)
    pool = PublishedRules(relations, own_ratings, 4.0, 5).pool
    of_subject = [pool.row[pool.subject[pool.pair] == number].tolist() for number in range(len(pool.images))]
    names = [said[rows[0]][1] for rows in of_subject]
    assert {name: sorted(rows) for name, rows in zip(names, of_subject, strict=True)} == slow.rows_of_subject
    eligible = np.flatnonzero(pool.eligible).tolist()
    chances = dict(zip(slow.subjects, slow.chances.tolist(), strict=True))
    images = pool.images[eligible] / pool.images[eligible].sum()
    drawn_so = {names[number]: share for number, share in zip(eligible, images.tolist(), strict=True)}
    assert drawn_so == pytest.approx(chances)
    for pair, (start, count) in enumerate(zip(pool.start.tolist(), pool.count.tolist(), strict=True)):
        rows = pool.row[start : start + count].tolist()
        subject, object_ = said[rows[0]][1], said[rows[0]][3]
        assert rows == slow.rows_of_pair[subject][object_]
        first = pool.object_start[pool.object[pair]]
        of_object = pool.row[pool.by_object[first : first + pool.object_count[pool.object[pair]]]]
        assert sorted(of_object.tolist()) == slow.rows_of_object[object_]


def often_said(relations: Relations, words: int = 12) -> Relations:
    """The relations of the most frequent subjects with the most frequent objects, so that cells are filled."""
    rows = relations.index.collect()
    for name in ("subject", "object"):
        frequent = relations.index.collect()[name].value_counts().sort("count", name, descending=[True, False])
        rows = rows.filter(pl.col(name).is_in(frequent[name].head(words).implode()))
    return Relations(rows.lazy(), relations.silent, rows.height)
