"""Choosers with a known bias get what theory says; scores of matchings: each image encoded once, what is left out."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.score_tables import by_features, pixels, scored
from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, drawn, matchings
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, LeftOut, Matching, Picture, Query
from twinset.evaluation.features import score_table
from twinset.evaluation.features.pairs import ByChoices
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.models.encoders.contract import Chooser, Direction, Question

Answered = tuple[int, ...] | str
BOTH: tuple[Direction, ...] = ("text", "image")


class Rule(Chooser):
    """Chooses by a rule, whatever is asked."""

    name = "rule"

    def __init__(self, rule: Callable[[Question], Answered], directions: tuple[Direction, ...] = BOTH) -> None:
        self.rule, self.directions = rule, directions
        self.asked: list[Question] = []

    def digest(self) -> str:
        return "rule"

    def choose(self, questions: Sequence[Question]) -> list[Answered]:
        self.asked += questions
        return [self.rule(one) for one in questions]


def picture(colour: str, side: int) -> Picture:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(buffer, "PNG")
    return Picture(f"{colour}-{side}", buffer.getvalue)


def example(number: int, *pictures: Picture) -> Matching:
    return Matching(key=f"{number}", subset="s", group=f"g{number}", images=pictures, captions=("red", "blue"))


def table(tmp_path: Path, chooser: Chooser, count: int = 20) -> Path:
    """Scores of red and blue, two pictures of each."""
    examples = [example(n, picture("red", 8 if n % 2 else 4), picture("blue", 4 if n % 2 else 8)) for n in range(count)]
    scored(lambda: examples, ByChoices(chooser, FeatureStore(tmp_path, "rule"), 3), tmp_path / "scores.parquet")
    return tmp_path / "scores.parquet"


def shown_first(question: Question) -> Answered:
    return (0, 0) if question.direction == "pairing" else (0,)


def in_order(question: Question) -> Answered:
    """As LLaVA in EqBen's Table 7: caption 1 is left, whatever is shown."""
    return (0, 1)


def sees(question: Question) -> Answered:
    def colour(image: Image.Image) -> str:
        return "red" if image.getpixel((0, 0)) == (255, 0, 0) else "blue"

    if question.direction == "image":
        return ([colour(one) for one in question.images].index(question.captions[0]),)
    return tuple(question.captions.index(colour(image)) for image in question.images)


CHOSEN = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")


def test_one_that_takes_a_place_is_never_right_in_both_orders(tmp_path: Path) -> None:
    found = measure(table(tmp_path, Rule(shown_first))).all
    assert {name: one.value for name, one in found.figures.items()} == dict.fromkeys(
        ("text", "image", "group", *CHOSEN), 0
    )
    # By a coin for each of the two, or of the four comparisons.
    assert [found.figures[name].expected for name in ("text", "image", "group")] == [25, 25, 6.25]
    assert [found.figures[name].expected for name in CHOSEN] == [50] * 4 and found.ties == 100


def test_one_that_sees_is_right_and_each_question_is_asked_in_both_orders(tmp_path: Path) -> None:
    chooser = Rule(sees)
    found = measure(table(tmp_path, chooser, 3)).all
    assert {one.value for one in found.figures.values()} == {100}
    assert len(chooser.asked) == 3 * 2 * 4


def test_a_direction_that_was_not_asked_has_no_figure_and_is_not_compared(tmp_path: Path) -> None:
    text, both = table(tmp_path / "text", Rule(sees, ("text",))), table(tmp_path / "both", Rule(sees))
    assert [*measure(text).all.figures] == ["text", "ipos2t", "ineg2t"]
    found = compare(text, both)
    assert found.table["figure"].to_list() == ["text"]
    assert "image is not compared: it is not asked of the same rows in both" in " ".join(found.notes)
    columns = pq.read_table(text).select(["tpos2i", "tneg2i", "pairing"])
    assert all(column.null_count == len(columns) for column in columns.columns)


def test_the_pairing_is_asked_in_both_orders_as_in_table_7_of_eqben(tmp_path: Path) -> None:
    found = measure(table(tmp_path / "order", Rule(in_order, ("pairing",)))).all
    assert {name: one.value for name, one in found.figures.items()} == {"group": 0, "order12": 100, "order21": 0}
    assert found.figures["group"].expected == 50 and found.ties == 100
    found = measure(table(tmp_path / "sees", Rule(sees, ("pairing",)))).all
    assert {name: one.value for name, one in found.figures.items()} == {"group": 100, "order12": 100, "order21": 100}
    found = measure(table(tmp_path / "first", Rule(shown_first, ("pairing",)))).all
    assert {one.value for one in found.figures.values()} == {0}, '"1;1" is no pairing'


