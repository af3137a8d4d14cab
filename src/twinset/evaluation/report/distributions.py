"""How scores are spread: of pairs that belong together and that do not, and how far a model is from equivariance.

Files are read batch by batch; what is kept are histograms, drawn as SVG by matplotlib, light and dark: the same bytes
for the same numbers.
"""

import base64
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twinset.cards.plots import RULE, printable
from twinset.evaluation.metrics.matching import DIRECTIONS, SCORES, equivariance
from twinset.evaluation.report.model_answers import ModelAnswers, floats

FEWEST_BINS, MOST_BINS = 6, 60
#: Seconds and ranks up to which curves are shown.
LONGEST, DEEPEST = 3.0, 20
#: Subsets with panels of their own: more can hardly be read, and take seconds to draw and megabytes of the page.
MOST_SUBSETS = 24

EQUIVARIANCE, RAW_EQUIVARIANCE = "equivariance score / deviation of scores", "equivariance score"  # axes
PROBABILITY = "P(yes)"  # likewise
BINS = 10  # of probabilities, as is usual for the calibration error

Values = NDArray[np.float64]
_Parts = dict[tuple[str, str], Values]  # by panel and line


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines over the same axis, by name. x: (n,). y: shares or percent, each (n,)."""

    title: str
    axis: str
    x: Values
    y: Mapping[str, Values]


def score_panels(scored: Sequence[ModelAnswers]) -> list[Panel]:
    """A panel a model: its scores of pairs that belong together and of those that do not, as shares of each."""

    def values(place: int, table: pa.Table) -> _Parts:
        panel = scored[place].about.model
        return {(panel, "match"): _of(table, "s00", "s11"), (panel, "mismatch"): _of(table, "s01", "s10")}

    return [Panel(title, "score", *lines) for title, lines in _histograms(scored, values).items()]


def largest_subsets(scored: Sequence[ModelAnswers]) -> tuple[set[str], int]:
    """Those with the most rows of two images, at most `MOST_SUBSETS`; how many subsets have such rows."""
    rows = Counter[str]()
    for one in scored:
        for table in _batches(one.path, ("subset", *SCORES[2:])):
            counted = table.drop_null().column("subset").value_counts().to_pylist()
            rows.update({pair["values"]: pair["counts"] for pair in counted})
    return {*sorted(rows, key=lambda name: (-rows[name], name))[:MOST_SUBSETS]}, len(rows)


def calibration_panels(scored: Sequence[ModelAnswers]) -> list[Panel]:
    """A panel a model whose scores are probabilities of a match: of all pairs of image and caption that it gave about
    this probability, the share that match. Its title has the expected calibration error (Guo et al., 2017), in percent.
    """
    panels = []
    for one in scored:
        if one.about.threshold is None:
            continue
        known, right, given = (np.zeros(BINS) for _ in range(3))
        inside = True
        for table in _batches(one.path, SCORES):
            for names, match in ((("s00", "s11"), 1.0), (("s01", "s10"), 0.0)):
                values = _of(table, *names)
                inside = inside and bool(((values >= 0) & (values <= 1)).all())
                places = np.clip((values * BINS).astype(int), 0, BINS - 1)
                known += np.bincount(places, minlength=BINS)
                right += match * np.bincount(places, minlength=BINS)
                given += np.bincount(places, values, minlength=BINS)
        if inside and known.any():
            with np.errstate(invalid="ignore"):
                share, mean = right / known, given / known
            error = 100 * np.nansum(known * np.abs(share - mean)) / known.sum()
            middles = (np.arange(BINS) + 0.5) / BINS
            lines = {"share that match": share, "as it should be": middles}
            panels.append(Panel(f"{one.about.model}: error {error:.1f} %", PROBABILITY, middles, lines))
    return panels


def equivariance_panels(scored: Sequence[ModelAnswers], shown: set[str], raw: bool = False) -> list[Panel]:
    """A panel a shown subset and change, a line a model (EqBen, Figures 6 and 13): the narrower about 0, the better.

    What a change of the text does to a score should not depend on the image, nor on the text what a change of the image
    does. Models score in units of their own, so each is divided by the standard deviation of its scores, unless
    ``raw``, as EqBen shows them. Single images have none.
    """
    deviations = [1.0 if raw else _deviation(one.path) for one in scored]

    def values(place: int, table: pa.Table) -> _Parts:
        subsets, parts = np.array(table.column("subset").to_pylist(), dtype=object), {}
        scores = equivariance(*(floats(table, name) for name in SCORES))
        for change, score in zip(DIRECTIONS, scores, strict=True):
            for subset in sorted(set(subsets) & shown):
                here = score[subsets == subset] / deviations[place]
                if (here := here[np.isfinite(here)]).size:
                    parts[f"{subset}: {change} changes", scored[place].about.model] = here
        return parts

    axis = RAW_EQUIVARIANCE if raw else EQUIVARIANCE
    return [Panel(title, axis, *lines) for title, lines in sorted(_histograms(scored, values).items())]


def recall_panels(scored: Sequence[ModelAnswers]) -> list[Panel]:
    """Percent of queries with a target among the first k, strictly: a tie counts as a higher score."""
    ranks = np.arange(1, DEEPEST + 1, dtype=np.float64)
    return [Panel("recall", "K", ranks, {one.about.model: _recall(one.path, ranks) for one in scored})]


def error_panels(scored: Sequence[ModelAnswers]) -> list[Panel]:
    """Percent of boundaries that are found to within some seconds; of gaps that score the same, the mean."""
    seconds = np.linspace(0, LONGEST, 121)
    curves = {}
    for one in scored:
        found, total = np.zeros(len(seconds)), 0
        for table in _batches(one.path, ("errors",)):
            for errors in table.column("errors").to_pylist():
                found += (np.asarray(errors)[:, None] <= seconds).mean(axis=0)
                total += 1
        curves[one.about.model] = 100 * found / max(total, 1)
    return [Panel("boundaries found", "seconds", seconds, curves)]


def _recall(path: Path, ranks: Values) -> Values:
    found, total = np.zeros(len(ranks)), 0
    for table in _batches(path, ("higher", "tied")):
        above = floats(table, "higher") + floats(table, "tied")
        found += (above[:, None] < ranks).sum(axis=0)
        total += len(above)
    return 100 * found / max(total, 1)


def _histograms(
    scored: Sequence[ModelAnswers], values: Callable[[int, pa.Table], _Parts]
) -> dict[str, tuple[Values, dict[str, Values]]]:
    """By panel the middles of its bins and, by line, the share of values in each bin.

    Half a percent of the values at either end are put into the outermost bins.
    """
    columns = ("subset", *SCORES)
    spread: dict[str, list[Values]] = {}
    sizes: dict[str, Counter[str]] = {}
    for place, one in enumerate(scored):
        for table in _batches(one.path, columns):
            for (panel, line), part in values(place, table).items():
                spread.setdefault(panel, []).append(_spread(part))
                sizes.setdefault(panel, Counter())[line] += len(part)
    edges = {panel: _edges(np.concatenate(parts), min(sizes[panel].values())) for panel, parts in spread.items()}
    counts: dict[str, dict[str, Values]] = {panel: {} for panel in edges}
    for place, one in enumerate(scored):
        for table in _batches(one.path, columns):
            for (panel, line), part in values(place, table).items():
                bins = edges[panel]
                counted, _ = np.histogram(np.clip(part, bins[0], bins[-1]), bins)
                counts[panel][line] = counts[panel].get(line, np.zeros(len(bins) - 1)) + counted
    return {
        panel: ((bins[1:] + bins[:-1]) / 2, {name: line / max(line.sum(), 1) for name, line in counts[panel].items()})
        for panel, bins in edges.items()
    }


def _edges(values: Values, n: int) -> Values:
    """Edges of bins; their number is Rice's rule, 2 n^(1/3), for the line with the fewest values."""
    low, high = np.quantile(values, (0.005, 0.995)) if values.size else (0.0, 0.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, int(np.clip(np.ceil(2 * n ** (1 / 3)), FEWEST_BINS, MOST_BINS)) + 1)


