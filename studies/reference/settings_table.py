"""Tables of settings: name, what may be written, default, and what the docstring of their class says."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from studies.reference.explained import explanations
from twinset.contracts.doors import OfKind, Registry
from twinset.contracts.licences.terms import StatedTerms
from twinset.contracts.source import Place, Reads

Rows = Sequence[Sequence[str]]

_PLACES = {
    "file": "file",
    "folder": "folder",
    "any": "file or folder",
    "model": "model: folder or name",
    "words": "name or file",
    "cache": "path",
    "decisions": "path",
    "server": "URL",
}
_PLAIN = {str: "text", int: "integer", float: "number", bool: "`true` or `false`", Path: "path", Any: "any value"}
_MOST_KINDS = 8  # that a table lists
_NO_BOUND = 10**12  # numbers from here on are technical limits
_BOUNDS = (
    (annotated_types.Ge, "ge", "≥"),
    (annotated_types.Gt, "gt", ">"),
    (annotated_types.Le, "le", "≤"),
    (annotated_types.Lt, "lt", "<"),
)


#: Settings of every source, which the page explains once.
EVERYWHERE = ("credit", "source_url")


def settings_table(settings: type[BaseModel]) -> str:
    """The table of all settings of a class but its kind; a sentence where it has none."""
    said = explanations(settings, settings.model_fields)
    rows = [
        (f"`{name}`", _type(field), _default(field), said.get(name, ""))
        for name, field in settings.model_fields.items()
        if name != "kind" and not (name in EVERYWHERE and issubclass(settings, StatedTerms))
    ]
    return table(("setting", "type", "default", "meaning"), rows) if rows else "No settings."


def unexplained(settings: type[BaseModel]) -> list[str]:
    """Settings that no docstring explains."""
    said = explanations(settings, settings.model_fields)
    return [name for name in settings.model_fields if name != "kind" and not said.get(name)]


def own(registry: Registry[Any]) -> list[str]:
    """The kinds of a door that twinset brings itself, whatever else is installed here."""
    return [kind for kind in registry.kinds() if is_own(registry.find(kind))]


def is_own(one: type) -> bool:
    """Whether a class is twinset's."""
    return one.__module__.startswith("twinset.")


def nested(settings: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Settings that are written within settings: the name of each, and every class of twinset's that fits there."""
    for name, field in settings.model_fields.items():
        door = _door(field)
        within = map(door.find, _kinds(door)) if door is not None else _within(field.annotation)
        for one in within:
            if isinstance(one, type) and issubclass(one, BaseModel) and is_own(one):
                yield name, one


def _door(field: FieldInfo) -> OfKind | None:
    """The mark of a setting whose settings come from a door."""
    marks = (*field.metadata, *(mark for one in _within(field.annotation) for mark in getattr(one, "__metadata__", ())))
    return next((mark for mark in marks if isinstance(mark, OfKind)), None)


def _kinds(door: OfKind) -> list[str]:
    return sorted({*own(door.registry), *door.own})


def kind_of(settings: type[BaseModel]) -> str:
    """The name that settings are chosen by, of those that have a kind."""
    field = settings.model_fields.get("kind")
    return str(get_args(field.annotation)[0]) if field is not None and get_args(field.annotation) else ""


def table(head: Sequence[str], rows: Rows) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _type(field: FieldInfo) -> str:
    marks = [*field.metadata, *(m for one in _within(field.annotation) for m in getattr(one, "__metadata__", ()))]
    optional = " or `null`" if type(None) in get_args(field.annotation) else ""
    place = next((mark for mark in marks if isinstance(mark, Place)), None)
    named = "stage" if any(isinstance(mark, Reads) for mark in marks) else _PLACES[place.what] if place else ""
    if named:
        several = get_origin(_bare(field.annotation)) is tuple
        return (f"list: {named}" if several else named) + optional
    if (door := _door(field)) is not None:
        listed = ", ".join(f"`{kind}`" for kind in _kinds(door))
        kinds = (
            f"settings of kind {listed}" if len(_kinds(door)) <= _MOST_KINDS else f"settings of {door.registry.what}s"
        )
        return (f"list: {kinds}" if get_origin(_bare(field.annotation)) is tuple else kinds) + optional
    for mark in marks:
        if isinstance(mark, AfterValidator) and isinstance(door := getattr(mark.func, "__self__", None), Registry):
            return ", ".join(f"`{kind}`" for kind in door.own()) + optional
    return _written(field.annotation) + optional + _bounds(marks)


def _written(annotation: Any) -> str:
    annotation = _bare(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inner)
    if origin in (Union, UnionType):
        kinds = [one for one in map(_bare, inner) if isinstance(one, type) and issubclass(one, BaseModel)]
        if kinds and len(kinds) == len(inner):
            return "settings of kind " + ", ".join(f"`{kind_of(one)}`" for one in kinds)
        return " or ".join(_written(one) for one in inner)
    if origin is tuple:
        return f"list: {_written(inner[0])}" if inner[-1] is ... else ", ".join(_written(one) for one in inner)
    if origin is dict:
        return f"mapping: {_written(inner[0])} to {_written(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "settings"
    return str(getattr(annotation, "__name__", annotation))


def _bare(annotation: Any) -> Any:
    """A type without what ``Annotated`` adds and without None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType) and type(None) in get_args(annotation):
        left = [one for one in get_args(annotation) if one is not type(None)]
        return _bare(left[0]) if len(left) == 1 else Union[tuple(left)]  # noqa: UP007 - of a list known at run time
    return annotation


def _within(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _within(inner)


def _bounds(marks: Sequence[Any]) -> str:
    found = [
        f"{sign} {as_written(getattr(mark, name))}"
        for mark in _flat(marks)
        for bound, name, sign in _BOUNDS
        if isinstance(mark, bound) and abs(getattr(mark, name)) < _NO_BOUND
    ]
    return f", {', '.join(dict.fromkeys(found))}" if found else ""


def _flat(marks: Sequence[Any]) -> Iterator[Any]:
    for mark in marks:
        yield from _flat(mark.metadata) if isinstance(mark, FieldInfo) else (mark,)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is PydanticUndefined:
        return "see meaning"
    return f"`{as_written(field.default)}`"


def as_written(value: Any) -> str:
    """A value as a recipe has it: settings as a flow mapping, lists in brackets."""
    if isinstance(value, BaseModel):
        return as_written(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_written, value)) + "]"
    if isinstance(value, Enum):
        return as_written(value.value)
    if isinstance(value, str | Path):
        text = str(value)
        return text if text and text == text.strip() and not set(text) & set(",:{}[]#&*!|>'\"%@`") else json.dumps(text)
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value)
