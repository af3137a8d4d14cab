"""``screening: true`` of a subset: people keep or drop its pairs before they are published.

It is short for three stages: NAME-candidates, the subset as it was; NAME-decisions, which asks people; and NAME, which
copies the pairs that they kept. Keys and bytes of these pairs are those of the subset without screening.
"""

from collections.abc import Mapping
from typing import Any

from twinset.contracts.doors import problem_at

SCREENING = "screening"
ASKS, COPIES = "pair-screening", "screened-pairs"  # the kinds of the two added sources


def expanded(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe of plain values with the stages that ``screening`` is short for; else `pydantic.ValidationError`."""
    stages, written = raw.get("stages") or {}, raw.get("subsets")
    if not isinstance(stages, Mapping) or not isinstance(written, Mapping):
        return raw  # said when the recipe is checked
    stages, subsets = dict(stages), dict(written)
    for name, subset in written.items():
        if not isinstance(subset, Mapping) or SCREENING not in subset:
            continue
        subsets[name] = plain = {key: value for key, value in subset.items() if key != SCREENING}
        settings = {} if subset[SCREENING] is True else subset[SCREENING]
        if settings is None or settings is False:
            continue
        candidates, decisions, problem = f"{name}-candidates", f"{name}-decisions", ""
        if not isinstance(settings, Mapping):
            problem = "write true, false, or settings of pair-screening such as overlap"
        elif {"kind", "pairs"} & settings.keys():
            problem = "people are asked about the pairs of this subset; remove kind and pairs"
        elif {candidates, decisions} & {*stages, *subsets}:
            problem = f"it adds the stages {candidates!r} and {decisions!r}, and the recipe has one; rename that"
        if problem:
            raise problem_at(("subsets", name, SCREENING), settings, problem)
        stored = {key: plain[key] for key in ("shard_size", "split", "encoding") if key in plain}
        shared = {key: value for key, value in stored.items() if key != "encoding"}
        stages[candidates] = {**plain, "known_as": name}
        stages[decisions] = {"source": {**settings, "kind": ASKS, "pairs": candidates}, **shared}
        subsets[name] = {"source": {"kind": COPIES, "pairs": candidates, "decisions": decisions}, **stored}
    return {**raw, "stages": stages, "subsets": subsets}


def as_written(raw: Mapping[str, Any], loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Where a setting of an expanded recipe stands in the recipe as it was written."""
    subsets = raw.get("subsets")
    for name, subset in subsets.items() if isinstance(subsets, Mapping) else ():
        if isinstance(subset, Mapping) and SCREENING in subset:
            if loc[:2] == ("stages", f"{name}-candidates"):
                return ("subsets", name, *loc[2:])
            if loc[:3] == ("stages", f"{name}-decisions", "source"):
                return ("subsets", name, SCREENING, *loc[3:])
    return loc
