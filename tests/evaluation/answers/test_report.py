"""Answers of a folder: SugarCrepe's released ones, and made ones with every way to be wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.answers.files import read_answers
from twinset.evaluation.answers.report import Report, report
from twinset.evaluation.examples import MATCHING_SCORES
from twinset.evaluation.metrics.measure import measure

GPT4V = Path(__file__).parents[3] / "../shared/data/sugarcrepe/gpt4v"
#: Right, as published: by split and order.
PUBLISHED = {
    ("swap_obj", "positive-first"): (211, 246),
    ("swap_obj", "negative-first"): (198, 246),
    ("replace_att", "positive-first"): (734, 788),
    ("replace_att", "negative-first"): (740, 788),
}
POSITIVE, NEGATIVE = "a red wall without windows", "a blue wall without windows"


@pytest.fixture(scope="module")
def released() -> Report:
    if not GPT4V.is_dir():
        pytest.skip("the answers of GPT-4V are not in ../shared/data/sugarcrepe/gpt4v on this machine")
    return report(GPT4V, resamples=200)


def test_the_published_counts_come_out_of_the_free_text(released: Report) -> None:
    orders = {(name, order): one for name, split in released.splits.items() for order, one in split.orders.items()}
    assert {at: (one.published["right"], one.n) for at, one in orders.items()} == PUBLISHED
    assert {at: (one.counted, one.n) for at, one in orders.items()} == PUBLISHED


def test_every_released_answer_is_read_or_listed(released: Report) -> None:
    # The released rule reads no answer that names both; ours reads one that takes "neither" back.
    (other,) = released.differences
    assert (other.file, other.answered.key) == ("negative-first/swap_obj.json", "214")
    assert other.reading.choice == 2 and other.right and other.published is None
    assert released.splits["swap_obj"].orders["negative-first"].counts["right"] == 199
    for split in released.splits.values():
        for one in split.orders.values():
            assert sum(one.counts.values()) == one.n and sum(one.reasons.values()) == one.counts["unparsed"]
    assert len(released.unparsed) == 29 and {one.reading.reason for one in released.unparsed} == {"neither", "refusal"}
    assert released.stray == {"positive-first/swap_obj.json": {"accuracy": 0.8577}} and not released.notes


def answer(text: Any, image: str = "a.jpg", **others: Any) -> dict[str, Any]:
    return {"answer": text, "caption": POSITIVE, "negative_caption": NEGATIVE, "filename": image, **others}


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes texts, or what a file holds, by order and split; returns the folder."""

    def written(**files: Any) -> Path:
        for name, held in files.items():
            order, split = name.split("__")
            path = tmp_path / f"{order}-first" / f"{split}.json"
            path.parent.mkdir(exist_ok=True)
            if isinstance(held, list):
                held = {str(key): answer(text, f"{key // 2}.jpg") for key, text in enumerate(held)}
            path.write_bytes(held if isinstance(held, bytes) else json.dumps(held).encode())
        return tmp_path

    return written


def test_orders_are_compared_example_by_example(write: Write) -> None:
    straight = ["(1)", "(1)", "(2)", "Neither.", "(1)", "2"]
    swapped = ["(2)", "(1)", "(1)", "(2)", "(2)", "(2)"]
    found = report(write(positive__s=straight, negative__s=swapped), resamples=300)
    split, both = found.splits["s"], found.splits["s"].both
    assert both is not None and (both.n, both.images) == (6, 3)
    first, second = split.orders["positive-first"], split.orders["negative-first"]
    assert first.counts == {"right": 3, "wrong": 2, "unparsed": 1} and first.reasons == {"neither": 1}
    assert second.counts == {"right": 4, "wrong": 2, "unparsed": 0}
    assert first.published == {"right": 3, "wrong": 1, "unparsed": 2}  # "2" is not "(2)"
    assert first.figures["right"].value == 50 and first.figures["right"].expected == pytest.approx(100 * 3.5 / 6)
    assert first.figures["first"].value == 60
    assert both.counts == {"right": 2, "wrong": 1, "inconsistent": 2, "unparsed": 1}
    values = {name: one.value for name, one in both.figures.items()}
    assert values["average"] == pytest.approx(100 * 7 / 12) and values["first"] == pytest.approx(100 * 5 / 11)
    assert sum(values[kind] for kind in both.counts) == pytest.approx(100)
    for figures in (first.figures, both.figures):
        for one in figures.values():
            assert one.low is not None and one.high is not None and one.low <= one.value <= one.high
    assert [one.answered.key for one in found.unparsed] == ["3"]
    assert [one.answered.key for one in found.differences] == ["5"]
    assert found.all == split or found.all.as_json().keys() == split.as_json().keys()


def test_intervals_follow_images_not_answers(write: Write) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, 40)  # whether all ten answers about an image are right
    every = {
        f"{image}-{n}": answer("(1)" if right else "(2)", f"{image}.jpg")
        for image, right in enumerate(images)
        for n in range(10)
    }
    alone = {key: {**one, "filename": key} for key, one in every.items()}
    found = report(write(positive__clustered=every, positive__alone=alone))
    width = {}
    for name, split in found.splits.items():
        figure = split.orders["positive-first"].figures["right"]
        assert figure.low is not None and figure.high is not None and split.both is None
        width[name] = figure.high - figure.low
    # The standard error of a mean over 40 images is √10 times that over 400 independent answers.
    assert width["clustered"] / width["alone"] == pytest.approx(10**0.5, rel=0.2)
    assert any("only positive-first" in note for note in found.notes)


