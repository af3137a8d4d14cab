"""Choosers with a known bias get what theory says; scores of matchings: each image encoded once, what is left out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import PlainEncoder, Shelf, about, by_features, matchings, pixels, scored
from tests.evaluation.report.made_scores import picture
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.evaluation.examples import MATCHING_SCORES, LeftOut, Matching, Query
from twinset.evaluation.features.pairs import ByChoices
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.matching import FINER
from twinset.evaluation.metrics.measure import measure
from twinset.models.encoders.contract import Chooser, Direction, Question

Answered = tuple[int, ...] | str


class Rule(Chooser):
    """Chooses by a rule, whatever is asked."""

    name = "rule"

    def __init__(
        self, rule: Callable[[Question], Answered], directions: tuple[Direction, ...] = ("text", "image")
    ) -> None:
        self.rule, self.directions = rule, directions
        self.asked: list[Question] = []

    def digest(self) -> str:
        return "rule"

    def choose(self, questions: Sequence[Question]) -> list[Answered]:
        self.asked += questions
        return [self.rule(question) for question in questions]


def table(tmp_path: Path, chooser: Chooser, count: int = 20) -> Any:
    images, rest = (picture("red", "red"), picture("blue", "blue")), {"subset": "s", "group": "g"}
    examples = [Matching(key=f"{n}", images=images, captions=("red", "blue"), **rest) for n in range(count)]
    return scored(lambda: examples, ByChoices(chooser, FeatureStore(tmp_path, "rule"), 3), tmp_path / "scores.parquet")


def shown_first(question: Question) -> Answered:
    return (0, 0) if question.direction == "pairing" else (0,)


def in_order(question: Question) -> Answered:
    """As LLaVA in EqBen's Table 7: caption 1 is left, whatever is shown."""
    return (0, 1)


def sees(question: Question) -> Answered:
    def colour(image: Image.Image) -> str:
        return "red" if image.getpixel((0, 0)) == (255, 0, 0) else "blue"

    if question.direction == "image":
        return ([colour(image) for image in question.images].index(question.captions[0]),)
    return tuple(question.captions.index(colour(image)) for image in question.images)


def test_each_question_is_asked_in_both_orders_and_who_takes_a_place_is_never_right(tmp_path: Path) -> None:
    measured = measure(table(tmp_path, Rule(shown_first))).all
    # By a coin for each of the two, or of the four comparisons.
    chances = {"text": 25, "image": 25, "group": 6.25, **dict.fromkeys(FINER, 50)}
    assert {name: figure.expected for name, figure in measured.figures.items()} == chances
    assert {figure.value for figure in measured.figures.values()} == {0} and measured.ties == 100
    chooser = Rule(sees)
    assert {figure.value for figure in measure(table(tmp_path, chooser, 3)).all.figures.values()} == {100}
    assert len(chooser.asked) == 3 * 2 * 4


def test_a_direction_that_was_not_asked_has_no_figure_and_is_not_compared(tmp_path: Path) -> None:
    text, whole = table(tmp_path / "text", Rule(sees, ("text",))), table(tmp_path / "whole", Rule(sees))
    assert [*measure(text).all.figures] == ["text", "ipos2t", "ineg2t"]
    compared = compare(text, whole)
    assert compared.table["figure"].to_list() == ["text"]
    assert "image is not compared" in " ".join(compared.notes)
    assert all(text[name].null_count == len(text) for name in ("tpos2i", "tneg2i", "pairing"))


def test_the_pairing_is_asked_in_both_orders_as_in_table_7_of_eqben(tmp_path: Path) -> None:
    rules = {in_order: (0, 100, 0), sees: (100, 100, 100), shown_first: (0, 0, 0)}  # "1;1" is not a pairing
    for rule, values in rules.items():
        measured = measure(table(tmp_path / rule.__name__, Rule(rule, ("pairing",)))).all
        figures = {name: figure.value for name, figure in measured.figures.items()}
        assert figures == dict(zip(("group", "order12", "order21"), values, strict=True))
        if rule is in_order:
            assert measured.figures["group"].expected == 50 and measured.ties == 100


def test_what_has_no_answer_is_a_tie_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def moody(question: Question) -> Answered:
        return "refusal" if question.direction == "image" and question.captions == ("red",) else sees(question)

    rows = table(tmp_path / "moody", Rule(moody), 2)
    figures = measure(rows).all.figures
    assert figures["text"].value == 100 and figures["tpos2i"].value == 0 and figures["image"].expected == 50
    assert about(rows)["unanswered"] == {"refusal": 4}
    assert "rule gives no score in 4 answers of 16 (4 refusal)" in caplog.text
    with pytest.raises(WrongUse, match=r"small: rule answers nothing \(16 empty\)"):
        table(tmp_path / "mute", Rule(lambda question: "empty"), 2)
    assert not [*tmp_path.glob("mute/scores*")]


