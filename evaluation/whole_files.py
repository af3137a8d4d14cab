"""Files that are whole or absent: written under another name beside their place, then moved there."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

LONGEST = 100  # bytes; a longer name is replaced by its digest: a file system may limit names to 255 bytes
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved there when the block ends, removed when it fails or writes nothing.

    What killed processes of this machine left of the same file is removed. Folders above are made.
    """
    name = os.fsencode(path.name)
    shown = path.name if len(name) <= LONGEST else hashlib.sha256(name).hexdigest()
    prefix = f".{shown}.{socket.gethostname()}."
    temporary = path.with_name(f"{prefix}{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for entry in os.listdir(path.parent):
            left = re.fullmatch(re.escape(prefix) + r"(\d{1,9})", entry)
            if left and not psutil.pid_exists(int(left[1])):
                (path.parent / entry).unlink(missing_ok=True)
        try:
            yield temporary
            if temporary.exists():
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in _CANNOT_WRITE:
            error.add_note(f"{path}: free some room, or name another folder, and run the same command again")
        raise
