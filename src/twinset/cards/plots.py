"""Histograms of a subset as a PNG, by matplotlib."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from twinset.generators.markdown import short

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
    from matplotlib.ticker import StrMethodFormatter

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
                axes.text(0.5, 0.5, "nothing counted", color=RULE, ha="center", transform=axes.transAxes)
                axes.set_axis_off()
            elif any(isinstance(key, str) for key in counts):
                _names(axes, counts)
            else:
                axes.hist([*counts], bin_edges(counts), weights=[*counts.values()], color=BAR, rwidth=0.85)
                axes.locator_params(integer=True, min_n_ticks=1)
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def bin_edges(counts: Mapping[int, int]) -> Any:
    """Edges between whole numbers of at most `MOST_BARS` bins of equal width, which cover all keys."""
    low, high = min(counts), max(counts)
    width = -(-(high - low + 1) // MOST_BARS)
    return np.arange(low, high + width + 1, width) - 0.5


def _steps(axes: Any, steps: Steps) -> None:
    edges, lines = steps
    for (name, counts), colour in zip(lines.items(), LINES[-len(lines) :], strict=True):
        axes.stairs(counts, edges, color=colour, linewidth=1.3, label=name)
    axes.axvline(0, color=RULE, linewidth=0.6)
    axes.set_yscale("symlog", linthresh=10)  # a few pairs far from zero beside many at it
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=9, frameon=False)


def _names(axes: Any, counts: Mapping[str, int]) -> None:
    named = list(counts.items())[:MOST_NAMES]
    bars = axes.barh(range(len(named)), [count for _, count in named], color=BAR)
    axes.bar_label(bars, [f"{count:,}" for _, count in named], padding=3, fontsize=9, color=RULE)
    axes.set_yticks(range(len(named)), [printable(short(name), LONGEST_NAME) for name, _ in named], parse_math=False)
    axes.set_ylim(MOST_NAMES - 0.5, -0.5)
    axes.locator_params("x", integer=True)
    axes.margins(x=0.12)


def printable(text: str, longest: int) -> str:
    """Names are other people's: no control characters, no halves of surrogate pairs, of a length that fits."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return shown if len(shown) <= longest else shown[:longest] + "…"
