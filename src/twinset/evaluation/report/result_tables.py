"""The tables of a report, from its frame of results."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean, stdev

from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.report.published import Column, Published
from twinset.evaluation.report.results import ALL, CATEGORY, SUBSET, BenchmarkResults
from twinset.evaluation.report.tables import COUNTS, Cell, Row, Table

RANDOM = "chance: what random answers to these questions get on average, ties broken at random"
Made = Iterator[tuple[str, str, list[str], int, list[Row]]]  # name, title, heads, labels, rows


def benchmark_tables(results: BenchmarkResults) -> list[Table]:
    """All tables of a benchmark: in all, by subset and category, beside papers, models compared, probes."""
    made = [made for maker in (_parts, _beside_papers, _differences, _probes) for made in maker(results)]
    return [
        Table(f"{results.name}-{name}", f"{results.titled}: {title}", heads, labels, rows)
        for name, title, heads, labels, rows in made
        if rows
    ]


def _models(results: BenchmarkResults, part: str) -> Iterator[tuple[str, str, str, str, Measured]]:
    """Of a part of the frame: label, model, how a row calls it, and the kind of row."""
    for label, model, kind, measured in results.measured(part):
        name = f"{model}, mean of {len(results.seeds[model])}" if kind == "mean" else model
        yield label, model, name, "seed" if kind == "seed" else "model", measured


def _parts(results: BenchmarkResults) -> Made:
    """All examples, with chance, people and papers; then subsets and categories."""
    figures, heads = results.figures, ["model", *COUNTS, *results.figures]
    whole = [_row([name], kind, total, figures) for _, _, name, kind, total in _models(results, ALL) if total.figures]
    yield ALL, "all examples", heads, 1, [*whole, *_beside(results)] if whole else []
    for part, head in ((SUBSET, "subset"), (CATEGORY, "subset / category")):
        rows = defaultdict[str, list[Row]](list)
        for label, _, name, kind, measured in _models(results, part):
            rows[label].append(_row([label, name], kind, measured, figures))
        for label in rows if part == SUBSET else ():
            if label in results.chance:
                rows[label].append(_values([label, "chance"], results.chance[label], figures, "chance", RANDOM))
        if part == SUBSET and len(rows) == 1:
            continue  # the same as all examples
        every = [row for of_label in rows.values() for row in of_label]
        yield f"by-{part}", f"by {part}", [head, *heads], 2, every


def _row(labels: list[str], kind: str, part: Measured, figures: Sequence[str]) -> Row:
    return Row([*labels, part.n, part.groups, part.ties, *(part.figures.get(name) for name in figures)], kind)


def _values(labels: list[str], values: Mapping[str, float], figures: Sequence[str], kind: str, source: str) -> Row:
    """A row of figures without counts."""
    cells = [Figure(values[name]) if name in values else None for name in figures]
    return Row([*labels, *[None] * len(COUNTS), *cells], kind, source)


def _beside(results: BenchmarkResults) -> list[Row]:
    """Chance, people and papers on the whole benchmark; a row that papers print in several tables is one."""
    whole = not results.whole or all(model.n == results.whole for model in results.models)
    printed = [row for row in results.published if whole and row.figures.get("", {}).keys() & {*results.figures}]
    rows = list[tuple[str, str, dict[str, float], list[str]]]()
    if chance := results.chance.get(""):
        # What a paper prints is for models that score pairs; one row is enough.
        printed = [row for row in printed if row.kind != "chance"]
        rows.append(("chance", "chance", dict(chance), [RANDOM]))
    for row in sorted(printed, key=lambda row: ("chance", "human", "published").index(row.kind)):
        same = [above for above in rows if above[1] == row.name and row.figures[""].items() <= above[2].items()]
        if same:
            same[0][3].append(row.source)
        else:
            rows.append((row.kind, row.name, row.figures[""], [row.source]))
    return [_values([name], of, results.figures, kind, "; ".join(sources)) for kind, name, of, sources in rows]


def _beside_papers(results: BenchmarkResults) -> Made:
    """A table for each published one that tells subsets apart: its columns, our models above its rows."""
    measured = defaultdict[str, dict[str, Measured]](dict)
    for label, model, _, subset in (*results.measured(SUBSET), *results.measured(CATEGORY)):
        measured[model][label] = subset
    parted = [row for row in results.published if {part for part, _ in row.columns} - {""}]
    for number, (_, group) in enumerate(groupby(parted, key=lambda row: row.source), 1):
        first, *other_papers = group
        rows = []
        for _, model, name, kind, _ in _models(results, ALL):
            runs = [_columns(measured[run], first) for run in results.seeds.get(model, [model])]
            rows.append(Row([name, *map(_mean, zip(*runs, strict=True))], kind))
        for paper in (first, *other_papers):
            rows.append(Row([paper.name, *(_mean([cell]) for cell in paper.cells())], paper.kind, paper.source))
        heads = ["model", *(f"{part}\n{name}" for part, name in first.columns), *first.means]
        yield f"papers-{number}", "beside published results", heads, 1, rows


def _columns(measured: Mapping[str, Measured], paper: Published) -> list[float | None]:
    """A model's figures of the columns of a paper, and of its means; None where it was not asked all of them."""
    figures = defaultdict[str, dict[str, float]](dict)
    for part, name in paper.columns:
        if (value := _pooled(measured, paper, (part, name))) is not None:
            figures[part][name] = value
    return replace(paper, figures=figures, average=None).cells()


