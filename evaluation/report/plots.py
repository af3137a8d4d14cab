"""Lines of distributions as SVG, by matplotlib, light and dark; the same bytes for the same numbers."""

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

from twinset.evaluation.report.distributions import Panel

INK, RULE = "#1f2328", "#7b8087"
#: Told apart by all eyes (Okabe and Ito, 2008).
LINES = ("#0b5cad", "#d55e00", "#009e73", "#aa4499", "#8c6d00", "#56a0d0", "#555555")
#: What each colour is on dark paper.
DARK = {
    INK: "#e7e5e0", RULE: "#9aa0a6",
    **dict(zip(LINES, ("#8cc4ff", "#ffb487", "#63d3a8", "#e49fd6", "#e0c34c", "#b7dcf5", "#bbbbbb"), strict=True)),
}  # fmt: skip
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)))  # after all colours are used
ACROSS = 4
LONGEST_NAME = 46
WIDTH, HEIGHT = 3.2, 2.2  # inches of a panel
LEFT, RIGHT, TOP, BOTTOM, LINE = 0.5, 0.15, 0.3, 0.5, 0.2  # inches


def plot(panels: Sequence[Panel], zero: bool = False) -> bytes:
    """An SVG of panels in rows, with one legend for the names that they share; zero: a vertical line there."""
    import matplotlib
    from matplotlib.figure import Figure

    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(name for panel in panels for name in panel.y))
    legend = LINE * (-(-len(names) // max(across, 2)) + 1)
    width, height = WIDTH * max(across, 2), HEIGHT * down + legend
    stream = io.BytesIO()
    # The settings of whoever runs this must not decide the bytes, nor a random salt the names within the file.
    settings = {**matplotlib.rcParamsDefault, "svg.hashsalt": "twinset", "svg.fonttype": "path"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(width, height))
        shown: dict[str, Any] = {}
        for place, panel in enumerate(panels):
            left, top = WIDTH * (place % across) + LEFT, HEIGHT * (place // across) + TOP
            inner = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
            axes = figure.add_axes(
                (left / width, 1 - (top + inner[1]) / height, inner[0] / width, inner[1] / height), facecolor="none"
            )
            axes.set_title(_printable(panel.title), fontsize=9, loc="left", color=INK, parse_math=False)
            axes.set_xlabel(panel.axis, fontsize=7.5, color=RULE)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["left", "bottom"]].set_color(RULE)
            axes.tick_params(labelsize=7, colors=RULE)
            if zero:
                axes.axvline(0, color=RULE, linewidth=0.6)
            for name, values in panel.y.items():
                number = names.index(name)
                colour, dash = LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]
                (line,) = axes.plot(panel.x, values, color=colour, linestyle=dash, linewidth=1.3)
                shown.setdefault(name, line)
            axes.set_ylim(bottom=0)
        box = figure.legend(
            [shown[name] for name in names],
            [_printable(name) for name in names],
            loc="lower left",
            ncols=max(across, 2),
            fontsize=7.5,
            frameon=False,
            labelcolor=INK,
        )
        for text in box.get_texts():
            text.set_parse_math(False)
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def on_dark(svg: bytes) -> bytes:
    """The same picture for dark paper."""
    colours = re.compile("|".join(DARK).encode())
    return colours.sub(lambda found: DARK[found.group().decode()].encode(), svg)


def _printable(text: str) -> str:
    """Names are other people's: no control characters, no halves of surrogate pairs, not longer than a panel."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return shown if len(shown) <= LONGEST_NAME else shown[:LONGEST_NAME] + "…"
