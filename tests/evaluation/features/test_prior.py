"""A prior of texts that is known: it is found on other groups, removed, and what was not answered stays a tie."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluation.features.small_benchmark import Shelf, SmallBenchmark, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, Query
from twinset.evaluation.features.pairs import PRIORS, ByPairs
from twinset.evaluation.features.prior import best_alpha, remove_prior
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.measure import measure
from twinset.models.encoders.contract import Floats, Matcher, NotApplicable

SCORES = MATCHING_SCORES.names[4:]


def save(path: Path, rows: int, groups: int, share: float, seed: int = 0) -> Path:
    """Scores that see the image, and have ``share`` of a prior that is much larger."""
    drawn = np.random.default_rng(seed)
    prior = drawn.normal(-20, 5, (rows, 2))
    sees = drawn.normal(0, 0.1, (rows, 2, 2)) + np.eye(2) * 1.0
    scores = sees + share * prior[:, None, :]
    made = [
        {"key": f"{n}", "subset": "s", "category": "", "group": f"g{n % groups}"}
        | dict(zip(SCORES, map(float, scores[n].ravel()), strict=True))
        | {"prior0": float(prior[n, 0]), "prior1": float(prior[n, 1])}
        for n in range(rows)
    ]
    made[0] |= dict.fromkeys(("prior0", "prior1"), None) | dict.fromkeys(SCORES, 0.0)
    pq.write_table(pa.Table.from_pylist(made, PRIORS.with_metadata({b"twinset": json.dumps({"model": "m"})})), path)
    return path


def test_it_is_found_on_other_groups_and_removed(tmp_path: Path) -> None:
    path = save(tmp_path / "m.parquet", 400, 100, 0.6)
    before = measure(path).all.figures["text"].value
    remove_prior(path)
    found = measure(path).all.figures
    assert before < 30 and found["text"].value == 100 * 399 / 400
    told = json.loads(pq.read_schema(path).metadata[b"twinset"])
    assert told["model"] == "m" and {told["alpha_0"], told["alpha_1"]} <= {0.55, 0.6, 0.65}
    assert pq.read_table(path).select(SCORES).slice(0, 1).to_pylist() == [dict.fromkeys(SCORES, 0)]


def test_the_groups_that_are_scored_do_not_choose(tmp_path: Path) -> None:
    """One half has a prior, the other has none: each gets what is best for the other one."""
    from twinset.evaluation.features.prior import _halves

    path = save(tmp_path / "m.parquet", 400, 100, 0.6)
    table = pq.read_table(path)
    half = np.concatenate([_halves(batch) for batch in table.to_batches()])
    rows = [
        row if half[n] else row | dict.fromkeys(("prior0", "prior1"), 0.0) for n, row in enumerate(table.to_pylist())
    ]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    remove_prior(path)
    told = json.loads(pq.read_schema(path).metadata[b"twinset"])
    assert told["alpha_1"] == 0 and told["alpha_0"] == pytest.approx(0.6, abs=0.051)


def test_of_one_image_too_and_the_least_of_equal_ones(tmp_path: Path) -> None:
    one = np.array([[0.0, 3], [1, 1], [np.nan, np.nan], [np.nan, np.nan], [-9, 0], [0, 0]], np.float32)
    assert best_alpha(one) == pytest.approx(0.15)
    assert best_alpha(np.zeros((6, 3), np.float32)) == 0
    with pytest.raises(WrongUse, match="too few groups"):
        remove_prior(save(tmp_path / "m.parquet", 5, 1, 0.5))


class Primed(Matcher):
    name = "primed"
    reasons = ("dazed", "silent")
    has_prior = True

    def digest(self) -> str:
        return "primed"

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        rows = [(np.nan, 1, -5) if text == "frame 1" else (len(text), 0, -len(text)) for text in texts]
        return np.array(rows, np.float32)


def test_pairs_without_an_answer_are_counted_and_tie_and_others_keep_their_prior(tmp_path: Path) -> None:
    shelf = Shelf()
    opened = ByPairs(Primed(), FeatureStore(tmp_path, "m"), 4)
    path = tmp_path / "m.parquet"
    write_scores(SmallBenchmark(lambda: matchings(shelf, 6)), opened, path, {})
    rows = {row["key"]: row for row in pq.read_table(path).to_pylist()}
    assert [rows["m-0"][name] for name in (*SCORES, "prior0")] == [0, 0, 0, 0, None]
    assert [rows["m-2"][name] for name in (*SCORES, "prior0", "prior1")] == [7, 7, 7, 7, -7, -7]
    assert json.loads(pq.read_schema(path).metadata[b"twinset"])["unanswered"] == {"silent": 4}
    query = Query(
        key="q", subset="s", group="g", image=shelf.picture(0), text=None, gallery=["a"], targets=frozenset([0])
    )
    with pytest.raises(NotApplicable, match="its prior is removed from two captions alone"):
        opened.prepare([query])
    opened.close()
