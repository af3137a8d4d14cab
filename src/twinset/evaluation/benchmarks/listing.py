"""The benchmarks that can be named: how large their releases are, where these come from, and which lie in a folder."""

from collections import Counter
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut


def listing(folder: Path | None = None) -> list[dict[str, Any]]:
    """All benchmarks by name.

    Args:
        folder: in it and in its folders they are looked for; their annotations are read, and no image.

    Returns:
        Of each ``{"name", "title", "citation", "licence", "examples", "subsets", "expects", "obtained", "present"}``:
        ``examples`` of the release, None where it has no fixed number, and by subset; ``present``: a list of
        ``{"folder", "subsets", "left_out", "problem", "words"}``.

    Raises:
        WrongUse: there is no such folder.
    """
    places: list[Path] = []
    if folder is not None:
        if not folder.is_dir():
            raise WrongUse(f"{folder}: there is no such folder; name one that holds benchmarks")
        places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    return [_of(name, BENCHMARKS.find(name), places) for name in BENCHMARKS.kinds()]


def _of(name: str, reader: type[Reader], places: list[Path]) -> dict[str, Any]:
    present = [found for place in places if (found := _looked_at(name, reader, place)) is not None]
    return {
        "name": name,
        "title": str(reader.title),
        **{field: getattr(reader, field) for field in ("citation", "licence", "expects", "obtained")},
        "examples": sum(reader.counts.values()) or None,
        "subsets": dict(reader.counts),
        "present": present,
    }


def _looked_at(name: str, reader: type[Reader], place: Path) -> dict[str, Any] | None:
    """What of a benchmark lies in a folder; None where nothing does. Files that several benchmarks have count as one's
    where they can be read, or where the folder is called after it.
    """
    subsets, left_out = Counter[str](), Counter[str]()
    try:
        for item in open_benchmark(name, place, captions_only=True).examples():
            (left_out if isinstance(item, LeftOut) else subsets).update(
                [item.reason if isinstance(item, LeftOut) else item.subset]
            )
        problem = None
    except WrongUse as error:
        problem = str(error).removeprefix(f"{place}: ")
    if problem is not None and place.name.lower().replace("_", "-") != name:
        return None
    other = [
        f"{subset}: {subsets[subset]:,}, the release has {stated:,}"
        for subset, stated in reader.counts.items()
        if subset in subsets and subsets[subset] + (left_out.total() if len(subsets) == 1 else 0) != stated
    ]
    lost = [f"{count:,} left out: {reason}" for reason, count in left_out.items()]
    words = problem or "; ".join([f"{subsets.total():,} examples", *lost, *other])
    return {
        **{"folder": str(place), "subsets": dict(subsets), "left_out": dict(left_out)},
        **{"problem": problem, "words": words},
    }
