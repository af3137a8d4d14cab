"""Journals beside SQLite files: one that names another file has SQLite delete that file."""

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from twinset.evaluation.features.store import FeatureStore
from twinset.generators.decisions.answers import read_answers, schema
from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.models.language_models.answers import Answers
from twinset.review.store import AnswerStore
from twinset.shards.storage.sqlite_file import connect

MAGIC = bytes.fromhex("d9d505f920a163d7")


def hot_journal(database: Path, other: Path | None = None) -> bytes:
    """What a killed process leaves beside a database: its first page; as part of a transaction that ``other`` names."""
    content = database.read_bytes()
    (size,) = struct.unpack(">H", content[16:18])
    page = content[:size]
    checksum = sum(page[at] for at in range(size - 200, 0, -200))
    header = MAGIC + struct.pack(">5I", 1, 0, len(content) // size, 512, size)
    journal = header.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", checksum)
    if other is not None:
        name = os.fsencode(other)
        journal += struct.pack(">I", (1 << 30) // size + 1) + name + struct.pack(">2I", len(name), sum(name)) + MAGIC
    return journal


def made(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        schema(connection)
        connection.execute("PRAGMA journal_mode=DELETE")


@pytest.mark.parametrize(
    "use",
    [
        lambda path: AnswerStore(path).close(),
        lambda path: read_answers(path, "people"),
        lambda path: Answers(path.parent).close(),
        lambda path: FeatureStore(path.parent, "answers").close(),
    ],
    ids=["review", "decisions", "language model", "features"],
)
@pytest.mark.parametrize("linked", [False, True])
def test_a_journal_that_names_another_file_is_refused(
    use: Callable[[Path], object], linked: bool, tmp_path: Path
) -> None:
    path, mine = tmp_path / "answers.sqlite", tmp_path / "mine"
    real = tmp_path / "real.sqlite" if linked else path
    made(real)
    if linked:
        path.symlink_to(real)
    mine.write_text("mine")
    real.with_name(f"{real.name}-journal").write_bytes(hot_journal(real, mine))
    with pytest.raises((WrongUse, BuildFailed), match=r"answers\.sqlite: .*-journal is not a journal of this"):
        use(path)
    assert mine.read_text() == "mine"


def test_a_pipe_in_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    made(tmp_path / "answers.sqlite")
    os.mkfifo(tmp_path / "answers.sqlite-journal")
    with pytest.raises(WrongUse, match="-journal is not a journal of this file alone"):
        AnswerStore(tmp_path / "answers.sqlite")


def test_what_a_killed_process_left_is_rolled_back(tmp_path: Path) -> None:
    path, journal = tmp_path / "answers.sqlite", tmp_path / "answers.sqlite-journal"
    made(path)
    before = path.read_bytes()
    journal.write_bytes(hot_journal(path))
    path.write_bytes(bytes(100) + before[100:])
    with closing(connect(path, "")) as connection:
        assert connection.execute("SELECT * FROM answers").fetchall() == []
    assert not journal.exists()
    assert path.read_bytes() == before