def test_scores_of_matchings_are_cosines_and_each_image_is_read_and_encoded_once(tmp_path: Path) -> None:
    encoder, shelf, again = PlainEncoder(), Shelf(), PlainEncoder()
    table = scored(lambda: matchings(shelf, 50), by_features(tmp_path, encoder), tmp_path / "s.parquet")
    assert (encoder.images, encoder.texts) == (6, 6)
    assert set(shelf.reads.values()) == {2}  # for its name, and to be decoded
    assert encoder.shapes == {4}  # all passes have one shape
    assert table.schema.equals(MATCHING_SCORES)
    rows = table.to_pylist()
    assert [row["key"] for row in rows] == [f"m-{n}" for n in range(50)]
    for n in (0, 7, 49):
        images = encoder.encode_images([pixels(n % 6), pixels((n + 1) % 6)]).astype(np.float64)
        texts = encoder.encode_texts([f"frame {n % 6}", f"frame {(n + 1) % 6}"]).astype(np.float64)
        expected = (images @ texts.T).astype(np.float32)
        assert [rows[n][name] for name in ("s00", "s01", "s10", "s11")] == expected.reshape(-1).tolist()
    scored(lambda: matchings(shelf, 30, distinct=7), by_features(tmp_path, again), tmp_path / "t.parquet")
    assert (again.images, again.texts) == (1, 1)


def test_texts_that_are_cut_are_counted_once_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder: Any = PlainEncoder()
    encoder.too_long = lambda texts: [text for text in texts if text in ("frame 1", "frame 3")]
    for place in ("first", "cached"):
        table = scored(lambda: matchings(Shelf(), 9), by_features(tmp_path, encoder), tmp_path / place)
        assert about(table)["cut_texts"] == 2
    assert "2 texts are longer than plain reads" in caplog.text


def test_examples_with_unusable_images_are_counted_named_and_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf({1: None, 3: b"\x89PNG\r\n\x1a\n", 5: b"not an image"})
    examples = [LeftOut("row 9", "missing caption"), *matchings(shelf, 8, distinct=8)]
    table = scored(lambda: examples, by_features(tmp_path), tmp_path / "s.parquet")
    assert table["key"].to_pylist() == ["m-6", "m-7"]
    assert about(table)["left_out"] == {"missing caption": 1, "undecodable image": 4, "unreadable image": 2}
    listed = [json.loads(line) for line in (tmp_path / "s.left_out.jsonl").read_text().splitlines()]
    assert len(listed) == 7 and listed[0] == {"key": None, "where": "row 9", "reason": "missing caption"}
    assert {row["where"] for row in listed[1:]} == {"shelf/1.png", "shelf/3.png", "shelf/5.png"}
    assert "7 examples left out" in caplog.text
    with pytest.raises(WrongUse, match=r"not one example can be scored \(4 unreadable image\)"):
        scored(lambda: matchings(Shelf({0: None}), 4, distinct=1), by_features(tmp_path), tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


def test_texts_that_are_no_captions_are_left_out_before_a_model_reads_them(tmp_path: Path) -> None:
    shelf, long, encoder = Shelf(), "x" * 10_001, PlainEncoder()
    first, second, third = matchings(shelf, 3)
    captions = [replace(first, captions=(long, "a")), second, replace(third, captions=("x" * 10_000, long))]
    rest: Any = {"subset": "s", "group": "g", "image": shelf.picture(0), "text": None, "targets": frozenset({0})}
    galleries = ("a", "b"), ("a", long)
    queries = [Query(key=f"q-{n}", gallery=galleries[n % 4 // 2], **rest) for n in range(6)]
    for examples, kept in ((captions, ["m-1"]), (queries, ["q-0", "q-1", "q-4", "q-5"])):
        table = scored(lambda examples=examples: examples, by_features(tmp_path, encoder), tmp_path / "s.parquet")
        assert table["key"].to_pylist() == kept
        assert about(table)["left_out"] == {"text over 10,000 characters": 2}
    assert encoder.texts == 4


def no_memory(rows: Any) -> Any:
    raise MemoryError("too many")


@pytest.mark.parametrize(
    ("give", "problem"),
    [
        (lambda rows: rows * np.nan, r"gives NaN or infinity for shelf/0.png"),
        (lambda rows: rows[:-1], r"gave an array \(3, 6\) of float32 for 4 inputs"),
        (no_memory, "memory runs out for 4 inputs .*name a smaller --batch"),
    ],
)
def test_wrong_outputs_name_the_model_and_the_example(tmp_path: Path, give: Any, problem: str) -> None:
    wrong: Any = PlainEncoder()
    right = wrong.image_features
    wrong.image_features = lambda prepared: give(right(prepared))
    with pytest.raises(TwinsetError, match=f"plain: .*{problem}"):
        scored(lambda: matchings(Shelf(), 5), by_features(tmp_path, wrong), tmp_path / "s.parquet")
