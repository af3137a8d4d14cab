from pathlib import Path

import pytest

from generators.annotation_files import media_name, read_json, read_json_lines, seconds
from manifests.errors import WrongUse


def written(folder: Path, content: bytes) -> Path:
    path = folder / "annotation.json"
    path.write_bytes(content)
    return path


def test_a_byte_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"caption": "caf\xe9"}')
    with pytest.raises(WrongUse, match=r"annotation\.json: byte 16 \(0xe9\) is not UTF-8; save the file as UTF-8"):
        read_json(path)


def test_a_byte_in_json_lines_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"a": 1}\n\n{"b": "\xff"}\n')
    with pytest.raises(WrongUse, match=r"line 3: byte 17 \(0xff\)"):
        list(read_json_lines(path))


def test_the_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"line 2: column 6: not JSON"):
        list(read_json_lines(written(tmp_path, b'{"a": 1}\n{"b": \n{"c": 2}\n')))
    with pytest.raises(WrongUse, match=r"line 2, column 7: not JSON"):
        read_json(written(tmp_path, b'{"a": 1,\n "b": oops}\n'))


@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b"9" * 5000, b'"\\ud800"'])
def test_what_json_cannot_be_read_as_text_is_wrong_use(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json"):
        read_json(written(tmp_path, content))


@pytest.mark.parametrize("content", [b'{"a": 1, "b": {"c": 1, "c": 2}}', b'[{"c": 1, "\\u0063": 1}]'])
def test_a_key_that_stands_twice_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json: the key 'c' stands twice in one object"):
        read_json(written(tmp_path, content))
    with pytest.raises(WrongUse, match=r"annotation\.json: line 1: the key 'c' stands twice"):
        list(read_json_lines(written(tmp_path, content)))


def test_surrogate_pairs_and_byte_order_marks_are_text(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, b'\xef\xbb\xbf"\\ud83c\\udf73"')) == "\N{COOKING}"


def test_a_missing_file_says_which_setting_to_correct(tmp_path: Path) -> None:
    for read in (read_json, lambda path: list(read_json_lines(path))):
        with pytest.raises(WrongUse, match=r"none\.json: cannot be read .*source\.annotations"):
            read(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "", "a\\b", "a\0b", "\ud800"])
def test_names_that_leave_the_media_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json: media name .* is refused; names of media lie within"):
        media_name(tmp_path / "annotation.json", name)


@pytest.mark.parametrize("name", ["--33Lscn6sk", "a.b.mp4", "train/x", "..x"])
def test_odd_names_within_the_folder_are_kept(tmp_path: Path, name: str) -> None:
    assert media_name(tmp_path / "annotation.json", name) == name


@pytest.mark.parametrize(
    ("value", "time"),
    [(1, 1.0), (2.5, 2.5), ("3.77", 3.77), (0, 0.0)]
    + [(bad, None) for bad in (True, None, "soon", -1, float("nan"), float("inf"), [1], 10**400, 1e308, 1e8)],
)
def test_times_are_finite_seconds(value: object, time: float | None) -> None:
    assert seconds(value) == time
