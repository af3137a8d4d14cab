"""Local files and folders that are there whole or not at all, also when two processes make one; and JSON arrays."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import local_folder_of
from twinset.shards.storage.spool import beside, sync

_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path, of a file that takes the place of ``path`` when the block ends without an error.

    Two writers of one file disturb each other no more than one after the other. Folders above it are made. A block that
    fails or writes nothing leaves the file as it was.
    """
    try:
        with beside(path) as unfinished:
            yield unfinished
            if unfinished.exists():
                sync(unfinished)
                os.replace(unfinished, path)
    except OSError as error:
        if error.errno in _CANNOT_WRITE:
            error.add_note(f"{path}: free some room, or name another folder, and run the same command again")
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text whole, as UTF-8; half a surrogate pair becomes ``?``."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(text.encode("utf-8", "replace"))


class JsonArray(contextlib.AbstractContextManager["JsonArray"]):
    """A new file of a JSON array, written item by item. length: of what is written."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="ascii")
        self.length = 0
        self._stream.write("[")

    def append(self, item: Any) -> None:
        """Write one item on a line of its own."""
        self._stream.write(("," if self.length else "") + "\n" + as_json(item))
        self.length += 1

    def __exit__(self, *_: object) -> None:
        with self._stream:
            self._stream.write("\n]\n")


def as_json(value: Any) -> str:
    """ASCII, because released loaders open files with whatever encoding the machine prefers."""
    return json.dumps(value, ensure_ascii=True)


@contextmanager
def new_folder(to: str | Path, option: str) -> Iterator[Path]:
    """A folder to write into, which becomes ``to`` when the block ends without an error.

    option: that named ``to``, for messages. Raises `WrongUse`: it exists and is not an empty folder, or is a URL.
    """
    to = Path(os.path.abspath(local_folder_of(to)))
    with contextlib.ExitStack() as stack:
        try:
            if to.is_symlink() or (to.exists() and (not to.is_dir() or to.is_mount() or any(to.iterdir()))):
                raise WrongUse(
                    f"{to}: exists and is not an empty folder that can be replaced; name another {option}, or remove it"
                )
            unfinished = stack.enter_context(beside(to))
            unfinished.mkdir()
        except OSError as error:
            raise WrongUse(f"{to}: cannot be made ({error.strerror}); name another {option}, a new folder") from error
        try:
            yield unfinished
            unfinished.rename(to)
        except OSError as error:
            error.add_note(f"{to}: is not written; free some room, or name another {option}, and run the command again")
            raise
