"""Names as numbers equal a dictionary's, also where hashes fail to tell them apart."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from twinset.generators.triplets import names
from twinset.generators.triplets.draws import NONE
from twinset.generators.triplets.names import Names


def column(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_numbers_are_those_of_a_dictionary(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(names, "BLOCK", size)
    texts = [f"http://a.org/{number}.jpg" for number in np.random.default_rng(7).integers(300, size=1000)]
    named, expected = Names(column(texts)), column(texts).dictionary_encode()
    assert named.numbers.tolist() == expected.indices.to_pylist() and named.different == len(expected.dictionary)
    others = column(["absent", texts[500], "", texts[0]])
    assert named.find(others).tolist() == [NONE, int(named.numbers[500]), NONE, 0]


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def poor(text: str) -> Any:
        asked.append(text)
        return hash(text) if text.startswith("1") else len(text)

    monkeypatch.setattr(names, "hash", poor, raising=False)
    named = Names(column(["ab", "cd", "ab", "e"]))
    assert named.numbers.tolist() == [0, 1, 0, 2] and "1cd" in asked
    assert named.find(column(["cd", "e", "fg"])).tolist() == [1, 2, NONE]


def test_a_name_that_is_not_there_is_not_found_by_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "hash", len, raising=False)
    named = Names(column(["a", "bb"]))
    assert named.find(column(["c", "bb"])).tolist() == [NONE, 1]
