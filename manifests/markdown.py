"""Markdown of other people's text and of numbers, for cards: filters of their templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

LONGEST_CELL = 120  # characters of other people's text in a table


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells in which anything may stand."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def cell(text: str) -> str:
    """Somebody's text as a cell of a table, which it can neither end nor turn into HTML."""
    for mark, shown in (("&", "&amp;"), ("\\", "&#92;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(mark, shown)
    return text


def plain(text: str) -> str:
    """Somebody's text as Markdown that shows it as it stands, on one line: no mark-up, links or HTML."""
    return re.sub(r"([\\`*_\[\]<|~&$])", r"\\\1", " ".join(text.split()))


def short(text: str) -> str:
    """Somebody's text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def commas(count: int) -> str:
    """A count with commas between thousands."""
    return f"{count:,}"


def percent(share: float) -> str:
    """A share (0-1) in per cent."""
    return f"{share:.1%}"


def share(count: int, total: int) -> str:
    """A count in per cent of all."""
    return f"{100 * count / total:.1f} %" if total else "–"


def median(counts: Mapping[int, int]) -> int:
    """The lower median of values given as value -> how often."""
    left = (sum(counts.values()) + 1) // 2
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return 0


def middle_and_most(counts: Mapping[int, int]) -> str:
    """The lower median and the largest of values given as value -> how often."""
    return f"{median(counts):,}; {max(counts, default=0):,}"


def listed(counts: Mapping[str, int], longest: int = 6) -> str:
    """Names with their counts, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    names = ", ".join(f"{name} ({count:,})" for name, count in ordered[:longest])
    return names + (f" and {len(ordered) - longest} more" if len(ordered) > longest else "")


def sizes(counts: Mapping[tuple[int, int], int]) -> str:
    """Sizes of images, (width, height), with their counts."""
    return listed({f"{width} × {height}": count for (width, height), count in counts.items()})
