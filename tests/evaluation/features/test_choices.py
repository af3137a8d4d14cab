"""Choosers with a known bias: what they get is what theory says, by direction; what was not asked is not there."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.evaluation.features.small_benchmark import SmallBenchmark
from twinset.contracts.errors import WrongUse
from twinset.evaluation.answers.figures import scores
from twinset.evaluation.examples import Grounding, Matching, Picture
from twinset.evaluation.features.pairs import ByChoices
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure
from twinset.models.encoders.contract import Chooser, Direction, NotApplicable, Question

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


def picture(colour: str, side: int = 4) -> Picture:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(buffer, "PNG")
    content = b"not an image" if colour == "purple" else buffer.getvalue()
    return Picture(f"{colour}-{side}", lambda: content)


def example(number: int, *pictures: Picture, captions: tuple[str, str] = ("red", "blue")) -> Matching:
    return Matching(key=f"{number}", subset="s", group=f"g{number}", images=pictures, captions=captions)


def pairs(count: int = 20) -> list[Matching]:
    """Red and blue; of every other one the red image is the larger one."""
    return [example(n, picture("red", 8 if n % 2 else 4), picture("blue", 4 if n % 2 else 8)) for n in range(count)]


def table(tmp_path: Path, chooser: Chooser, examples: Sequence[Matching]) -> Path:
    tmp_path.mkdir(exist_ok=True)
    opened = ByChoices(chooser, FeatureStore(tmp_path, "rule"), 3)
    path = tmp_path / "scores.parquet"
    write_scores(SmallBenchmark(lambda: examples), opened, path, {"model": "rule"})
    opened.close()
    return path


def shown_first(question: Question) -> Answered:
    return (0, 0) if question.direction == "pairing" else (0,)


def shown_last(question: Question) -> Answered:
    return (1, 1) if question.direction == "pairing" else (1,)


def in_order(question: Question) -> Answered:
    """As LLaVA in EqBen's Table 7: caption 1 is left, whatever is shown."""
    return (0, 1)


def larger(question: Question) -> Answered:
    """Of two images the larger one; of an image of 8 pixels the caption "red"."""
    if question.direction == "image":
        return (int(question.images[1].width > question.images[0].width),)
    return (question.captions.index("red" if question.images[0].width == 8 else "blue"),)


def sees(question: Question) -> Answered:
    def colour(image: Image.Image) -> str:
        return "red" if image.getpixel((0, 0)) == (255, 0, 0) else "blue"

    if question.direction == "image":
        return ([colour(one) for one in question.images].index(question.captions[0]),)
    return tuple(question.captions.index(colour(image)) for image in question.images)


CHOSEN = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")


@pytest.mark.parametrize("rule", [shown_first, shown_last])
def test_one_that_takes_a_place_is_never_right_in_both_orders(tmp_path: Path, rule: Callable[..., Answered]) -> None:
    found = measure(table(tmp_path, Rule(rule), pairs())).all
    assert {name: one.value for name, one in found.figures.items()} == dict.fromkeys(
        ("text", "image", "group", *CHOSEN), 0
    )
    # By a coin for each of the two, or of the four comparisons.
    assert [found.figures[name].expected for name in ("text", "image", "group")] == [25, 25, 6.25]
    assert [found.figures[name].expected for name in CHOSEN] == [50] * 4 and found.ties == 100


def test_one_that_goes_by_size_is_right_by_direction_as_sizes_fall(tmp_path: Path) -> None:
    found = measure(table(tmp_path, Rule(larger), pairs())).all
    # T2I: the larger image for either caption, so one of the two is always wrong. I2T: both right where red is larger.
    assert {name: one.value for name, one in found.figures.items()} == {
        **{"text": 50, "image": 0, "group": 0},
        **dict.fromkeys(CHOSEN, 50),
    }
    assert found.ties == 0


def test_one_that_sees_is_right_and_each_question_is_asked_in_both_orders(tmp_path: Path) -> None:
    chooser = Rule(sees)
    found = measure(table(tmp_path, chooser, pairs(3))).all
    assert {one.value for one in found.figures.values()} == {100}
    assert len(chooser.asked) == 2 * 4 + 2 * 4, "two different pairs; the third is the first again, in one lot"


