"""A file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from shards.storage.whole_file import whole_file, write_text


def test_a_block_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_text(path, "before \ud800")
    with pytest.raises(ZeroDivisionError), whole_file(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before ?" and [*path.parent.iterdir()] == [path]