def test_the_same_seed_gives_the_same_report(write: Write) -> None:
    folder = write(positive__s=["(1)", "(2)", "(1)"], negative__s=["(2)", "(2)", "(1)"])
    assert report(folder, 3, 100).as_json() == report(folder, 3, 100).as_json()
    assert report(folder, 3, 0).as_json()["all"]["both_orders"]["interval"] == {}


def test_what_does_not_fit_together_is_noted(write: Write) -> None:
    texts = ("(1)", {"free_form_answer": "(2)"}, "Neither")
    first = {str(key): answer(text, "0.jpg", correct=key < 2) for key, text in enumerate(texts)}
    found = report(write(positive__s=first, negative__s=["(1)"]), resamples=0)  # of image 0.jpg
    assert found.notes == (
        "s: 2 examples have an answer in one order only, such as 1",
        "positive-first/s.json: in 1 answers, such as 1, `correct` is not what the released evaluation's rule gives "
        "(positive-first)",
    )


WRONG: dict[str, tuple[Any, str]] = {
    "not JSON": (b"{", r"s\.json: .*not JSON"),
    "not UTF-8": (b'{"a": "\xff"}', r"s\.json: not JSON that can be read .*position 7"),
    "too deep": (b"[" * 100_000, r"s\.json: not JSON"),
    "a duplicate": (b'{"7": 1, "7": 2}', r"s\.json: .*one object has the key '7' twice"),
    "a list": (b"[]", r"s\.json: not a JSON object"),
    "empty": ({}, r"s\.json: no answers"),
    "only stray": ({"accuracy": 1}, r"s\.json: no answers"),
    "not an answer": ({"0": 1}, r"s\.json: 0: not an object"),
    "no text": ({"0": answer(None)}, r"s\.json: 0: answer.free_form_answer is absent; write a text"),
    "no words": ({"0": answer({"free_form_answer": 1})}, "0: answer.free_form_answer is not a text"),
    "no caption": ({"0": {**answer("(1)"), "caption": 3}}, "0: caption is not a text"),
    "half a surrogate pair": ({"\ud800": answer("(1)")}, r"s\.json: not JSON that can be read .*surrogates"),
    "a control character": ({"0": answer("(1)", "\x1b.jpg")}, r"must be printable; correct '\\x1b\.jpg'"),
    "a wrong count": ({"0": answer("(1)", correct="yes")}, "0: correct is 'yes'"),
}


@pytest.mark.parametrize("problem", WRONG)
def test_a_file_that_is_not_of_answers_is_said(write: Write, problem: str) -> None:
    held, message = WRONG[problem]
    with pytest.raises(WrongUse, match=message):
        read_answers(write(positive__s=held))


def test_a_folder_without_answers_or_of_two_models_is_said(write: Write, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"no answers; a folder holds positive-first/SPLIT\.json"):
        read_answers(tmp_path)
    write(**{"positive__gpt4v-s": ["(1)"], "positive__llava-s": ["(1)"]})
    with pytest.raises(WrongUse, match=r"llava-s\.json: positive-first/gpt4v-s\.json is also of split s"):
        read_answers(tmp_path)


def test_two_versions_of_a_split_are_not_compared(write: Write) -> None:
    other = {"0": answer("(1)", "other.jpg")}
    with pytest.raises(WrongUse, match=r"negative-first/s\.json: 0: another image or other captions"):
        read_answers(write(positive__s={"0": answer("(1)")}, negative__s=other))


def test_the_command_prints_a_table_and_json(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(positive__s=["(1)", "\x1b[31mred", "(1)"], negative__s=["(2)", "1", "(2)"])
    assert main(["eval", "answers", str(folder), "--resamples", "100"]) == 0
    shown = capsys.readouterr().out
    assert "s positive-first  3  right" in shown and "\x1b" not in shown
    assert "positive-first/s.json: 1: no choice: '\\x1b[31mred'" in shown
    assert "read in another way by the released evaluation: 1" in shown
    assert main(["eval", "answers", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["splits"]["s"]["positive-first"]["as_published"] == {"right": 2, "wrong": 0, "unparsed": 1}
    assert found["unparsed"][0]["text"] == "\x1b[31mred" and found["all"] == found["splits"]["s"] | found["all"]
    assert main(["eval", "answers", str(folder / "absent")]) == 2
    assert main(["eval", "answers", str(folder), "--seed=-1"]) == 2
    assert "--seed" in capsys.readouterr().err


def test_choices_become_scores_that_are_measured_as_others_are(write: Write, tmp_path: Path) -> None:
    straight, swapped = ["(1)", "(1)", "(2)", "Neither.", "(1)"], ["(2)", "(1)", "(1)", "(2)"]
    folder, table = write(positive__s=straight, negative__s=swapped), tmp_path / "scores.parquet"
    assert main(["eval", "answers", str(folder), "--out", str(table)]) == 0
    written = pq.read_table(table)
    assert written.schema.equals(MATCHING_SCORES) and written["key"].to_pylist() == ["s/0", "s/1", "s/2", "s/3"]
    assert written["s00"].to_pylist() == [1, 0.5, 0, 0.5] and written["s01"].to_pylist() == [0, 0.5, 1, 0.5]
    assert written["group"].to_pylist() == ["0", "0", "1", "1"]
    assert json.loads(written.schema.metadata[b"twinset"])["left_out"] == {"one order": 1}
    measured = measure(table, resamples=0).all
    assert (
        measured.figures["accuracy"].value == 25 and measured.figures["accuracy"].expected == 50 and measured.ties == 50
    )
