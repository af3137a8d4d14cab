"""Files of annotations: JSON, its lines, names of media and times."""

from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import Skipped, is_media_name, read_json, read_json_lines, seconds


def written(folder: Path, content: bytes) -> Path:
    path = folder / "annotation.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"caption": "caf\xe9"}', "byte 0xe9 in position 16"),
        (b'{"a": 1,\n "b": oops}\n', "line 2 column 7"),
        (b'{"a": 1, "b": {"c": 1, "\\u0063": 2}}', "one object has the key 'c' twice"),
        (b'"\\ud800"', "surrogates not allowed"),
        (b"[" * 200_000, "recursion"),
        (b"9" * 5000, "limit"),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_place(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(WrongUse, match=rf"annotation\.json: not JSON that can be read \(.*{problem}"):
        read_json(written(tmp_path, content))


def test_a_line_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    lines = [b'{"a": 1}', b"", b'{"b": "\xff"}', b'{"b": ', b'{"c": 1, "\\u0063": 1}', b'"\\ud800"', b'{"c": 2}']
    assert list(read_json_lines(written(tmp_path, b"\n".join(lines)))) == [
        (1, {"a": 1}),
        (3, Skipped("line 3", "not-utf-8")),
        (4, Skipped("line 4", "not-json")),
        (5, Skipped("line 5", "repeated-key")),
        (6, Skipped("line 6", "not-utf-8")),
        (7, {"c": 2}),
    ]
    with pytest.raises(WrongUse, match=r"annotation\.json: not one line is JSON \(line 1: not-utf-8\)"):
        list(read_json_lines(written(tmp_path, b"\x80\x04\n" * 3)))


def test_a_byte_order_mark_is_no_text_and_a_missing_file_is_named(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, b'\xef\xbb\xbf"\\ud83c\\udf73"')) == "\N{COOKING}"
    with pytest.raises(WrongUse, match=r"none\.json: cannot be read"):
        read_json(tmp_path / "none.json")


def test_names_that_leave_the_media_folder_are_refused_and_odd_ones_within_kept() -> None:
    assert not any(map(is_media_name, ["../x", "a/../../x", "/etc/passwd", "", "..\\b", "a\0b", "\ud800"]))
    assert all(map(is_media_name, ["--33Lscn6sk", "a.b.mp4", "train/x", "train\\x", "..x"]))


@pytest.mark.parametrize(
    ("value", "time"),
    [(1, 1.0), (2.5, 2.5), ("3.77", 3.77), (0, 0.0)]
    + [(bad, None) for bad in (True, None, "soon", -1, float("nan"), float("inf"), [1], 10**400, 1e308, 1e8)],
)
def test_times_are_finite_seconds(value: object, time: float | None) -> None:
    assert seconds(value) == time