def test_a_direction_that_was_not_asked_has_no_figure_and_is_not_compared(tmp_path: Path) -> None:
    text = table(tmp_path / "text", Rule(sees, ("text",)), pairs())
    image = table(tmp_path / "image", Rule(sees, ("image",)), pairs())
    both = table(tmp_path / "both", Rule(sees), pairs())
    assert [*measure(text).all.figures] == ["text", "ipos2t", "ineg2t"]
    assert [*measure(image).all.figures] == ["image", "tpos2i", "tneg2i"]
    found = compare(text, both)
    assert [line.figure for line in found.table] == ["text"]
    assert "not asked image, asked group of the same rows in both" in " ".join(found.notes)
    assert not compare(text, image).table
    columns = pq.read_table(text).select(["tpos2i", "tneg2i", "pairing"])
    assert all(column.null_count == len(columns) for column in columns.columns)


def test_the_pairing_is_asked_in_both_orders_as_in_table_7_of_eqben(tmp_path: Path) -> None:
    found = measure(table(tmp_path / "order", Rule(in_order, ("pairing",)), pairs())).all
    assert {name: one.value for name, one in found.figures.items()} == {"group": 0, "order12": 100, "order21": 0}
    assert found.figures["group"].expected == 50 and found.ties == 100
    found = measure(table(tmp_path / "sees", Rule(sees, ("pairing",)), pairs())).all
    assert {name: one.value for name, one in found.figures.items()} == {"group": 100, "order12": 100, "order21": 100}
    found = measure(table(tmp_path / "first", Rule(shown_first, ("pairing",)), pairs())).all
    assert {one.value for one in found.figures.values()} == {0}, '"1;1" is no pairing'


def test_of_one_image_only_captions_are_asked_for(tmp_path: Path) -> None:
    found = measure(table(tmp_path, Rule(sees), [example(n, picture("red")) for n in range(4)])).all
    assert {name: one.value for name, one in found.figures.items()} == {"accuracy": 100}
    with pytest.raises(NotApplicable, match="asks about two images, and example 0 has one"):
        table(tmp_path, Rule(sees, ("image",)), [example(0, picture("red"))])


def test_orders_that_agree_are_a_score_and_others_a_tie() -> None:
    assert scores(0, 1) == (1, 0) and scores(1, 0) == (0, 1)
    for straight, swapped in ((0, 0), (1, 1), (None, 0), (1, None), (None, None)):
        assert scores(straight, swapped) == (0.5, 0.5)


def test_what_has_no_answer_is_a_tie_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def moody(question: Question) -> Answered:
        return "refusal" if question.direction == "image" and question.captions == ("red",) else sees(question)

    path = table(tmp_path, Rule(moody), pairs(2))
    found = measure(path).all.figures
    assert found["text"].value == 100 and found["tpos2i"].value == 0 and found["image"].expected == 50
    assert json.loads(pq.read_schema(path).metadata[b"twinset"])["unanswered"] == {"refusal": 4}
    listed = [json.loads(line) for line in path.with_suffix(".unanswered.jsonl").read_text().splitlines()]
    assert listed[0] == {"key": "0", "what": "tpos2i, in order", "reason": "refusal"} and len(listed) == 4
    assert "example 0, tpos2i, in order: no answer, refusal" in caplog.text
    assert "4 answers of 16 no score (4 refusal)" in caplog.text
    table(tmp_path, Rule(sees), pairs(2))
    assert not path.with_suffix(".unanswered.jsonl").exists()


def test_one_that_answers_nothing_is_an_error_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"small: rule answers nothing \(16 empty\)"):
        table(tmp_path, Rule(lambda question: "empty"), pairs(2))
    assert not [*tmp_path.glob("scores*")]


def test_an_image_that_cannot_be_read_leaves_its_example_out(tmp_path: Path) -> None:
    path = table(tmp_path, Rule(sees), [example(0, picture("red"), picture("purple")), *pairs(2)[1:]])
    assert pq.read_table(path).column("key").to_pylist() == ["1"]
    assert "undecodable image" in path.with_suffix(".left_out.jsonl").read_text()


def test_only_matchings_can_be_asked(tmp_path: Path) -> None:
    frames = [picture("red")] * 2
    grounding = Grounding(
        key="g", subset="s", group="g", frames=frames, times=np.arange(2.0), captions=("red", "blue"), boundary=0.5
    )
    opened = ByChoices(Rule(sees), FeatureStore(tmp_path, "rule"), 2)
    with pytest.raises(NotApplicable, match="rule: chooses between two captions or two images, which example g does"):
        opened.prepare([grounding])
    opened.close()
