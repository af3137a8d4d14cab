"""The benchmarks that can be named: how large their releases are, where these come from, and which lie in a folder."""

from collections import Counter
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut

SAID = ("title", "citation", "licence", "expects", "obtained")


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
    if folder is not None and not folder.is_dir():
        raise WrongUse(f"{folder}: there is no such folder; name one that holds benchmarks")
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())] if folder is not None else []
    listed = []
    for name in BENCHMARKS.kinds():
        reader = BENCHMARKS.find(name)
        present = [there for place in places if (there := _looked_at(name, reader, place)) is not None]
        size = {"examples": sum(reader.counts.values()) or None, "subsets": dict(reader.counts)}
        about = {field: getattr(reader, field) for field in SAID}
        listed.append({"name": name, **about, **size, "present": present})
    return listed


def _looked_at(name: str, reader: type[Reader], place: Path) -> dict[str, Any] | None:
    """What of a benchmark lies in a folder; None where nothing does. Files that several benchmarks have count as one's
    where they can be read, or where the folder is called after it.
    """
    subsets, left_out, problem = Counter[str](), Counter[str](), None
    try:
        for item in open_benchmark(name, place, captions_only=True).examples():
            if isinstance(item, LeftOut):
                left_out[item.reason] += 1
            else:
                subsets[item.subset] += 1
    except WrongUse as error:
        problem = str(error).removeprefix(f"{place}: ")
        if place.name.lower().replace("_", "-") != name:
            return None
    words = [f"{subsets.total():,} examples", *(f"{count:,} left out: {reason}" for reason, count in left_out.items())]
    for subset, stated in reader.counts.items():
        read = subsets[subset] + (left_out.total() if len(subsets) == 1 else 0)
        if subset in subsets and read != stated:
            words.append(f"{subset}: {subsets[subset]:,}, the release has {stated:,}")
    counts = {"subsets": dict(subsets), "left_out": dict(left_out)}
    return {"folder": str(place), **counts, "problem": problem, "words": problem or "; ".join(words)}
