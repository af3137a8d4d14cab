"""Streaming JSON equals reading it whole, and says where it is damaged."""

import json
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twinset.evaluation.benchmarks import json_items as module
from twinset.evaluation.benchmarks.json_items import json_items, text_of
from twinset.manifests.errors import WrongUse

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUE = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@settings(max_examples=60, deadline=None)
@given(
    value=st.lists(VALUE, max_size=6) | st.dictionaries(TEXT, VALUE, max_size=6),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
@example(value=[0.5, 1e-9], chunk=1, indent=None, ascii_only=True)
def test_records_are_those_of_the_whole_file(value: Any, chunk: int, indent: int | None, ascii_only: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        path = Path(folder, "a.json")
        path.write_text(json.dumps(value, indent=indent, ensure_ascii=ascii_only), "utf-8")
        expected = value.items() if isinstance(value, dict) else ((str(n), one) for n, one in enumerate(value))
        assert list(json_items(path)) == list(expected)
        path.write_text(json.dumps({"before": 1, "records": value, "behind": []}, indent=indent), "utf-8")
        assert list(json_items(path, "records")) == list(
            value.items() if isinstance(value, dict) else ((str(n), one) for n, one in enumerate(value))
        )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'[{"a": 1}, {"a": ', "after record '0'"),
        (b'[{"a": 1}, {"a" 2}]', "after record '0'"),
        (b'[{"a": 1}', "ends too early"),
        (b'{"x": 1, "x": 2}', "the key 'x' occurs twice"),
        (b'{"x": {"y": 1, "y": 2}}', "duplicate key 'y'"),
        (b"[1, 2] []", "something follows"),
        (b'["\\ud800"]', "half a surrogate"),
        (b'["caf\xe9"]', "not UTF-8"),
        (b"", "ends too early"),
        (b"17", "instead of"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_file_is_named_with_the_record(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(WrongUse, match=rf"a\.json: .*{problem}"):
        list(json_items(path))


def test_an_absent_file_or_member_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"gone\.json: cannot be read"):
        list(json_items(tmp_path / "gone.json"))
    (tmp_path / "a.json").write_text('{"a": 1}')
    with pytest.raises(WrongUse, match="no member 'images'"):
        list(json_items(tmp_path / "a.json", "images"))


def test_memory_is_that_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("w") as stream:
        stream.write("[")
        for number in range(6_000):
            stream.write(("," if number else "") + json.dumps({"caption": f"a cup {number} " * 200}))
        stream.write("]")
    assert path.stat().st_size > 12 << 20
    tracemalloc.start()
    try:
        assert sum(1 for _ in json_items(path)) == 6_000
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("record", [{}, {"caption": " "}, {"caption": 3}, {"caption": None}, ["caption"]])
def test_a_record_without_a_caption_is_named(record: Any) -> None:
    with pytest.raises(WrongUse, match="file record 7"):
        text_of(record, "caption", "file record 7")
