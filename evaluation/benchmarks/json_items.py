"""JSON files of any size, one record at a time, and the fields of a record."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from twinset.manifests.errors import WrongUse

CHUNK = 1 << 20  # characters
LONGEST = 1 << 26  # characters of one record; the longest real one, a video of Action Genome, has under a million
SPACE = " \t\r\n"
GOES_ON = ("", ".", "e", "E", "+", "-")  # what can follow what looks like a whole number
REFETCH = "fetch the file again"


class _Broken(ValueError):
    """What is wrong at one place of a file."""


def json_items(path: Path, member: str = "") -> Iterator[tuple[str, Any]]:
    """Records of a JSON array or object, in the order of the file; one record is held at a time.

    Args:
        path: of the file, UTF-8.
        member: of the outer object, whose records are read; the outer value itself when empty.

    Yields:
        The key of each record (of arrays: its number from 0), and its value.

    Raises:
        WrongUse: the file is absent, not JSON, cut short, or has a key twice; names the file and the record.
    """
    last = ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            text = _Text(stream)
            if member:
                _descend(text, member)
            for last, value in _items(text):
                yield last, value
            if not member and text.peek():
                raise _Broken("something follows the value")
    except UnicodeDecodeError as error:
        raise WrongUse(f"{path}: not UTF-8 after {_after(last)} ({error.reason}); {REFETCH}") from error
    except (_Broken, RecursionError) as error:
        raise WrongUse(f"{path}: not JSON after {_after(last)} ({error}); {REFETCH}") from error
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot be read ({error.strerror}); make it readable, or name another folder"
        ) from error


def text_of(record: Any, field: str, where: str) -> str:
    """The text in a field of a record; raises `WrongUse` naming both when there is none."""
    value = object_of(record, where).get(field)
    if not isinstance(value, str) or not value.strip():
        raise WrongUse(f"{where}: no text in the field {field!r} ({str(value)[:50]!r}); {REFETCH}")
    return value


def object_of(record: Any, where: str) -> Mapping[str, Any]:
    """A record that must be an object; raises `WrongUse` otherwise."""
    if not isinstance(record, dict):
        raise WrongUse(f"{where}: not an object with named fields; {REFETCH}")
    return record


def list_of(record: Any, field: str, where: str) -> list[Any]:
    """The list in a field of a record; raises `WrongUse` naming both when there is none."""
    value = object_of(record, where).get(field)
    if not isinstance(value, list):
        raise WrongUse(f"{where}: no list in the field {field!r}; {REFETCH}")
    return value


def _after(last: str) -> str:
    return f"record {last!r}" if last else "its start"


class _Text:
    """A window on a stream of JSON text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held, self._at, self._ended = "", 0, False

    def peek(self) -> str:
        """The next character that is not space; empty at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in SPACE:
                self._at += 1
            if self._at < len(self._held) or self._ended:
                return self._held[self._at : self._at + 1]
            self._more()

    def take(self, expected: str) -> str:
        """The next character, which must be one of those expected."""
        found = self.peek()
        if not found or found not in expected:
            raise _Broken(f"{found!r} instead of {' or '.join(expected)}" if found else "the file ends too early")
        self._at += 1
        return found

    def value(self) -> Any:
        """The next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except json.JSONDecodeError as error:
                if self._ended or len(self._held) - self._at > LONGEST:
                    raise _Broken(error.msg) from error
            except ValueError as error:  # a repeated key, a number of thousands of digits
                raise _Broken(str(error)) from error
            else:
                # A number at the end of the window may go on behind it: of "0." and "1e-" the parser takes 0 and 1.
                if self._ended or self._held[end : end + 1] not in GOES_ON:
                    self._refuse_half_characters(value, end)
                    self._at = end
                    return value
            self._more()

    def _refuse_half_characters(self, value: Any, end: int) -> None:
        """Half a surrogate pair is valid JSON and no text: it could not be written into a table of scores."""
        if "\\ud" in self._held[self._at : end].lower():
            try:
                json.dumps(value, ensure_ascii=False).encode("utf-8")
            except UnicodeEncodeError as error:
                raise _Broken("half a surrogate pair") from error

    def _more(self) -> None:
        # As much as is held already, so that a long value is parsed a few times only.
        left = self._held[self._at :]
        read = self._stream.read(max(CHUNK, len(left)))
        self._held, self._at, self._ended = left + read, 0, not read


def _items(text: _Text) -> Iterator[tuple[str, Any]]:
    opened = text.take("[{")
    closing = "]" if opened == "[" else "}"
    if text.peek() == closing:
        text.take(closing)
        return
    seen: set[str] = set()
    number = 0
    while True:
        key = str(number)
        if opened == "{":
            key = _key(text, seen)
        yield key, text.value()
        number += 1
        if text.take("," + closing) == closing:
            return


def _key(text: _Text, seen: set[str]) -> str:
    if text.peek() != '"':
        raise _Broken(f"{text.peek()!r} instead of a key")
    key = str(text.value())
    if key in seen:
        raise _Broken(f"the key {key[:100]!r} occurs twice")
    seen.add(key)
    text.take(":")
    return key


def _descend(text: _Text, member: str) -> None:
    """Go to the value of a member of the outer object."""
    text.take("{")
    seen: set[str] = set()
    while text.peek() != "}":
        if _key(text, seen) == member:
            return
        text.value()
        if text.take(",}") == "}":
            break
    raise _Broken(f"no member {member!r}")


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object for `json` whose keys all differ, else ValueError; the parser's own keeps the last of equal ones."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in made if keys.count(key) > 1)!r}")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=unrepeated)
