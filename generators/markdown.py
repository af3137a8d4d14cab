"""Text from templates, most of it Markdown for cards, and their filters: other people's text, and numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

from twinset.contracts.source import SourceSettings

if TYPE_CHECKING:
    import jinja2

#: Control characters, and the marks that would turn the text behind them round.
_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")
_CONTROL |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "")
#: Behind a backslash each stands for itself; what begins HTML does so where a page is not read as Markdown either.
_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|~$"} | {"&": "&amp;", "<": "&lt;"})
#: What GitHub and Hugging Face turn into a link without any mark-up: addresses, people, issues.
_LINKED = re.compile(r"://|www\.|\w@|@\w|#\d", re.IGNORECASE)
_STARTS_BLOCK = re.compile(r"^((?=[#+\->=])|\d{1,9}(?=[.)]))")
LONGEST_CELL = 120  # characters of other people's text in a table


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells in which anything may stand."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


class Markdown(str):
    """Text that is Markdown already, of our own making: `cell` leaves it as it is."""


def cell(text: str) -> str:
    """Somebody's text as a cell of a table, which it can neither end nor turn into mark-up, links or HTML."""
    return text if isinstance(text, Markdown) else " ".join(_shown(word, "\\|") for word in _words(text))


def plain(text: str) -> str:
    """Somebody's text as Markdown that shows it as it stands, on one line: no mark-up, links or HTML."""
    return _STARTS_BLOCK.sub(r"\1\\", " ".join(_shown(word, "|") for word in _words(text)))


def no_formula(value: Any) -> Any:
    """A cell of a CSV file: spreadsheets run text that begins so as a formula, but for an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def fence(text: str) -> str:
    """The line that begins and ends a block of code which holds the text."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def _words(text: str) -> list[str]:
    return text.translate(_CONTROL).split()


def _shown(word: str, pipe: str) -> str:
    """A word that is shown as it is; as code where renderers would link it, since they do so behind any escape."""
    if not _LINKED.search(word):
        return word.translate(_ESCAPED)
    marks = "`" * (1 + max(map(len, re.findall("`+", word)), default=0))
    space = " " if word[0] == "`" or word[-1] == "`" else ""
    return f"{marks}{space}{word.replace('|', pipe)}{space}{marks}"


def short(text: str) -> str:
    """Somebody's text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def share(count: int, total: int) -> str:
    """A count in per cent of all."""
    return f"{100 * count / total:.1f} %" if total else "–"


def middle_and_most(counts: Mapping[int, int]) -> str:
    """The lower median and the largest of values given as value -> how often."""
    values = list(Counter(counts).elements()) or [0]
    return f"{median_low(values):,}; {max(values):,}"


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


def code(text: str) -> Markdown:
    """Somebody's name for a thing as code, which can end neither itself nor the cell that it stands in."""
    return Markdown(f"`{' '.join(text.translate(_CONTROL).replace('`', ' ').replace('|', ' ').split())}`")


def statements(text: str) -> Markdown:
    """What a Markdown text says in bold at the beginning of its list items, in one line."""
    bold = re.findall(r"^\* \*\*(.+?)[,:.]*\*\*", text, re.MULTILINE | re.DOTALL)
    return Markdown(" ".join(f"{' '.join(statement.split())}." for statement in bold))


_NAMED = (cell, code, fence, listed, middle_and_most, plain, share, short, sizes, statements)
#: Others: a count with commas between thousands; a share (0-1) in per cent; a number without needless digits.
_FILTERS: dict[str, Callable[..., str]] = {function.__name__: function for function in _NAMED}
_FILTERS |= {"commas": "{:,}".format, "percent": "{:.1%}".format, "number": "{:g}".format}


@cache
def templates(*folders: Path) -> jinja2.Environment:
    """The templates of some folders; of those with one name, that of the first folder."""
    import jinja2  # a plan does without

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= _FILTERS | {"card_block": card_block}
    return environment


def card_block(source: SourceSettings, name: str, reports: Mapping[str, Any] | None = None) -> str:
    """Markdown of a block of a source's card template; empty without one. reports: JSON of the class's, by name."""
    if source.card_template is None:
        return ""
    template = templates(source.card_template.parent).get_template(source.card_template.name)
    context = template.new_context({"source": source, "reports": reports or {}})
    return "".join(template.blocks[name](context)) if name in template.blocks else ""
