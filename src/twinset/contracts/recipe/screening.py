"""``screening: true`` of a subset: people keep or drop its pairs before they are published.

It is short for three stages: NAME-candidates, the subset as it was; NAME-decisions, which asks people; and NAME, which
copies the pairs that they kept. Keys and bytes of these pairs are those of the subset without screening.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

SCREENING = "screening"
ASKS, COPIES = "pair-screening", "screened-pairs"  # the kinds of the two added sources


def expanded(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe of plain values with the stages that ``screening`` is short for.

    Raises `pydantic.ValidationError` when it is neither true, false nor settings, or a stage has the name of an added
    one.
    """
    subsets, stages = raw.get("subsets"), raw.get("stages")
    if not isinstance(subsets, Mapping) or not isinstance(stages, Mapping | None):
        return raw  # said when the recipe is checked
    added, left = dict[str, Any](stages or {}), dict[str, Any]()
    for name, subset in subsets.items():
        if not isinstance(subset, Mapping) or SCREENING not in subset:
            left[name] = subset
            continue
        plain = {key: value for key, value in subset.items() if key != SCREENING}
        asked = subset[SCREENING]
        if asked is None or asked is False:
            left[name] = plain
            continue
        if asked is not True and not isinstance(asked, Mapping):
            raise _wrong(name, asked, "write true, false, or settings of pair-screening such as overlap")
        candidates, decisions = names(name)
        if taken := next((one for one in (candidates, decisions) if one in added or one in subsets), ""):
            raise _wrong(name, asked, f"it adds a stage {taken!r}, and the recipe has one; rename that")
        settings = asked if isinstance(asked, Mapping) else {}
        if own := next((key for key in ("kind", "pairs") if key in settings), ""):
            raise _wrong(
                name, asked, f"{own!r} cannot be set: people are asked about the pairs of this subset; remove it"
            )
        shared = {key: plain[key] for key in ("shard_size", "split") if key in plain}
        stored = {"encoding": plain["encoding"]} if "encoding" in plain else {}
        added[candidates] = {**plain, "known_as": name}
        added[decisions] = {"source": {**settings, "kind": ASKS, "pairs": candidates}, **shared}
        left[name] = {"source": {"kind": COPIES, "pairs": candidates, "decisions": decisions}, **shared, **stored}
    return {**raw, "stages": added, "subsets": left}


def names(subset: str) -> tuple[str, str]:
    """The stages of a screened subset: its candidates, and the decisions on them."""
    return f"{subset}-candidates", f"{subset}-decisions"


def as_written(raw: Mapping[str, Any], loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Where a setting of an expanded recipe stands in the recipe as it was written."""
    subsets = raw.get("subsets")
    if not isinstance(subsets, Mapping) or loc[:1] != ("stages",):
        return loc
    for name, subset in subsets.items():
        candidates, decisions = names(name)
        if not isinstance(subset, Mapping) or SCREENING not in subset:
            continue
        if loc[1:2] == (candidates,):
            return ("subsets", name, *loc[2:])
        if loc[1:3] == (decisions, "source"):
            return ("subsets", name, SCREENING, *loc[3:])
    return loc


def _wrong(subset: str, value: Any, problem: str) -> ValidationError:
    error = PydanticCustomError("screening", problem)
    where = ("subsets", subset, SCREENING)
    return ValidationError.from_exception_data("Recipe", [{"type": error, "loc": where, "input": value}])
