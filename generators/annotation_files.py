"""Reading annotation files: JSON, JSON lines and the names in them, with errors that say what to correct and where."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manifests.errors import WrongUse
from shards.media.media_folder import EscapesRoot, inside

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST = 1e7  # seconds, 115 days: what lies beyond is no time in a video, and sums of it may not be finite


def read_bytes(path: Path) -> bytes:
    """The whole file; raises `WrongUse` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise WrongUse(_unreadable(path, error)) from error


def read_json(path: Path) -> Any:
    """The file as one JSON value; raises `WrongUse` naming the place where it is not UTF-8 or not JSON."""
    return _parse(read_bytes(path), f"{path}", 0)


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers (from 1) and values of a file of one JSON value a line; empty lines are left out."""
    offset = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, _parse(line.rstrip(), f"{path}: line {number}", offset)
                offset += len(line)
    except OSError as error:
        raise WrongUse(_unreadable(path, error)) from error


def media_name(path: Path, name: str) -> str:
    """``name`` of a video or frame if it stays within a media folder; else `WrongUse` naming the annotation file."""
    try:
        name.encode("utf-8")
        inside(Path(), name)
    except (EscapesRoot, UnicodeEncodeError) as error:
        remedy = "names of media lie within the media folder: no '..', no leading '/', no '\\'; correct or remove it"
        raise WrongUse(f"{path}: media name {name!r} is refused; {remedy}") from error
    return name


def seconds(value: Any) -> float | None:
    """A time in seconds, from a number or the text of one; None where it is neither, negative or beyond `LONGEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        time = float(value)
    except (ValueError, OverflowError):
        return None
    return time if 0 <= time <= LONGEST else None


def _parse(raw: bytes, place: str, offset: int) -> Any:
    body = raw.removeprefix(BYTE_ORDER_MARK)
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_object)
        if b"\\ud" in body.lower():
            # Half a surrogate pair is valid JSON and no text: it could not be written into a shard.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except UnicodeDecodeError as error:
        at = offset + len(raw) - len(body) + error.start
        remedy = "save the file as UTF-8, or correct the text there"
        raise WrongUse(f"{place}: byte {at} (0x{body[error.start]:02x}) is not UTF-8; {remedy}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if "\n" in error.doc.strip() else f"column {error.colno}"
        raise WrongUse(f"{place}: {where}: not JSON ({error.msg}); correct it or fetch the file again") from error
    except UnicodeEncodeError as error:
        raise WrongUse(f"{place}: holds half a surrogate pair ({error.object[error.start]!r}); correct it") from error
    except _RepeatedKey as error:
        remedy = "the last one would win silently; merge the two, or remove one"
        raise WrongUse(f"{place}: the key {str(error)[:100]!r} stands twice in one object; {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{place}: not JSON that can be read ({error}); fetch the file again") from error


class _RepeatedKey(Exception):
    """A key that stands twice in one JSON object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys all differ; the parser's own keeps the last of equal ones."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _RepeatedKey(next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))
    return made


def _unreadable(path: Path, error: OSError) -> str:
    remedy = "point source.annotations of the subset at the annotation file"
    return f"{path}: cannot be read ({error.strerror}); {remedy}"
