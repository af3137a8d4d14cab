"""Plots of a study as PNG, by matplotlib: differences with their intervals, and scores of the arms."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.science.findings import SHOWN, Findings
from studies.science.verdicts import Compared

#: Told apart by all eyes (Okabe and Ito, 2008).
COLOURS = {"supported": "#009e73", "refuted": "#d55e00", "undecided": "#7b8087", "not tested": "#56b4e9"}
SERIES = ("#0b5cad", "#d55e00", "#009e73")
INK, RULE, PAPER = "#1f2328", "#c4c8cc", "#ffffff"
ROW, LINE_HEIGHT, LEFT, ACROSS = 0.24, 0.3, 3.3, 2.6  # inches
DPI = 110


def plot_claims(found: Findings) -> bytes:
    """Differences of all comparisons: a column a test set, a line a comparison; a PNG."""
    design = found.study.design
    kinds = [[test for test in found.judged if design.tests[test].asks == asks] for asks in ("pairs", "queries")]
    kinds = [tests for tests in kinds if tests]
    lines = [len(found.judged[tests[0]]) for tests in kinds]
    across = max(len(tests) for tests in kinds)
    height = sum(lines) * ROW + len(kinds) * 0.75 + LINE_HEIGHT
    figure = _figure(LEFT + ACROSS * across, height)
    top = height - LINE_HEIGHT
    for tests, count in zip(kinds, lines, strict=True):
        bottom = top - 0.3 - count * ROW
        shared = None
        for column, test in enumerate(tests):
            box = (LEFT + column * ACROSS, bottom, ACROSS - 0.2, count * ROW)
            shared = _forest(figure, box, found.judged[test], design.tests[test].title, design.least, column, shared)
        top = bottom - 0.45
    for place, (verdict, colour) in enumerate(COLOURS.items()):
        figure.text((LEFT + place * 1.1) / (LEFT + ACROSS * across), 1 - 0.18 / height, verdict, color=colour, size=8)
    return _png(figure)


def _forest(
    figure: Any,
    box: tuple[float, float, float, float],
    compared: Sequence[Compared],
    title: str,
    least: float,
    column: int,
    shared: Any,
) -> Any:
    width, height = figure.get_size_inches()
    axes = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height), sharex=shared)
    places = np.arange(len(compared))[::-1]
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.axvline(least, color=RULE, linewidth=0.8, linestyle=(0, (3, 2)))
    for place, one in zip(places, compared, strict=True):
        colour = COLOURS[one.verdict]
        axes.plot(one.wide, [place, place], color=colour, linewidth=0.8)
        axes.plot([one.low, one.high], [place, place], color=colour, linewidth=3, solid_capstyle="butt", alpha=0.55)
        axes.plot(one.seeds, [place] * len(one.seeds), "|", color=INK, markersize=4, markeredgewidth=0.7)
        axes.plot([one.difference], [place], "o", color=colour, markersize=4.5)
    axes.set_yticks(places, [f"{one.better} − {one.than}, {one.figure}" for one in compared])
    axes.tick_params(axis="y", left=column == 0, labelleft=column == 0)
    axes.set_ylim(-0.6, len(compared) - 0.4)
    axes.set_title(title, fontsize=8.5, loc="left", color=INK)
    axes.set_xlabel("percentage points", fontsize=7.5, color=INK)
    _dress(axes)
    return axes


def plot_arms(found: Findings) -> bytes:
    """Scores of the arms on every test set: a column a test set, a line an arm, a colour a figure; a PNG."""
    design = found.study.design
    kinds = [[test for test in found.tests if design.tests[test].asks == asks] for asks in ("pairs", "queries")]
    kinds = [tests for tests in kinds if tests]
    of_test = {test: [one for one in found.scores if one.test == test] for test in found.tests}
    lines = [len(of_test[tests[0]]) for tests in kinds]
    across = max(len(tests) for tests in kinds)
    height = sum(lines) * ROW + len(kinds) * 1.0
    figure = _figure(LEFT + ACROSS * across, height)
    top = height
    for tests, count in zip(kinds, lines, strict=True):
        bottom = top - 0.5 - count * ROW
        names = SHOWN[design.tests[tests[0]].asks]
        for place, name in enumerate(names):
            share = (LEFT + place * 1.1) / (LEFT + ACROSS * across)
            figure.text(share, (top - 0.15) / height, name, color=SERIES[place], size=8)
        for column, test in enumerate(tests):
            width, _ = figure.get_size_inches()
            left = LEFT + column * ACROSS
            axes = figure.add_axes((left / width, bottom / height, (ACROSS - 0.2) / width, count * ROW / height))
            places = np.arange(count)[::-1]
            for place, one in zip(places, of_test[test], strict=True):
                for number, name in enumerate(names):
                    values, shift = one.figures[name], 0.2 * (1 - number)
                    axes.plot(values, [place + shift] * len(values), ".", color=SERIES[number], markersize=3, alpha=0.5)
                    axes.plot([np.mean(values)], [place + shift], "o", color=SERIES[number], markersize=4.5)
            titles = [design.arms[one.arm].title for one in of_test[test]]
            axes.set_yticks(places, titles)
            axes.tick_params(axis="y", left=column == 0, labelleft=column == 0)
            axes.set_ylim(-0.6, count - 0.4)
            axes.set_xlim(0, 100)
            axes.set_title(design.tests[test].title, fontsize=8.5, loc="left", color=INK)
            axes.set_xlabel("percent right", fontsize=7.5, color=INK)
            _dress(axes)
        top = bottom - 0.45
    return _png(figure)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor=PAPER, dpi=DPI)


def _dress(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(labelsize=7.5, colors=INK, length=2)
    axes.grid(axis="x", color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)


def _png(figure: Any) -> bytes:
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