def test_what_has_no_answer_is_a_tie_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def moody(question: Question) -> Answered:
        return "refusal" if question.direction == "image" and question.captions == ("red",) else sees(question)

    path = table(tmp_path, Rule(moody), 2)
    found = measure(path).all.figures
    assert found["text"].value == 100 and found["tpos2i"].value == 0 and found["image"].expected == 50
    assert json.loads(pq.read_schema(path).metadata[b"twinset"])["unanswered"] == {"refusal": 4}
    assert "rule gives no score in 4 answers of 16 (4 refusal)" in caplog.text


def test_one_that_answers_nothing_is_an_error_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"small: rule answers nothing \(16 empty\)"):
        table(tmp_path, Rule(lambda question: "empty"), 2)
    assert not [*tmp_path.glob("scores*")]


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


def test_texts_that_are_cut_are_counted_once_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder: Any = PlainEncoder()
    encoder.too_long = lambda texts: [text for text in texts if text in ("frame 1", "frame 3")]
    for place in ("first", "cached"):
        scored(lambda: matchings(Shelf(), 9), by_features(tmp_path, encoder), tmp_path / place)
        assert json.loads(pq.read_schema(tmp_path / place).metadata[b"twinset"])["cut_texts"] == 2
    assert "2 texts are longer than plain reads" in caplog.text


def test_a_matching_of_one_image_has_null_scores_for_the_other(tmp_path: Path) -> None:
    one = replace(matchings(Shelf(), 1)[0], images=(Shelf().picture(0),))
    (row,) = scored(lambda: [one], by_features(tmp_path), tmp_path / "s.parquet").to_pylist()
    assert row["s10"] is None and row["s11"] is None and row["s00"] is not None


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
    assert "7 examples left out (4 undecodable image, 2 unreadable image, 1 missing caption), listed in" in caplog.text


def test_texts_that_are_no_captions_are_left_out_before_a_model_reads_them(tmp_path: Path) -> None:
    shelf, long, encoder = Shelf(), "x" * 10_001, PlainEncoder()
    one, two, three = matchings(shelf, 3)
    captions = [replace(one, captions=(long, "a")), two, replace(three, captions=("x" * 10_000, long))]
    about: Any = {"subset": "s", "group": "g", "image": shelf.picture(0), "text": None, "targets": frozenset({0})}
    galleries = ("a", "b"), ("a", long)
    queries = [Query(key=f"q-{n}", gallery=galleries[n % 4 // 2], **about) for n in range(6)]
    for examples, kept in ((captions, ["m-1"]), (queries, ["q-0", "q-1", "q-4", "q-5"])):
        table = scored(lambda examples=examples: examples, by_features(tmp_path, encoder), tmp_path / "s.parquet")
        told = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"twinset"])
        assert table["key"].to_pylist() == kept and told["left_out"] == {"text over 10,000 characters": 2}
    assert encoder.texts == 4


def test_a_benchmark_of_which_nothing_can_be_scored_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"not one example can be scored \(4 unreadable image\)"):
        scored(lambda: matchings(Shelf({0: None}), 4, distinct=1), by_features(tmp_path), tmp_path / "s" / "s.parquet")
    with pytest.raises(WrongUse, match=r"\(it has none\)"):
        scored(list, by_features(tmp_path), tmp_path / "s" / "s.parquet")
    assert not (tmp_path / "s").exists()


def test_an_image_of_a_later_window_that_does_not_decode_is_left_out_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_table, "WINDOW", 6)
    table = scored(lambda: matchings(Shelf({2: b""}), 20), by_features(tmp_path), tmp_path / "s.parquet")
    assert table["key"].to_pylist() == [f"m-{n}" for n in range(20) if n % 6 not in (1, 2)]


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda rows: rows * np.nan, r"NaN or infinity for shelf/0.png"),
        (lambda rows: rows[:-1], r"array \(3, 6\) of float32 for 4 inputs"),
        (lambda rows: rows.astype(np.float64), "of float64"),
    ],
)
def test_wrong_outputs_name_the_model_and_the_example(tmp_path: Path, give: Any, said: str) -> None:
    wrong: Any = PlainEncoder()
    right = wrong.image_features
    wrong.image_features = lambda prepared: give(right(prepared))
    with pytest.raises(WrongUse, match=f"plain: g.*{said}"):
        scored(lambda: matchings(Shelf(), 5), by_features(tmp_path, wrong), tmp_path / "s.parquet")


def test_memory_that_runs_out_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    large: Any = PlainEncoder()
    large.image_features = Mock(side_effect=MemoryError("too many"))
    with pytest.raises(BuildFailed, match=r"plain: memory runs out for 8 inputs .*name a smaller --batch"):
        scored(lambda: matchings(Shelf(), 6), by_features(tmp_path, large, batch=8), tmp_path / "s.parquet")
