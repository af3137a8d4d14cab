"""The benchmarks that can be named: how large their releases are, where these come from, and which lie in a folder."""

from collections import Counter
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.examples import LeftOut

SAID = ("title", "citation", "licence", "expects", "obtained")


def listing(folder: Path | None = None) -> list[dict[str, Any]]:
    """All benchmarks by name.

    Args:
        folder: in it and in its folders they are looked for; their annotations are read, and no image.

    Returns:
        Of each ``{"name", "title", "citation", "licence", "examples", "subsets", "expects", "obtained", "present"}``:
        ``examples`` of the release, None where it has no fixed number, and by subset; ``present``: a list of
        ``{"folder", "subsets", "left_out"}``.

    Raises:
        WrongUse: there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise WrongUse(f"{folder}: there is no such folder; name one that holds benchmarks")
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())] if folder is not None else []
    listed = []
    for name in BENCHMARKS.kinds():
        reader = BENCHMARKS.find(name)
        present = [there for place in places if (there := _looked_at(name, place)) is not None]
        size = {"examples": sum(reader.counts.values()) or None, "subsets": dict(reader.counts)}
        listed.append({"name": name, **{field: getattr(reader, field) for field in SAID}, **size, "present": present})
    return listed


def _looked_at(name: str, place: Path) -> dict[str, Any] | None:
    """What of a benchmark lies in a folder; None where nothing of it can be read: files of one may be called as those
    of another.
    """
    subsets, left_out = Counter[str](), Counter[str]()
    try:
        for item in open_benchmark(name, place, captions_only=True).examples():
            counted, of = (left_out, item.reason) if isinstance(item, LeftOut) else (subsets, item.subset)
            counted[of] += 1
    except WrongUse:
        if subsets or not left_out:  # the file is another's, or damaged
            return None
    return {"folder": str(place), "subsets": dict(subsets), "left_out": dict(left_out)}