def _spread(values: Values) -> Values:
    """At most a thousand order statistics of a batch, which is as much as quantiles of a picture need."""
    ordered = np.sort(values)
    return ordered[np.unique(np.linspace(0, len(ordered) - 1, 1000).astype(int))] if len(ordered) else ordered


def _deviation(path: Path) -> float:
    count, total, squares = 0, 0.0, 0.0
    for table in _batches(path, SCORES):
        values = _of(table, *table.column_names)
        count, total, squares = count + len(values), total + values.sum(), squares + np.square(values).sum()
    variance = squares / count - (total / count) ** 2 if count else 0.0
    return float(np.sqrt(max(variance, 0.0))) or 1.0


def _batches(path: Path, columns: tuple[str, ...]) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(columns=list(columns)):
        yield pa.Table.from_batches([batch])


def _of(table: pa.Table, *names: str) -> Values:
    """The values of several columns that are there."""
    values: Values = np.concatenate([floats(table, name) for name in names])
    return np.asarray(values[np.isfinite(values)])


INK = "#1f2328"
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
            axes.set_title(printable(panel.title, LONGEST_NAME), fontsize=9, loc="left", color=INK, parse_math=False)
            axes.set_xlabel(panel.axis, fontsize=7.5, color=RULE)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["left", "bottom"]].set_color(RULE)
            axes.tick_params(labelsize=7, colors=RULE)
            axes.locator_params(axis="x", nbins=5)  # more are wider than they are apart
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
            [printable(name, LONGEST_NAME) for name in names],
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


def on_both_papers(panels: Sequence[Panel]) -> dict[str, str]:
    """A plot for ``light`` and for ``dark`` paper as data URIs."""
    light = plot(panels, zero=panels[0].axis.startswith(RAW_EQUIVARIANCE))
    uris = [f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}" for svg in (light, on_dark(light))]
    return {"light": uris[0], "dark": uris[1]}
