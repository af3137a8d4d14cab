"""Files of annotations: JSON, its lines, names of media and times."""

from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import read_json


def written(folder: Path, content: bytes) -> Path:
    path = folder / "annotation.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"caption": "caf\xe9"}', "byte 0xe9 in position 16"),
        (b'{"a": 1, "b": {"c": 1, "\\u0063": 2}}', "one object has the key 'c' twice"),
        (b'"\\ud800"', "surrogates not allowed"),
        (b"[" * 200_000, "recursion"),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_place(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(WrongUse, match=rf"annotation\.json: not JSON that can be read \(.*{problem}"):
        read_json(written(tmp_path, content))


def test_a_byte_order_mark_is_no_text_and_a_missing_file_is_named(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, b'\xef\xbb\xbf"\\ud83c\\udf73"')) == "\N{COOKING}"
    with pytest.raises(WrongUse, match=r"none\.json: cannot be read"):
        read_json(tmp_path / "none.json")
