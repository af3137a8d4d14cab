"""Histograms of a subset as a PNG, by matplotlib."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from twinset.contracts.markdown import short

#: How often each whole number occurs, or names with their counts, most frequent first.
Counts = Mapping[Any, int]
#: Histograms over the same bins: their edges, and the counts of each bin by the line's name.
Steps = tuple[Sequence[float], Mapping[str, Sequence[int]]]
#: Panels side by side, by title.
Panels = Mapping[str, Counts | Steps]

MOST_BARS, MOST_NAMES, LONGEST_NAME = 40, 13, 30
BAR, RULE = "#3c7d5a", "#7b8087"
LINES = ("#b9bec4", "#c8803a", BAR)  # of steps, the last drawn on top


def histograms(panels: Panels) -> bytes:
    """A PNG of counts by title, side by side; the same bytes for the same numbers and version of matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    # The settings of whoever runs this must not decide the bytes.
    with matplotlib.rc_context(matplotlib.rcParamsDefault), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(6.2 * len(panels), 3.6), dpi=100, layout="constrained")
        for place, (title, counts) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), place)
            axes.set_title(title, fontsize=12, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=9, color=RULE)
            if isinstance(counts, tuple):
                _steps(axes, counts)
            elif not counts:
                axes.text(0.5, 0.5, "nothing kept", color=RULE, ha="center", transform=axes.transAxes)
                axes.set_axis_off()
            elif any(isinstance(key, str) for key in counts):
                _names(axes, counts)
            else:
                _bars(axes, counts)
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def bin_edges(counts: Mapping[int, int], most: int = MOST_BARS) -> list[int]:
    """First values of at most ``most`` bins of equal width that cover all keys, and the first value beyond them."""
    low, high = min(counts), max(counts)
    width = -(-(high - low + 1) // most)
    return list(range(low, high + width + 1, width))


def _bars(axes: Any, counts: Mapping[int, int]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    edges = [edge - 0.5 for edge in bin_edges(counts)]
    axes.hist(list(counts), bins=edges, weights=list(counts.values()), color=BAR, rwidth=0.85)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    width = edges[1] - edges[0]
    axes.set_xlim(edges[0] - width / 2, max(edges[-1] + width / 2, edges[0] + 8 * width))  # a single bar stays a bar


def _steps(axes: Any, steps: Steps) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    edges, lines = steps
    for (name, counts), colour in zip(lines.items(), LINES[-len(lines) :], strict=True):
        axes.stairs(counts, edges, color=colour, linewidth=1.3, label=name)
    axes.axvline(0, color=RULE, linewidth=0.6)
    axes.set_yscale("symlog", linthresh=10)  # a few pairs far from zero beside many at it
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=9, frameon=False)


def _names(axes: Any, counts: Mapping[str, int]) -> None:
    from matplotlib.ticker import MaxNLocator

    named = list(counts.items())[:MOST_NAMES]
    names = [printable(short(name), LONGEST_NAME) for name, _ in named]
    bars = axes.barh(range(len(named)), [count for _, count in named], color=BAR)
    axes.bar_label(bars, [f"{count:,}" for _, count in named], padding=3, fontsize=9, color=RULE)
    axes.set_yticks(range(len(named)), names, parse_math=False)
    axes.set_ylim(MOST_NAMES - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.margins(x=0.12)


def printable(text: str, longest: int) -> str:
    """Names are other people's: no control characters, no halves of surrogate pairs, of a length that fits."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return shown if len(shown) <= longest else shown[:longest] + "…"
