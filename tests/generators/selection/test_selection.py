"""Selection from a finished stage of scores: both sets of rules, adversarial refinement, reports and bad input."""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.generators.selection.scored_stage import context, drawn, row, selected, selection, stage_of
from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.models import Recipe
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.markdown import card_block
from twinset.generators.negative_captions.kinds import KINDS
from twinset.generators.selection.source import balanced, cells_of, ranks_of

COUNT = 2000
# The published selection, transcribed: one row after the other, in lists and dicts, with pandas' quantiles.


def refine(pairs: Sequence[tuple[float, float]], seed: int = 0) -> list[int]:
    """The published refinement of (first gap, second gap); unlike the released code gaps of 1 are in the last bin."""
    rng, cells, kept = random.Random(seed), defaultdict[tuple[str, int, int], list[int]](list), []
    for number, (first, second) in enumerate(pairs):
        if first == 0 and second == 0:
            kept.append(number)
        elif first == 0 or second == 0:
            axis, gap = ("second", second) if first == 0 else ("first", first)
            cells[axis, _signed(gap, 10), 0].append(number)
        else:
            cells["both", _signed(first, 50), _signed(second, 50)].append(number)
    for where, members in cells.items():
        name, first_bin, second_bin = where
        opposite = cells.get((name, -first_bin, -second_bin), [])
        kept += rng.sample(members, min(len(members), len(opposite)))
    return kept


def _signed(gap: float, bins: int) -> int:
    size = min(int(abs(gap) * bins) + 1, bins)
    return size if gap > 0 else -size


def before_refinement(rows: Iterable[Mapping[str, Any]], kinds: Sequence[str], quantile: float = 0.645) -> list[str]:
    """Ids of the rows that reach the published refinement, kind by kind."""
    import pandas as pd

    table = pd.DataFrame(list(rows))
    table["kind"] = table["type"] + "_" + table["subtype"]
    parts = []
    for kind in kinds:
        part = table[(table["kind"] == kind) & (table["similarity"] < 0.999)]
        vera, cola = part["vera_negative"].quantile(quantile), part["cola_negative"].quantile(quantile)
        parts.append(part[(part["vera_negative"] >= vera) & (part["cola_negative"] >= cola)])
    pool = pd.concat(parts)
    pool = pool[pool["negative_caption"].str.endswith(".") & (pool["negative_caption"].str.len() > 10)]
    repeated = pool["negative_caption"].str.replace(".", "", regex=False).duplicated()
    return [*pool[~repeated]["caption_id"]]


def test_published_rules_select_what_the_published_procedure_does_however_a_stage_was_cut(tmp_path: Path) -> None:
    rows = drawn(COUNT)
    earlier, again = (stage_of(rows, tmp_path / str(size), row_group=size) for size in (1000, 37))
    expected = before_refinement(rows, list(KINDS))
    unrefined = selected(earlier, refine=[])
    assert unrefined == [row["caption_id"] for row in rows if row["caption_id"] in set(expected)]
    gaps = {row["caption_id"]: [row[f"{name}_caption"] - row[f"{name}_negative"] for name in PUBLISHED] for row in rows}
    reached = [(first, second) for first, second in map(gaps.__getitem__, expected)]
    slow = [reached[place] for place in refine(reached)]
    fast = [tuple(gaps[name]) for name in selected(earlier)]
    assert Counter(cells(slow, PUBLISHED)) == Counter(cells(fast, PUBLISHED)) and 10 < len(fast) < len(unrefined)
    assert selected(again) == selected(earlier) != selected(earlier, seed=1)


def test_rules_of_the_paper_differ_where_its_text_does(tmp_path: Path) -> None:
    texts = ["A cat sleeps.", "A cat sleeps. ", "Is it a cat?", "A cat!", "A cat", "A cat sleeps.", "A ca. t sleeps."]
    scores = {"vera_negative": 0.9, "cola_negative": 0.1, "similarity": 1.0}
    rows = [row(number, negative_caption=text, **scores) for number, text in enumerate(texts)]
    # A combined score above the others', of which one is below.
    rows += [row(7, negative_caption="A bus.", vera_negative=0.4, cola_negative=0.7, similarity=None)]
    earlier = stage_of(rows, tmp_path)
    assert selected(earlier, rules="paper", quantile=0, refine=[]) == [f"c/{n}" for n in (0, 1, 3, 6, 7)]
    assert selected(earlier, rules="paper", quantile=1, refine=[]) == ["c/7"]
    assert selected(earlier, quantile=0, similarity=None, refine=[]) == ["c/0", "c/6"]
    defaults = [(chosen.quantile, chosen.similarity) for chosen in (selection(rules="paper"), selection())]
    assert defaults == [(0.65, None), (0.645, 0.999)]


