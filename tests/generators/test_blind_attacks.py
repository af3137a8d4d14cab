"""Blind attacks counted by hand: who is longer, who scores higher, and ties that count half."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from twinset.generators.blind_attacks import COLUMNS, WORD, SignCounts, accuracy, attack_table, gaps_of, kinds_of
from twinset.generators.negative_captions.changes import words

PAIRS = [
    ("A dog.", "A big dog.", "add", "att", 0.9, 0.1),
    ("A cat sat.", "A mat sat.", "replace", "obj", 0.2, 0.2),
    ("A man on a bus.", "A bus.", "replace", "obj", 0.3, 0.6),
    ("A kite.", "A red, old kite.", "", "", None, 0.6),
    ("A lamp.", "A ramp.", "replace", "obj", math.nan, 0.5),
]


def batch() -> pa.RecordBatch:
    names = ("caption", "negative_caption", "type", "subtype", "vera_caption", "vera_negative")
    columns = dict(zip(names, map(list, zip(*PAIRS, strict=True)), strict=True))
    empty = {name: pa.nulls(len(PAIRS), pa.float64()) for name in COLUMNS if name not in names}
    scores = {name: pa.array(columns.pop(name), pa.float64()) for name in names[-2:]}
    return pa.record_batch({**{name: pa.array(values) for name, values in columns.items()}, **scores, **empty})


def add(counts: SignCounts, part: pa.RecordBatch) -> None:
    kinds = kinds_of(part["type"], part["subtype"]).dictionary_encode()
    counts.add(gaps_of(part), kinds.indices.to_numpy(), kinds.dictionary.to_pylist())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_signs_of_gaps_are_counted_by_kind_however_the_table_comes(size: int) -> None:
    counts = SignCounts()
    for start in range(0, len(PAIRS), size):
        add(counts, batch().slice(start, size))
    signs = counts.signs()
    assert signs["words"] == {"all": [2, 2, 1], "add_att": [1, 0, 0], "replace_obj": [0, 2, 1], "unknown": [1, 0, 0]}
    assert signs["characters"]["replace_obj"] == [0, 2, 1]
    assert signs["vera"] == {"all": [1, 1, 1], "add_att": [0, 0, 1], "replace_obj": [1, 1, 0]}
    assert signs.keys() == {"characters", "words", "vera"}, "scores that no pair has are told"


def test_half_of_ties_are_right() -> None:
    assert accuracy([2, 2, 1], 1) == 2 / 5 and accuracy([2, 2, 1], -1) == 3 / 5
    assert accuracy([0, 7, 0], 1) == 0.5


def test_the_table_shows_both_directions_of_lengths_and_no_share_of_nothing() -> None:
    counts = SignCounts()
    add(counts, batch())
    lines = attack_table(counts.signs(), ["replace_obj", "add_att", "unknown"]).splitlines()
    assert lines[0] == "| guessed true: the caption that has | all | ties | replace obj | add att | unknown |"
    assert "| fewer words | 60.0% | 40.0% | 33.3% | 100.0% | 100.0% |" in lines
    assert "| more words | 40.0% | 40.0% | 66.7% | 0.0% | 0.0% |" in lines
    assert "| higher VERA | 50.0% | 33.3% | 25.0% | 100.0% | – |" in lines
    assert not any("CoLA" in line or "language" in line for line in lines)
    assert attack_table({}, []) == ""


def test_a_batch_of_known_kinds_is_counted_too() -> None:
    counts = SignCounts()
    counts.add({"words": np.array([1.0, np.nan, -2.0])}, np.array([1, 1, 0], np.int16), ["a", "b", "c"])
    assert counts.signs() == {"words": {"all": [1, 0, 1], "a": [1, 0, 0], "b": [0, 0, 1]}}


@pytest.mark.parametrize(
    "text", ["A T-shirt's on_1 'top', isn't it?", "二人の男 été – naïve", "", " 3.5 x", "a--b co-op’s"]
)
def test_words_are_those_of_negative_captions(text: str) -> None:
    assert pc.count_substring_regex(pa.array([text]), WORD)[0].as_py() == len(words(text))
