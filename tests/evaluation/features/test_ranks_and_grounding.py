"""Scores of queries, pairs that a model asks for and boundaries of events."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.features.score_tables import by_features, pixels, scored
from tests.evaluation.features.small_benchmark import PlainEncoder, PlainPairs, Shelf, hash_of, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import GROUNDING_ERRORS, QUERY_RANKS, Grounding, Query, TextPair
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import grounding_errors, ranks
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import Composer, Floats, unit


class Sum(Composer):
    name = "sum"

    def __init__(self) -> None:
        self.encoder = PlainEncoder()

    def digest(self) -> str:
        return "sum"

    def compose(self, images: Floats, texts: Floats) -> Floats:
        return unit(images + texts)


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


def of_texts(*gallery: TextPair) -> list[Query]:
    about = {"subset": "s", "group": "g", "image": None, "text": None, "gallery": gallery, "targets": frozenset({0})}
    return [Query(key="q-0", **about)]


def test_pairs_of_texts_score_by_their_own_features(tmp_path: Path) -> None:
    """As SugarCrepe++ asks: the two that say the same above either with the wrong one."""
    encoder, texts = PlainEncoder(), ("a dog", "one dog", "a cat")
    first, second, wrong = (unit(encoder.encode_texts([text])) for text in texts)
    alike = [float((a * b).sum()) for a, b in ((first, second), (first, wrong), (second, wrong))]
    pairs = [TextPair(texts[0], texts[1]), TextPair(texts[0], texts[2]), TextPair(texts[1], texts[2])]
    table = scored(lambda: of_texts(*pairs), by_features(tmp_path, encoder), tmp_path / "s.parquet")
    row = table.to_pylist()[0]
    assert row["higher"] == sum(one > alike[0] for one in alike[1:]) and row["tied"] == 0 and row["entries"] == 3
    assert row["top"] == sorted(range(3), key=lambda at: -alike[at])
    same = [TextPair("a", "b"), TextPair("b", "a"), TextPair("a", "a")]
    row = scored(lambda: of_texts(*same), by_features(tmp_path, encoder), tmp_path / "s.parquet").to_pylist()[0]
    assert row["higher"] == 1 and row["tied"] == 1  # a with itself; the other way


def test_composed_queries_rank_by_what_the_composer_makes_of_unnormalised_features(tmp_path: Path) -> None:
    rule, shelf = Sum(), Shelf()
    similarities = by_features(tmp_path, rule.encoder, composer=rule)
    table = scored(lambda: queries(shelf, image=shelf.picture(20)), similarities, tmp_path / "s.parquet")
    asked = rule.queries([pixels(20)], ["frame"])[0].astype(np.float64)
    scores = (rule.encoder.encode_images([pixels(n) for n in range(12)]) @ asked).astype(np.float32)
    assert table["higher"].to_pylist() == [int((scores[1:] > scores[3]).sum())] * 5


def test_models_refuse_what_they_cannot_answer_and_name_one_that_can(tmp_path: Path) -> None:
    rule, shelf = Sum(), Shelf()
    encoder, composer = by_features(tmp_path), by_features(tmp_path, rule.encoder, composer=rule)
    pairs = ByPairs(PlainPairs(), FeatureStore(tmp_path, "p"), 4)
    composed = queries(shelf, image=shelf.picture(1))
    for examples, model, message in (
        (composed, encoder, r"--model image\+text:plain"),
        (matchings(shelf, 2), composer, "--model plain"),
        (composed, pairs, "example q-0 asks with both"),
        (of_texts(TextPair("a", "b")), pairs, "asks how alike two texts are; name a dual encoder"),
        ([*matchings(shelf, 1), *queries(shelf)], encoder, "mixes kinds"),
    ):
        with pytest.raises(WrongUse, match=message):
            scored(lambda examples=examples: examples, model, tmp_path / "s.parquet")


def test_pairs_are_scored_once_and_only_those_that_are_asked(tmp_path: Path) -> None:
    scorer = PlainPairs()
    similarities = ByPairs(scorer, FeatureStore(tmp_path, "p"), 4)
    table = scored(lambda: matchings(Shelf(), 40), similarities, tmp_path / "s.parquet")
    assert len(set(scorer.scored)) == 18  # each of 6 images with the captions of itself and its two neighbours
    row = table.to_pylist()[1]
    brightness = float(np.asarray(pixels(1), np.float32).mean())
    assert row["s01"] == pytest.approx(brightness - hash_of("frame 2"))
    again = ByPairs(PlainPairs(), FeatureStore(tmp_path, "p"), 4)
    assert scored(lambda: matchings(Shelf(), 40), again, tmp_path / "t.parquet").equals(table)
    assert again.computed == 0


def test_pairs_answer_queries_of_a_text_or_an_image(tmp_path: Path) -> None:
    shelf = Shelf()
    table = scored(
        lambda: queries(shelf), ByPairs(PlainPairs(), FeatureStore(tmp_path, "p"), 4), tmp_path / "s.parquet"
    )
    bright = [float(np.asarray(pixels(n), np.float32).mean()) for n in range(12)]
    assert table["higher"].to_pylist() == [sum(one > bright[3] for one in bright[1:])] * 5
    texts = {"image": shelf.picture(2), "text": None, "gallery": ["a", "b", "c"], "excluded": frozenset()}
    make = lambda: queries(shelf, **texts, **{"targets": frozenset({1})})  # noqa: E731
    pairs = ByPairs(PlainPairs(), FeatureStore(tmp_path, "p"), 4)
    assert scored(make, pairs, tmp_path / "t.parquet")["higher"].to_pylist() == [int(hash_of("b") > hash_of("a"))] * 5


def grounding(shelf: Shelf, **settings: Any) -> Grounding:
    asked = {"frames": [shelf.picture(n) for n in range(6)], "times": np.arange(6) * 0.2, "boundary": 0.5}
    more = {"captions": ("frame before", "frame after")}
    return Grounding(key="g", subset="s", group="v", **(asked | more | settings))


def test_a_boundary_is_grounded_between_the_frames_that_fit_both_captions_best(tmp_path: Path) -> None:
    one = grounding(Shelf())
    table = scored(lambda: [one], by_features(tmp_path), tmp_path / "s.parquet")
    assert table.schema.equals(GROUNDING_ERRORS)
    scores = np.zeros((6, 2), np.float32)
    scores[3, 0], scores[4, 1] = 1, 1
    assert grounding_errors(scores, one) == pytest.approx([0.2])
    scores[0, 0], scores[1, 1] = 1, 1
    assert grounding_errors(scores, one) == pytest.approx([0.4, 0.2])


def test_what_cannot_be_ranked_or_grounded_is_left_out(tmp_path: Path) -> None:
    shelf = Shelf()
    short = grounding(shelf, frames=[shelf.picture(1)], times=np.zeros(1))
    table = scored(lambda: [short, grounding(shelf)], by_features(tmp_path), tmp_path / "s.parquet")
    told = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"twinset"])
    assert len(table) == 1 and told["left_out"] == {"fewer than two frames": 1}
    with pytest.raises(WrongUse, match="5 no target to rank"):
        scored(lambda: queries(shelf, targets=frozenset({0})), by_features(tmp_path), tmp_path / "t.parquet")


@given(st.data())
def test_ranks_are_what_brute_force_counts(data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=2, max_size=12))
    places = st.sets(st.integers(0, len(scores) - 1))
    targets, excluded = data.draw(places), data.draw(places)
    if not targets - excluded:
        return
    found = ranks(np.array(scores, np.float32), frozenset(targets), frozenset(excluded))
    best = max(scores[place] for place in targets - excluded)
    wrong = [score for place, score in enumerate(scores) if place not in targets | excluded]
    top = max(wrong, default=None)
    expected = {
        "higher": sum(score > best for score in wrong),
        "tied": sum(score == best for score in wrong),
        "entries": len(scores) - len(excluded),
        "targets": len(targets - excluded),
        "tied_targets": sum(scores[place] == best for place in targets - excluded),
        "best_wrong": next(
            (at for at, score in enumerate(scores) if at not in targets | excluded and score == top), None
        ),
        "top": sorted(
            (at for at in range(len(scores)) if at not in excluded), key=lambda at: (-scores[at], at in targets, at)
        )[:5],
    }
    ordered = [scores[place] for place in sorted(targets - excluded)]
    assert found == {
        **expected,
        "above": [sum(score > one for score in wrong) for one in ordered],
        "level": [sum(score == one for score in wrong) for one in ordered],
    }
