"""Records of a JSON file, and where it is damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, text_of


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'[{"a": 1}, {"a": ', "line 1, column 18: not JSON"),
        (b'[{"a": 1}, {"a" 2}]', "not JSON"),
        (b'{"x": 1, "x": 2}', "the key 'x' twice"),
        (b'{"x": {"y": 1, "y": 2}}', "the key 'y' twice"),
        (b"[1, 2] []", "not JSON"),
        (b'["\\ud800"]', "half a surrogate"),
        (b'["caf\xe9"]', "not UTF-8"),
        (b"", "not JSON"),
        (b"17", "not an object"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(WrongUse, match=rf"a\.json: .*{problem}"):
        list(json_items(path))


@pytest.mark.parametrize("value", [[], {}, [0.5, None, "a"], {"x": [1], "y": {"z": 2}}])
def test_records_are_those_of_the_file(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "a.json"
    expected = list(value.items() if isinstance(value, dict) else ((str(n), one) for n, one in enumerate(value)))
    path.write_text(json.dumps(value), "utf-8-sig")
    assert list(json_items(path)) == expected
    path.write_text(json.dumps({"before": 1, "records": value, "behind": []}), "utf-8")
    assert list(json_items(path, "records")) == expected


def test_an_absent_file_or_member_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"gone\.json: cannot be read"):
        list(json_items(tmp_path / "gone.json"))
    (tmp_path / "a.json").write_text('{"a": 1}')
    with pytest.raises(WrongUse, match="no member 'images'"):
        list(json_items(tmp_path / "a.json", "images"))


@pytest.mark.parametrize("record", [{}, {"caption": " "}, {"caption": 3}, {"caption": None}, ["caption"]])
def test_a_record_without_a_caption_is_named(record: Any) -> None:
    with pytest.raises(WrongUse, match="file record 7"):
        text_of(record, "caption", "file record 7")
