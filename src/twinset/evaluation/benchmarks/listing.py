"""The benchmarks that can be named: how large their releases are, where these come from, and which lie in a folder."""

from collections import Counter
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.examples import LeftOut


def listing(folder: Path | None = None) -> list[dict[str, Any]]:
    """All benchmarks by name.

    Args:
        folder: in it and in its folders they are looked for; their annotations are read, and no image.

    Returns:
        Of each ``name``, ``title``, ``citation``, ``licence``, ``expects``, ``obtained``; ``examples`` of its release,
        None without a fixed number, and by ``subsets``; and ``present``: ``[{"folder", "subsets", "left_out"}]``.

    Raises:
        WrongUse: there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise WrongUse(f"{folder}: there is no such folder; name one that holds benchmarks")
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())] if folder is not None else []
    listed, fields = [], ("name", "title", "citation", "licence", "expects", "obtained")
    for name in BENCHMARKS.kinds():
        reader = BENCHMARKS.find(name)
        size = {"examples": sum(reader.counts.values()) or None, "subsets": dict(reader.counts)}
        present = list(filter(None, (_looked_at(name, place) for place in places)))
        listed.append({**{field: getattr(reader, field) for field in fields}, **size, "present": present})
    return listed


def _looked_at(name: str, place: Path) -> dict[str, Any] | None:
    """What of a benchmark lies in a folder; None where nothing of it can be read: files of one may be called as those
    of another.
    """
    subsets, left_out = Counter[str](), Counter[str]()
    try:
        for item in open_benchmark(name, place, captions_only=True).examples():
            if isinstance(item, LeftOut):
                left_out[item.reason] += 1
            else:
                subsets[item.subset] += 1
    except WrongUse:
        if subsets or not left_out:  # the file is another's, or damaged
            return None
    return {"folder": str(place), "subsets": dict(subsets), "left_out": dict(left_out)}