def _mean(values: Sequence[float | None]) -> Figure | None:
    """The value of one run as it is; of several their mean and standard deviation."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return Figure(fmean(known), sd=stdev(known) if len(known) > 1 else None)


def _pooled(measured: Mapping[str, Measured], paper: Published, column: Column) -> float | None:
    """The figure of the subsets or categories that a column of a paper is of, over their rows."""
    part, name = column
    parts = [[subset for label, subset in measured.items() if _is(label, of)] for of in paper.pooled.get(part, [part])]
    every = [subset for of_part in parts for subset in of_part]
    if not all(parts) or not all(name in subset.figures for subset in every):
        return None
    figures = [subset.figures[name] for subset in every]
    return sum(figure.rows * figure.value for figure in figures) / sum(figure.rows for figure in figures)


def _is(label: str, part: str) -> bool:
    """Whether a subset, or a category "SUBSET / CATEGORY", is of ``part``."""
    return label == part or label.endswith(f" / {part}")


def _differences(results: BenchmarkResults) -> Made:
    rows = []
    for line in results.differences:
        figure = line["figure"] if line["rows"] == ALL else f"{line['rows']}: {line['figure']}"
        difference = Figure(line["difference"], None, line["low"], line["high"])
        cells: list[Cell] = [line["n"], Figure(line["a"]), Figure(line["b"]), difference, line["p"], line["p_holm"]]
        rows.append(Row([line["model"], line["other"], figure, *cells], "part"))
    heads = ["model", "other", "figure", "n", "model %", "other %", "difference", "McNemar p", "p (Holm)"]
    yield "differences", "models compared on the same examples", heads, 3, rows


def _probes(results: BenchmarkResults) -> Made:
    """What blind probes get right; and what detectors of synthetic captions and images do (BiVLC, Table 4)."""
    if results.probes is None:
        return
    every = {ALL: results.probes.all, **results.probes.by}
    rows = []
    for name, probed in every.items():
        for probe, guessed in probed.probes.items():
            right = Figure(guessed.expected, None, guessed.low, guessed.high)  # the interval is of the expected figure
            cells: list[Cell] = [name, probe, guessed.guess, guessed.n, guessed.groups, right, guessed.ties]
            rows.append(Row([*cells, "yes" if guessed.solves else "no"], "part"))
    heads = ["examples", "blind probe", "guess", "n", "groups", "right", "ties %", "solves"]
    yield "probes", "what blind probes get right, ties broken at random", heads, 2, rows
    names = [*results.probes.all.detectors]
    rows = [
        Row([part, probed.pairs, *(Figure(probed.detectors[name]) for name in names)], "part")
        for part, probed in every.items()
        if names and probed.detectors.keys() >= {*names}
    ]
    title = "what detectors get right that compare no image with a caption"
    yield "detectors", title, ["examples", "n", *names], 1, rows


def run_tables(run: Sequence[BenchmarkResults]) -> list[Table]:
    """What was left out, and what was not answered, where anything was."""
    rows = defaultdict[str, list[Row]](list)
    for results in run:
        for model in results.models:
            labels, about = [results.name, model.name], model.scored.about
            rows["left-out"] += [Row([*labels, *counted]) for counted in sorted(about.left_out.items())]
            rows["unanswered"] += [Row([*labels, *counted]) for counted in sorted(about.unanswered.items())]
    titles = {
        "left-out": ("Examples that were not asked", "examples"),
        "unanswered": ("Questions that were not answered; each is a tie, strictly wrong", "questions"),
    }
    return [
        Table(name, title, ["benchmark", "model", "reason", counted], 2, rows[name])
        for name, (title, counted) in titles.items()
        if rows[name]
    ]
