"""The records of a JSON file, and the fields of a record."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import read_json

REFETCH = "fetch the file again"


def json_items(path: Path, member: str = "") -> Iterator[tuple[str, Any]]:
    """Records of a JSON array or object, in the order of the file.

    Args:
        path: of the file, UTF-8, which is read whole.
        member: of the outer object, whose records are read; the outer value itself when empty.

    Yields:
        The key of each record (of arrays: its number from 0), and its value.

    Raises:
        WrongUse: as `generators.annotation_files.read_json`; or there is no such member, or it holds no records.
    """
    held = read_json(path)
    if member:
        if member not in object_of(held, str(path)):
            raise WrongUse(f"{path}: no member {member!r}; {REFETCH}")
        held = held[member]
    if isinstance(held, list):
        yield from ((str(number), record) for number, record in enumerate(held))
    else:
        yield from object_of(held, str(path)).items()


def text_of(record: Any, field: str, where: str) -> str:
    """The text in a field of a record; raises `WrongUse` naming both when there is none."""
    fields = object_of(record, where)
    value = fields.get(field)
    if not isinstance(value, str) or not value.strip():
        found = repr(str(value)[:50]) if field in fields else f"it has {', '.join(map(str, fields))[:200]}"
        raise WrongUse(f"{where}: no text in the field {field!r} ({found}); {REFETCH}")
    return value


def number_of(record: Any, field: str, where: str) -> int:
    """The whole number in a field of a record; raises `WrongUse` naming both when there is none."""
    value = object_of(record, where).get(field)
    if not isinstance(value, int):
        raise WrongUse(f"{where}: no number in the field {field!r}; {REFETCH}")
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
