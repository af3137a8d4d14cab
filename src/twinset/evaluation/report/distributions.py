"""How equivariance scores are spread: how far models are from equivariance. Plots of any lines.

Plots are SVG by matplotlib: the same bytes for the same numbers.
"""

import base64
import io
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.cards.plots import RULE, printable
from twinset.evaluation.metrics.matching import DIRECTIONS, SCORES, equivariance
from twinset.evaluation.report.model_answers import ModelAnswers

FEWEST_BINS, MOST_BINS = 6, 60
EQUIVARIANCE = "equivariance score / deviation of scores"  # axis

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over the same axis, by name. x: (n,). y: shares or percent, each (n,)."""

    title: str
    axis: str
    x: Values
    y: Mapping[str, Values]


def equivariance_panels(scored: Sequence[ModelAnswers]) -> list[Panel]:
    """A panel a subset and change, a line a model (EqBen, Figures 6 and 13).

    What a change of the text does to a score should not depend on the image, nor on the text what a change of the image
    does. Models score in units of their own, so each is divided by the standard deviation of its scores. Single images
    have none.
    """
    panels = defaultdict[str, dict[str, Values]](dict)
    for answers in scored:
        if not answers.scores or answers.asked != "matching":
            continue
        rows = answers.rows()
        scores, subsets = np.asarray(rows.select(SCORES).to_numpy().T, np.float64), rows["subset"].to_numpy()
        for change, score in zip(DIRECTIONS, equivariance(*scores), strict=True):
            for subset in {*subsets[np.isfinite(score)]}:
                here = score[subsets == subset] / (np.nanstd(scores) or 1.0)
                panels[f"{subset}: {change} changes"][answers.about.model] = here
    return [_histogram(title, EQUIVARIANCE, lines) for title, lines in sorted(panels.items())]


def _histogram(title: str, axis: str, lines: Mapping[str, Values]) -> Panel:
    """Shares of each line by bin. Half a percent of all values at either end are put into the outermost bins."""
    known = {name: values[np.isfinite(values)] for name, values in lines.items()}
    every = np.concatenate([*known.values()])
    low, high = np.quantile(every, (0.005, 0.995)) if every.size else (0.0, 0.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    fewest = min(map(len, known.values()))
    bins = np.linspace(low, high, int(np.clip(np.ceil(2 * fewest ** (1 / 3)), FEWEST_BINS, MOST_BINS)) + 1)  # Rice
    counts = {name: np.histogram(np.clip(values, low, high), bins)[0] for name, values in known.items()}
    shares = {name: line / max(line.sum(), 1) for name, line in counts.items()}
    return Panel(title, axis, (bins[1:] + bins[:-1]) / 2, shares)


INK = "#1f2328"
#: Told apart by all eyes (Okabe and Ito, 2008); on dark paper the page turns their lightness round.
LINES = ("#0b5cad", "#d55e00", "#009e73", "#aa4499", "#8c6d00", "#56a0d0", "#555555")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)))  # after all colours are used
ACROSS, LONGEST_NAME = 4, 46  # panels side by side; letters of a name
WIDTH, HEIGHT, LINE = 3.2, 2.2, 0.2  # inches of a panel, and of a line of the legend


def plot(panels: Sequence[Panel]) -> str:
    """The data URI of an SVG of panels in rows, with one legend for the names that they share."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    across = max(min(len(panels), ACROSS), 2)
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(name for panel in panels for name in panel.y))
    stream, lines = io.BytesIO(), {}
    # The settings of whoever runs this must not decide the bytes, nor a random salt the names within the file.
    settings = {**matplotlib.rcParamsDefault, "svg.hashsalt": "twinset", "svg.fonttype": "path"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        size = WIDTH * across, HEIGHT * down + LINE * (-(-len(names) // across) + 1)
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08))
        for place, panel in enumerate(panels, 1):
            axes = figure.add_subplot(down, across, place, facecolor="none")
            axes.set_title(printable(panel.title, LONGEST_NAME), fontsize=9, loc="left", color=INK, parse_math=False)
            axes.set_xlabel(panel.axis, fontsize=7.5, color=RULE)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["left", "bottom"]].set_color(RULE)
            axes.tick_params(labelsize=7, colors=RULE)
            axes.locator_params(axis="x", nbins=5)  # more are wider than they are apart
            if panel.axis == EQUIVARIANCE:
                axes.axvline(0, color=RULE, linewidth=0.6)
            for name, values in panel.y.items():
                number = names.index(name)
                colour, dash = LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]
                (lines[name],) = axes.plot(panel.x, values, color=colour, linestyle=dash, linewidth=1.3)
            axes.axhline(0, color="none")  # so that the margin above is one of the whole height
            axes.set_ylim(bottom=0)
        legend = figure.legend(
            [lines[name] for name in names], [printable(name, LONGEST_NAME) for name in names],
            loc="outside lower left", ncols=across, fontsize=7.5, frameon=False, labelcolor=INK,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