def test_losses_are_counted_and_named(tmp_path: Path) -> None:
    rows = [row(n) for n in range(30)] + [row(30 + n, similarity=1.0) for n in range(30)]
    rows += [row(60, vera_negative=None), row(61, cola_caption=math.inf), row(62, negative_caption="A bus")]
    earlier = stage_of(
        [{**values, "type": "", "subtype": ""} for values in rows], tmp_path
    )  # of no known kind: one pool
    source = selection(quantile=0).open(context(earlier))
    assert source.transform(earlier.frame(tmp_path)).collect().height == 30
    assert +source.excluded == {"no-score": 2, "same-meaning": 30, "no-full-stop": 1}
    assert ("no-full-stop", 'scores ["c/62"]') in source.excluded.examples
    report = json.loads(source.report_files()["selection.json"])
    assert [step["kept"]["unknown"] for step in report["steps"]] == [63, 61, 31, 31, 30, 30, 30, 30]
    text = card_block(source, "how_made", {"selection.json": report})
    assert "| same-meaning | −30 | −30 |" in text and "| selected | 30 | 30 |" in text
    gaps = report["gaps"]["vera"]
    assert (sum(gaps["all"]), sum(gaps["selected"]), gaps["edges"][0], gaps["edges"][-1]) == (62, 30, -1.0, 1.0)
    with pytest.raises(WrongUse, match=r"left out as no-score .*; loosen quality, quantile"):
        selected(stage_of([row(number, vera_negative=None) for number in range(3)], tmp_path / "none"))


def test_scores_that_no_scorer_gives_are_refused_before_any_work() -> None:
    scorers = [{"kind": "cola", "model": "textattack/roberta-base-CoLA"}]
    scores = CaptionScores.model_validate({"kind": "caption-scores", "negatives": "n", "scorers": scorers})
    negatives = {"source": {"kind": "negative-captions", "captions": "captions.json"}}
    stages = {"n": negatives, "scores": {"source": scores.model_dump()}}
    recipe = {"name": "hard", "stages": stages, "subsets": {"selected": {"source": selection().model_dump()}}}
    with pytest.raises(ValidationError, match=r"selected: source\.quality needs the score vera, .* only cola\."):
        Recipe.model_validate(recipe)
    assert not selection(quality=["cola"], refine=["cola"], similarity=None).misfit(scores)


PUBLISHED, THREE = ("vera", "cola"), ("vera", "cola", "letters")
#: Gaps on and beside the borders of bins, of probabilities; few of them, so that cells meet their opposites.
GAP = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.02, -0.02, 0.019, -0.019, 0.5, -0.5, 0.99, -0.99, 1e-12, -1e-12])
MORE = st.lists(st.tuples(GAP, GAP, GAP), min_size=1, max_size=40)
STEADY = settings(derandomize=True, max_examples=8)


def frame(pairs: Sequence[tuple[float, ...]], axes: Sequence[str], seed: int = 0) -> pl.DataFrame:
    """Gaps with ranks that are drawn."""
    ranks = np.random.default_rng(seed).integers(0, 2**63, len(pairs)).astype(np.uint64)
    gaps = {axis: pl.Series([pair[place] for pair in pairs], dtype=pl.Float64) for place, axis in enumerate(axes)}
    return pl.DataFrame({**gaps, "rank": ranks})


def cells(pairs: Sequence[tuple[float, ...]], axes: Sequence[str], grid: int = 50) -> list[tuple[int, ...]]:
    bins = cells_of(axes, grid)
    return frame(pairs, axes).select(cell.alias(axis) for axis, cell in zip(axes, bins, strict=True)).rows()


def kept_of(rows: pl.DataFrame, grid: int = 50) -> pl.Series:
    axes = [axis for axis in rows.columns if axis != "rank"]
    return rows.select(kept=balanced(axes, grid, pl.col("rank")))["kept"]


@STEADY
@given(MORE, st.integers(1, 60), st.randoms(use_true_random=False))
def test_on_any_axes_a_cell_and_its_opposite_keep_the_smaller_number(
    pairs: list[tuple[float, ...]], grid: int, drawing: Any
) -> None:
    rows, places = frame(pairs, THREE), cells(pairs, THREE, grid)
    mask = kept_of(rows, grid)
    before, after = Counter(places), Counter(places[place] for place in mask.arg_true())
    for cell, count in before.items():
        opposite = tuple(-size for size in cell)
        assert after[cell] == (min(count, before[opposite]) if any(cell) else count)
    assert kept_of(rows.filter(mask), grid).all(), "refining again takes more away"
    order = drawing.sample(range(len(pairs)), len(pairs))
    assert kept_of(rows[order], grid).to_list() == mask[order].to_list(), "the order of pairs makes a difference"


def test_each_negative_of_a_cell_is_as_likely_to_stay_and_the_stage_decides_too() -> None:
    gaps = pl.DataFrame({"vera": [0.1] * 900 + [-0.1] * 100})
    names = pl.Series([sample_key("scores", number) for number in range(1000)])
    stages = [kept_of(gaps.with_columns(ranks_of(0, f"stage {n}", names).alias("rank"))) for n in range(20)]
    assert {kept.sum() for kept in stages} == {200}
    # Each of the 900 remains some 2.2 times.
    assert sum(int(kept[:450].sum()) for kept in stages) == pytest.approx(1000, abs=100)
