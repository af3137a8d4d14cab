"""Markdown of other people's text and of numbers, for cards: filters of their templates."""

import re
from collections.abc import Iterable, Mapping

_CELL = str.maketrans({"&": "&amp;", "\\": "&#92;", "<": "&lt;", "|": "\\|", "\n": " "})
LONGEST_CELL = 120  # characters of other people's text in a table


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells in which anything may stand."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def cell(text: str) -> str:
    """Somebody's text as a cell of a table, which it can neither end nor turn into HTML."""
    return text.translate(_CELL)


def plain(text: str) -> str:
    """Somebody's text as Markdown that shows it as it stands, on one line: no mark-up, links or HTML."""
    return re.sub(r"([\\`*_\[\]<|~&$])", r"\\\1", " ".join(text.split()))


def short(text: str) -> str:
    """Somebody's text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def share(count: int, total: int) -> str:
    """A count in per cent of all."""
    return f"{100 * count / total:.1f} %" if total else "–"


def middle_and_most(counts: Mapping[int, int]) -> str:
    """The lower median and the largest of values given as value -> how often."""
    left, median = (sum(counts.values()) + 1) // 2, 0
    for value in sorted(counts):
        if left > 0:
            left, median = left - counts[value], value
    return f"{median:,}; {max(counts, default=0):,}"


def ranked(counts: Mapping[str, int], most: int | None = None) -> dict[str, int]:
    """At most ``most`` names with their counts, the most frequent first, equals in the order of the alphabet."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most])


def listed(counts: Mapping[str, int], longest: int = 6) -> str:
    """Names with their counts, the most frequent first."""
    names = ", ".join(f"{name} ({count:,})" for name, count in ranked(counts, longest).items())
    return names + (f" and {len(counts) - longest} more" if len(counts) > longest else "")


def sizes(counts: Mapping[tuple[int, int], int]) -> str:
    """Sizes of images, (width, height), with their counts."""
    return listed({f"{width} × {height}": count for (width, height), count in counts.items()})
