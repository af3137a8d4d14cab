"""``{same_as: KEY.PATH}`` as the value of a setting: the value of another one, so that it is set in one place.

``photos: {same_as: subsets.bivlc.source.photos}`` stands for whatever that setting is, also where ``--set`` changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

SAME_AS = "same_as"
MOST_STEPS = 10  # from a reference to a reference


def dereferenced(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe of plain values in which each reference is the value that it names.

    Raises `pydantic.ValidationError` when there is no such setting, or references lead in a circle.
    """
    return {key: _within(value, raw, (key,)) for key, value in raw.items()}


def _within(value: Any, raw: Mapping[str, Any], place: tuple[int | str, ...]) -> Any:
    if isinstance(value, list):
        return [_within(one, raw, (*place, number)) for number, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if value.keys() != {SAME_AS}:
        return {key: _within(one, raw, (*place, key)) for key, one in value.items()}
    found: Any = value
    for _ in range(MOST_STEPS):
        if not isinstance(found, Mapping) or found.keys() != {SAME_AS}:
            return found
        found = _value_at(found[SAME_AS], raw, place)
    raise _wrong(place, value, f"{value[SAME_AS]} leads back to itself; write the value in one place")


def _value_at(path: Any, raw: Mapping[str, Any], place: tuple[int | str, ...]) -> Any:
    here: Any = raw
    for key in path.split(".") if isinstance(path, str) else ():
        if not isinstance(here, Mapping) or key not in here:
            raise _wrong(place, path, f"same as {path}, which the recipe does not set; correct the key path")
        here = here[key]
    if here is raw or (isinstance(here, Mapping) and here.keys() != {SAME_AS}):
        raise _wrong(place, path, "same_as names one setting, such as subsets.bivlc.source.photos; write its key path")
    return here


def _wrong(place: tuple[int | str, ...], value: Any, problem: str) -> ValidationError:
    # Braces are the placeholders of pydantic's templates.
    error = PydanticCustomError("same_as", problem.replace("{", "(").replace("}", ")"))
    return ValidationError.from_exception_data("Recipe", [{"type": error, "loc": place, "input": value}])
