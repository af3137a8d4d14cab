"""Scores of matchings: each image encoded once, what is left out, and what is said."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.score_tables import by_features, pixels, scored
from tests.evaluation.features.small_benchmark import PlainEncoder, PlainPairs, Shelf, SmallBenchmark, drawn, matchings
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, LeftOut, Matching, Query
from twinset.evaluation.features import score_table
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import DualEncoder, Floats


def test_scores_of_matchings_are_the_cosines_of_every_pair_and_each_image_is_encoded_once(tmp_path: Path) -> None:
    encoder = PlainEncoder()
    table = scored(lambda: matchings(Shelf(), 50), by_features(tmp_path, encoder), tmp_path / "s.parquet")
    assert table.schema.equals(MATCHING_SCORES)
    rows = table.to_pylist()
    assert [row["key"] for row in rows] == [f"m-{n}" for n in range(50)]
    assert rows[7] | {"s00": 0} == rows[7] | {"subset": "s", "category": "c", "group": "video-1", "s00": 0}
    for n in (0, 7, 49):
        images = encoder.encode_images([pixels(n % 6), pixels((n + 1) % 6)]).astype(np.float64)
        texts = encoder.encode_texts([f"frame {n % 6}", f"frame {(n + 1) % 6}"]).astype(np.float64)
        expected = (images @ texts.T).astype(np.float32)
        assert [rows[n][name] for name in ("s00", "s01", "s10", "s11")] == expected.reshape(-1).tolist()


def test_each_image_and_text_is_read_and_encoded_once_over_runs_and_benchmarks(tmp_path: Path) -> None:
    encoder, shelf = PlainEncoder(), Shelf()
    scored(lambda: matchings(shelf, 50), by_features(tmp_path, encoder), tmp_path / "s.parquet")
    assert (encoder.images, encoder.texts) == (6, 6)
    assert set(shelf.reads.values()) == {2}  # for its name, and to be decoded
    assert encoder.shapes == {4}  # all passes have one shape
    again = PlainEncoder()
    scored(lambda: matchings(shelf, 30, distinct=7), by_features(tmp_path, again), tmp_path / "t.parquet")
    assert (again.images, again.texts) == (1, 1)


@pytest.mark.parametrize("make", [lambda: PlainEncoder(), lambda: PlainPairs()])
def test_texts_that_are_cut_are_counted_once_and_told(
    tmp_path: Path, make: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    scorer = make()
    scorer.too_long = lambda texts: [text for text in texts if text in ("frame 1", "frame 3")]
    kind: Any = ByFeatures if isinstance(scorer, DualEncoder) else ByPairs
    similarities = kind(scorer, FeatureStore(tmp_path, scorer.digest()), 4)
    for place in ("first", "cached"):
        write_scores(SmallBenchmark(lambda: matchings(Shelf(), 9)), similarities, tmp_path / place, {})
        assert json.loads(pq.read_schema(tmp_path / place).metadata[b"twinset"])["cut_texts"] == 2
    similarities.close()
    assert f"2 texts are longer than {scorer.name} reads" in caplog.text


def test_a_matching_of_one_image_has_null_scores_for_the_other(tmp_path: Path) -> None:
    one = replace(matchings(Shelf(), 1)[0], images=(Shelf().picture(0),))
    (row,) = scored(lambda: [one], by_features(tmp_path), tmp_path / "s.parquet").to_pylist()
    assert row["s10"] is None and row["s11"] is None and row["s00"] is not None


def test_the_same_run_again_writes_the_same_bytes_and_says_what_it_read(tmp_path: Path) -> None:
    files = []
    for n in range(2):
        path = tmp_path / f"{n}.parquet"
        scored(lambda: matchings(Shelf(), 20), by_features(tmp_path), path)
        files.append(path.read_bytes())
    assert files[0] == files[1]
    told = json.loads(pq.read_schema(tmp_path / "0.parquet").metadata[b"twinset"])
    assert told["model"] == "m" and told["data_digest"] == "d" * 64 and told["left_out"] == {} and told["seconds"] >= 0


def test_examples_with_unusable_images_are_counted_named_and_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf({1: None, 3: drawn(3)[:200], 5: b"not an image"})

    def make() -> list[Any]:
        return [LeftOut("row 9", "missing caption"), *matchings(shelf, 8, distinct=8)]

    table = scored(make, by_features(tmp_path), tmp_path / "s.parquet")
    assert table["key"].to_pylist() == ["m-6", "m-7"]
    told = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"twinset"])
    assert told["left_out"] == {"missing caption": 1, "undecodable image": 4, "unreadable image": 2}
    listed = [json.loads(line) for line in (tmp_path / "s.left_out.jsonl").read_text().splitlines()]
    assert len(listed) == 7 and listed[0] == {"key": None, "where": "row 9", "reason": "missing caption"}
    assert {one["where"] for one in listed[1:]} == {"shelf/1.png", "shelf/3.png", "shelf/5.png"}
    assert "shelf/1.png (example m-0): left out, unreadable image" in caplog.text
    assert "7 examples left out" in caplog.text


def test_an_image_that_is_not_one_of_a_benchmark_is_left_out(tmp_path: Path) -> None:
    large, postscript = BytesIO(), b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    Image.new("1", (8001, 8001)).save(large, "PNG")  # 64 million pixels from 10 kB
    shelf = Shelf({0: large.getvalue(), 2: postscript})
    table = scored(lambda: matchings(shelf, 6, distinct=6), by_features(tmp_path), tmp_path / "s.parquet")
    assert table["key"].to_pylist() == ["m-3", "m-4"]
    problem = by_features(tmp_path).prepare([matchings(shelf, 1)[0]])["m-0"].problem
    assert problem == "8001 x 8001 pixels, at most 64,000,000 are read"


def test_texts_that_are_no_captions_are_left_out_before_a_model_reads_them(tmp_path: Path) -> None:
    shelf, long = Shelf(), "x" * 10_001
    galleries = ("a", "b"), ("a", long)

    def asked(gallery: tuple[str, ...], number: int) -> Query:
        identity = {"key": f"q-{number}", "subset": "s", "group": "g"}
        return Query(**identity, image=shelf.picture(number), text=None, gallery=gallery, targets=frozenset({0}))

    def first() -> list[Any]:
        one, two, three = matchings(shelf, 3)
        return [replace(one, captions=(long, "a")), two, replace(three, captions=("x" * 10_000, long))]

    for number, make in enumerate((first, lambda: [asked(galleries[n % 4 // 2], n) for n in range(6)])):
        encoder, path = PlainEncoder(), tmp_path / f"{number}.parquet"
        table = scored(make, by_features(tmp_path / str(number), encoder), path)
        assert table["key"].to_pylist() == (["m-1"], ["q-0", "q-1", "q-4", "q-5"])[number] and encoder.texts == 2
        told = json.loads(pq.read_schema(path).metadata[b"twinset"])
        assert told["left_out"] == {"text over 10,000 characters": 2}


def test_a_benchmark_of_which_nothing_can_be_scored_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"not one example can be scored \(4 unreadable image\)"):
        scored(lambda: matchings(Shelf({0: None}), 4, distinct=1), by_features(tmp_path), tmp_path / "s" / "s.parquet")
    with pytest.raises(WrongUse, match=r"\(it has none\)"):
        scored(list, by_features(tmp_path), tmp_path / "s" / "s.parquet")
    assert list((tmp_path / "s").iterdir()) == []


def test_an_image_of_a_later_window_that_does_not_decode_is_left_out_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_table, "WINDOW", 6)
    table = scored(lambda: matchings(Shelf({2: b""}), 20), by_features(tmp_path), tmp_path / "s.parquet")
    assert table["key"].to_pylist() == [f"m-{n}" for n in range(20) if n % 6 not in (1, 2)]


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda rows: rows * np.nan, r"NaN or infinity for shelf/0.png \(example m-0\)"),
        (lambda rows: rows[:-1], r"array \(3, 6\) of float32 for 4 inputs"),
        (lambda rows: rows.astype(np.float64), "of float64"),
        (lambda rows: rows[:, :, None], r"array \(4, 6, 1\)"),
    ],
)
def test_wrong_outputs_name_the_model_and_the_example(tmp_path: Path, give: Any, said: str) -> None:
    class Wrong(PlainEncoder):
        def image_features(self, prepared: Any) -> Floats:
            found: Floats = give(super().image_features(prepared))
            return found

    with pytest.raises(WrongUse, match=f"plain: g.*{said}"):
        scored(lambda: matchings(Shelf(), 5), by_features(tmp_path, Wrong()), tmp_path / "s.parquet")


def test_memory_that_runs_out_halves_the_passes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Small(PlainEncoder):
        def image_features(self, prepared: Any) -> Floats:
            if len(prepared) > 2:
                raise MemoryError("too many")
            return super().image_features(prepared)

    table = scored(lambda: matchings(Shelf(), 6), by_features(tmp_path, Small(), batch=8), tmp_path / "s.parquet")
    expected = scored(lambda: matchings(Shelf(), 6), by_features(tmp_path / "b"), tmp_path / "t.parquet")
    assert table.equals(expected)
    assert "plain: memory runs out, so that passes have 2 inputs" in caplog.text


def test_matchings_with_equal_images_tie_exactly(tmp_path: Path) -> None:
    one = matchings(Shelf(), 1)[0]
    same: Matching = replace(one, images=(one.images[0], one.images[0]))
    (row,) = scored(lambda: [same], by_features(tmp_path), tmp_path / "s.parquet").to_pylist()
    assert (row["s00"], row["s01"]) == (row["s10"], row["s11"])
