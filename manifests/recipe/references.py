"""``{same_as: KEY.PATH}`` as the value of a setting: the value of another one, so that it is set in one place.

``photos: {same_as: subsets.bivlc.source.photos}`` stands for whatever that setting is, also where ``--set`` changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

SAME_AS = "same_as"
Place = tuple[int | str, ...]  # of a value: keys and places in lists
MOST_STEPS = 10  # from a reference to a reference
MOST_FOLLOWED = 10_000  # in a recipe: lists of references to lists of references would fill the memory


def dereferenced(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe of plain values in which each reference is the value that it names.

    Raises `pydantic.ValidationError` when there is no such setting, or references lead in a circle.
    """
    left = iter(range(MOST_FOLLOWED))
    return {key: _within(value, raw, (key,), left) for key, value in raw.items()}


def _within(value: Any, raw: Mapping[str, Any], place: Place, left: Iterator[int], steps: int = 0) -> Any:
    """A value without references. left: references that may still be followed; steps: those that led here."""
    if isinstance(value, list):
        return [_within(one, raw, (*place, number), left, steps) for number, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if value.keys() != {SAME_AS}:
        return {key: _within(one, raw, (*place, key), left, steps) for key, one in value.items()}
    if next(left, None) is None:
        raise _wrong(place, value, f"same_as is followed more than {MOST_FOLLOWED:,} times; write some values out")
    if steps == MOST_STEPS:
        raise _wrong(place, value, f"{value[SAME_AS]} leads back to itself; write the value in one place")
    return _within(_value_at(value[SAME_AS], raw, place), raw, place, left, steps + 1)


def _value_at(path: Any, raw: Mapping[str, Any], place: Place) -> Any:
    here: Any = raw
    for key in path.split(".") if isinstance(path, str) else ():
        if isinstance(here, list) and key.isdecimal() and len(key) < 10 and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, Mapping) and key in here and here.keys() != {SAME_AS}:
            here = here[key]
        else:
            raise _wrong(place, path, f"same as {path}, which the recipe does not set; correct the key path")
    if here is raw or (isinstance(here, Mapping) and here.keys() != {SAME_AS}):
        raise _wrong(place, path, "same_as names one setting, such as subsets.bivlc.source.photos; write its key path")
    return here


def _wrong(place: Place, value: Any, problem: str) -> ValidationError:
    # Braces are the placeholders of pydantic's templates.
    error = PydanticCustomError("same_as", problem.replace("{", "(").replace("}", ")"))
    return ValidationError.from_exception_data("Recipe", [{"type": error, "loc": place, "input": value}])
