"""Scores of queries, pairs that a model asks for and boundaries of events."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.features.small_benchmark import (
    PlainEncoder,
    PlainPairs,
    Shelf,
    about,
    by_features,
    hash_of,
    matchings,
    pixels,
    scored,
)
from tests.evaluation.scorers.opened import queries as composed_queries
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import GROUNDING_ERRORS, QUERY_RANKS, Grounding, Query
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import grounding_errors, ranks
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.scorers.composers import Averaged


def queries(shelf: Shelf, **settings: Any) -> list[Query]:
    gallery = [shelf.picture(n) for n in (*range(12), 3)]  # the last is the same picture as the fourth
    asked = {"image": None, "text": "frame", "gallery": gallery, "targets": frozenset({3}), "excluded": frozenset({0})}
    return [Query(key=f"q-{n}", subset="s", group="g", **(asked | settings)) for n in range(5)]


def test_a_gallery_that_queries_share_is_encoded_once_and_equal_entries_tie(tmp_path: Path) -> None:
    shelf, encoder = Shelf(), PlainEncoder()
    rows = scored(lambda: queries(shelf), by_features(tmp_path, encoder), tmp_path / "s.parquet")
    assert rows.schema.equals(QUERY_RANKS)
    features = encoder.encode_images([pixels(n) for n in range(12)]).astype(np.float64)
    scores = (features @ encoder.encode_texts(["frame"])[0].astype(np.float64)).astype(np.float32)
    higher = int((scores[1:] > scores[3]).sum())
    asked = {name: rows[name].to_pylist() for name in ("higher", "tied", "entries", "targets")}
    assert asked == {"higher": [higher] * 5, "tied": [1] * 5, "entries": [12] * 5, "targets": [1] * 5}
    assert max(shelf.reads.values()) == 2


def test_composed_queries_rank_by_what_the_composer_makes_of_unnormalised_features(tmp_path: Path) -> None:
    shelf, rule = Shelf(), Averaged("averaged", PlainEncoder(), 0.5)
    similarities = by_features(tmp_path, rule.encoder, composer=rule)
    table = scored(lambda: queries(shelf, image=shelf.picture(20)), similarities, tmp_path / "s.parquet")
    asked = composed_queries(rule, [pixels(20)], ["frame"])[0].astype(np.float64)
    scores = (rule.encoder.encode_images([pixels(n) for n in range(12)]) @ asked).astype(np.float32)
    assert table["higher"].to_pylist() == [int((scores[1:] > scores[3]).sum())] * 5


def test_models_refuse_what_they_cannot_answer_and_name_one_that_can(tmp_path: Path) -> None:
    shelf, rule = Shelf(), Averaged("averaged", PlainEncoder(), 0.5)
    encoder, composer = by_features(tmp_path), by_features(tmp_path, rule.encoder, composer=rule)
    pairs = ByPairs(PlainPairs(), FeatureStore(tmp_path, "p"), 4)
    composed = queries(shelf, image=shelf.picture(1))
    for examples, model, message in (
        (composed, encoder, r"--model image\+text:plain"),
        (matchings(shelf, 2), composer, "--model plain"),
        (composed, pairs, "example q-0 asks with both"),
        ([*matchings(shelf, 1), *queries(shelf)], encoder, "mixes kinds"),
        (queries(shelf, targets=frozenset({0})), encoder, "5 no target to rank"),
    ):
        with pytest.raises(WrongUse, match=message):
            scored(lambda examples=examples: examples, model, tmp_path / "s.parquet")


def test_pairs_are_scored_once_and_only_those_that_are_asked(tmp_path: Path) -> None:
    scorer, again = PlainPairs(), PlainPairs()
    pairs = [ByPairs(one, FeatureStore(tmp_path, "p"), 4) for one in (scorer, again)]
    table = scored(lambda: matchings(Shelf(), 40), pairs[0], tmp_path / "s.parquet")
    assert len(set(scorer.scored)) == 18  # each of 6 images with the captions of itself and its two neighbours
    bright = [float(np.asarray(pixels(n), np.float32).mean()) for n in range(12)]
    assert table["s01"][1].as_py() == pytest.approx(bright[1] - hash_of("frame 2"))
    assert scored(lambda: matchings(Shelf(), 40), pairs[1], tmp_path / "t.parquet").equals(table)
    assert not again.scored
    by_text, shelf = queries(Shelf()), Shelf()
    rest: Any = {"image": shelf.picture(2), "text": None, "gallery": ["a", "b", "c"], "excluded": frozenset()}
    by_image = queries(shelf, **rest, targets=frozenset({1}))
    table = scored(lambda: [*by_text, *by_image], pairs[1], tmp_path / "q.parquet")
    higher = sum(image > bright[3] for image in bright[1:]), int(hash_of("b") > hash_of("a"))
    assert table["higher"].to_pylist() == [higher[0]] * 5 + [higher[1]] * 5


def grounding(shelf: Shelf, **settings: Any) -> Grounding:
    asked = {"frames": [shelf.picture(n) for n in range(6)], "times": np.arange(6) * 0.2, "boundary": 0.5}
    more = {"captions": ("frame before", "frame after")}
    return Grounding(key="g", subset="s", group="v", **(asked | more | settings))


def test_a_boundary_is_grounded_between_the_frames_that_fit_both_captions_best(tmp_path: Path) -> None:
    shelf, one = Shelf(), grounding(Shelf())
    short = grounding(shelf, frames=[shelf.picture(1)], times=np.zeros(1))
    table = scored(lambda: [short, one], by_features(tmp_path), tmp_path / "s.parquet")
    assert table.schema.equals(GROUNDING_ERRORS)
    assert len(table) == 1 and about(table)["left_out"] == {"fewer than two frames": 1}
    scores = np.zeros((6, 2), np.float32)
    scores[3, 0], scores[4, 1] = 1, 1
    assert grounding_errors(scores, one) == pytest.approx([0.2])
    scores[0, 0], scores[1, 1] = 1, 1
    assert grounding_errors(scores, one) == pytest.approx([0.4, 0.2])


@given(st.data())
def test_ranks_are_what_brute_force_counts(data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=2, max_size=12))
    places = st.sets(st.integers(0, len(scores) - 1))
    targets, excluded = data.draw(places), data.draw(places)
    if not targets - excluded:
        return
    found = ranks(np.array(scores, np.float32), frozenset(targets), frozenset(excluded))
    best = max(scores[place] for place in targets - excluded)
    others = {*range(len(scores))} - targets - excluded
    wrong = [scores[place] for place in others]
    top = max(wrong, default=None)
    ordered = [scores[place] for place in sorted(targets - excluded)]
    ranked = (at for at in range(len(scores)) if at not in excluded)
    assert found == {
        "higher": sum(score > best for score in wrong),
        "tied": sum(score == best for score in wrong),
        "entries": len(scores) - len(excluded),
        "targets": len(targets - excluded),
        "tied_targets": sum(scores[place] == best for place in targets - excluded),
        "best_wrong": next((at for at, score in enumerate(scores) if at in others and score == top), None),
        "top": sorted(ranked, key=lambda at: (-scores[at], at in targets, at))[:5],
        "above": [sum(score > one for score in wrong) for one in ordered],
        "level": [sum(score == one for score in wrong) for one in ordered],
    }
