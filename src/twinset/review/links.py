"""What links are signed with, who has one, and whose were withdrawn: files in the cache of who serves the page."""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import write_text

SECRET_BYTES = 32
LARGEST_BOOK = 1_000_000  # bytes of the file of links; a name takes some twenty
_BOOK = TypeAdapter(dict[str, int])


def read_secret(folder: Path) -> bytes:
    """The secret that links are signed with, made once; removing the file makes all links invalid. Raises `WrongUse`:
    the file is not one, or others can read it.
    """
    path = folder / "secret"
    folder.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".secret.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(secrets.token_hex(SECRET_BYTES).encode())
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(made, path)  # unlike a rename it leaves the secret of another server that started just now
        finally:
            made.unlink()
    if path.stat().st_mode & 0o077:
        raise WrongUse(f"{path}: others can read it and so sign links; chmod 600 it, or remove it for new links")
    content = path.read_bytes()
    if not re.fullmatch(rb"[0-9a-f]{%d}" % (2 * SECRET_BYTES), content):
        raise WrongUse(f"{path}: not the secret that twinset wrote; remove it, and give everyone the new links")
    return bytes.fromhex(content.decode())


class Links:
    """Names of those who were given links, each with how often their links were withdrawn.

    A token holds this number, so that a withdrawal ends the links of before and no later one. The file is read again
    when another process has written it: a page that is being served follows ``twinset review OUT --withdraw NAME``.

    Args:
        folder: that holds ``links.json``; None: nothing is remembered.

    Raises:
        WrongUse: the file is not one of links.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "links.json"
        self._seen: tuple[int, int, int] | None = None
        self._withdrawn: dict[str, int] = {}

    def names(self) -> tuple[str, ...]:
        """Who was given a link."""
        self._follow()
        return (*self._withdrawn,)

    def withdrawn(self, name: str) -> int:
        """How often the links of a name were withdrawn."""
        self._follow()
        return self._withdrawn.get(name, 0)

    def give(self, names: Iterable[str]) -> None:
        """Remember who is given a link."""
        self._follow()
        if new := {name: 0 for name in names if name not in self._withdrawn}:
            self._write(self._withdrawn | new)

    def withdraw(self, name: str) -> None:
        """End all links of a name. Raises `WrongUse`: nobody of this name ever had one."""
        if name not in (known := self.names()):
            has = f"those who have: {', '.join(known)}" if known else "nobody has"
            raise WrongUse(f"--withdraw {name!r}: has no link to this page; {has}")
        self._write(self._withdrawn | {name: self._withdrawn[name] + 1})

    def _write(self, withdrawn: dict[str, int]) -> None:
        self._withdrawn = withdrawn
        if self._path is not None:
            write_text(self._path, json.dumps(withdrawn))

    def _follow(self) -> None:
        if self._path is None:
            return
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return  # as for the first time; a page that is open keeps what it knows
        seen = found.st_mtime_ns, found.st_size, found.st_ino
        if seen == self._seen:
            return
        try:
            if found.st_size > LARGEST_BOOK:
                raise ValueError(f"{found.st_size:,} bytes")
            self._withdrawn, self._seen = _BOOK.validate_json(self._path.read_bytes(), strict=True), seen
        except ValueError as error:
            remedy = "remove it and the secret beside it"
            raise WrongUse(f"{self._path}: not the file of links that twinset wrote; {remedy}") from error
