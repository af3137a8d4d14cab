"""The tables of a report, from what was measured."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from math import isnan
from statistics import fmean, stdev

from twinset.evaluation.blind_probes.document import ProbedRow, Probes
from twinset.evaluation.metrics.correlation import LEAST, rank_correlation
from twinset.evaluation.metrics.figures import Figure, Measured
from twinset.evaluation.metrics.measure import ALL
from twinset.evaluation.report.published import MEAN, Column, Published
from twinset.evaluation.report.results import BenchmarkResults, ModelResults, SeedResults
from twinset.evaluation.report.tables import COUNTS, Cell, Row, Table

_PROMPT = re.compile(r"^([^:/]+)(?:/([^:]+))?:")


def prompts_table(results: BenchmarkResults) -> Iterator[Table]:
    """For each model that was asked by two prompts or more, a row a figure: where it is lowest and highest."""
    models: defaultdict[str, list[ModelResults]] = defaultdict(list)
    for model in results.models:
        if (model.scored.about.model_extra or {}).get("prompt"):
            models[_PROMPT.sub(r"\1:", model.name)].append(model)
    rows = []
    for name, asked in models.items():
        for figure in results.figures if len(asked) > 1 else ():
            found = sorted((one.all.figures[figure].value, _prompt(one)) for one in asked if figure in one.all.figures)
            if len(found) > 1:
                (low, lowest), (high, highest) = found[0], found[-1]
                cells: list[Cell] = [Figure(low), lowest, Figure(high), highest, Figure(high - low)]
                rows.append(Row([name, figure, len(found), *cells]))
    if rows:
        heads = ["model", "figure", "prompts", "lowest", "with", "highest", "with", "moves by"]
        folder = results.models[0].scored.folder
        yield Table(f"{folder}-prompts", f"{results.titled}: how far figures move with the prompt", heads, 2, rows)


def _prompt(model: ModelResults) -> str:
    return str((model.scored.about.model_extra or {})["prompt"])


KINDS = ("chance", "human", "published")
ORDERED_BY = ("group", "accuracy", "recall@1", "grounding")  # the first that a benchmark has
#: Figures of detectors by what probes call them.
DETECTED = {"text detector": "text detection", "image detector": "image detection"}
DETECTED |= {"i2t": "text", "t2i": "image", "group": "group"}
MISPRINT = 0.11  # percentage points that rounding does not explain, of averages with one decimal
RANDOM = "chance: what random answers to these questions get, on average"


def benchmark_tables(results: BenchmarkResults) -> list[Table]:
    """All tables of a benchmark: in all, by subset and category, beside papers, models compared, probes."""
    tables = [_whole(results)] if any(model.all.figures for model in results.models) else []
    for part in ("subset", "category"):
        if any(_parts(model, part) for model in results.models):
            tables.append(_by(results, part))
    tables += _beside_papers(results)
    tables += prompts_table(results)
    if results.differences:
        tables.append(_differences(results))
    if results.probes is not None:
        tables.append(_probes(results, results.probes))
        tables += _detectors(results, results.probes)
    return tables


def run_tables(run: Sequence[BenchmarkResults]) -> list[Table]:
    """What was left out, where anything was, and what scoring cost."""
    tables = []
    for name, title, counted in (
        ("left_out", "Examples that were not asked", "examples"),
        ("unanswered", "Questions that were not answered; each is a tie, strictly wrong", "questions"),
    ):
        rows = [
            Row([results.name, model.name, reason, count])
            for results in run
            for model in results.models
            for reason, count in sorted(getattr(model.scored.about, name).items())
        ]
        if rows:
            heads = ["benchmark", "model", "reason", counted]
            tables.append(Table(name.replace("_", "-"), title, heads, 2, rows))
    tables += _orders(run)
    costs = [(results.name, model.name, model.scored.cost) for results in run for model in results.models]
    names = list(
        dict.fromkeys(name for _, _, cost in costs for name, value in cost.items() if _cell(value) is not None)
    )
    rows = [Row([benchmark, model, *(_cell(cost.get(name)) for name in names)]) for benchmark, model, cost in costs]
    heads = ["benchmark", "model", *(name.replace("_", " ") for name in names)]
    return [*tables, Table("cost", "Cost of scoring", heads, 2, rows)]


def _orders(run: Sequence[BenchmarkResults]) -> list[Table]:
    """How alike benchmarks order the models that both were asked of."""
    rows = []
    for a, b in combinations(run, 2):
        first, second = (next((name for name in ORDERED_BY if name in one.figures), "") for one in (a, b))
        others = {model.name: model.all.figures for model in b.models}
        pairs = [
            (model.all.figures[first].value, others[model.name][second].value)
            for model in a.models
            if first in model.all.figures and second in others.get(model.name, {})
        ]
        if len(pairs) >= LEAST:
            tau = rank_correlation([of_a for of_a, _ in pairs], [of_b for _, of_b in pairs])
            shown = None if isnan(tau.value) else tau
            rows.append(Row([a.name, b.name, first, second, len(pairs), shown]))
    heads = ["benchmark", "other", "figure", "other figure", "models", "tau"]
    title = "Whether benchmarks order models alike: Kendall's tau-b, interval over models"
    return [Table("orders", title, heads, 4, rows)] if rows else []


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float) else None


def _asked(results: BenchmarkResults) -> list[tuple[str, ModelResults | SeedResults, str]]:
    """Models, and the means of those that are runs of one: as rows call them, results, and the kind of row."""
    runs = {run.name for one in results.seeds for run in one.runs}
    models = [(one.name, one, "seed" if one.name in runs else "model") for one in results.models]
    return [*models, *((f"{one.name}, mean of {len(one.runs)}", one, "model") for one in results.seeds)]


def _whole(results: BenchmarkResults) -> Table:
    rows = [Row([name, *_cells(model.all, results.figures)], kind) for name, model, kind in _asked(results)]
    for kind in KINDS:
        rows += [row for row in _beside(results) if row.kind == kind]
    heads = ["model", *COUNTS, *results.figures]
    return Table(f"{_folder(results)}-all", f"{results.titled}: all examples", heads, 1, rows)


def _beside(results: BenchmarkResults) -> Iterator[Row]:
    """Chance, people and papers on the whole benchmark."""
    asked_all = not results.whole or all(model.all.n == results.whole for model in results.models)
    beside = results.published if asked_all else ()
    rows = [row for row in beside if row.figures.get("", {}).keys() & set(results.figures)]
    # Where a paper prints chance, it is what follows from the questions, and one row is enough.
    if results.chance and not any(row.kind == "chance" for row in rows):
        yield _values(["chance"], results.chance[""], results.figures, "chance", RANDOM)
    found = list[tuple[Published, list[str]]]()
    for row in rows:
        # A paper prints some rows in several tables.
        same = (
            one for one in found if one[0].name == row.name and row.figures[""].items() <= one[0].figures[""].items()
        )
        if (first := next(same, None)) is not None:
            first[1].append(row.source)
        else:
            found.append((row, [row.source]))
    for row, sources in found:
        yield _values([row.name], row.figures[""], results.figures, row.kind, "; ".join(sources))


def _values(labels: Sequence[str], values: Mapping[str, float], figures: Sequence[str], kind: str, source: str) -> Row:
    """A row of figures without counts."""
    cells = [Figure(values[name]) if name in values else None for name in figures]
    return Row([*labels, *[None] * len(COUNTS), *cells], kind, source)


def _parts(model: ModelResults | SeedResults, part: str) -> Mapping[str, Measured]:
    return model.by_subset if part == "subset" else model.by_category


def _by(results: BenchmarkResults, part: str) -> Table:
    rows = []
    for value in dict.fromkeys(value for model in results.models for value in _parts(model, part)):
        for name, model, kind in _asked(results):
            if value in _parts(model, part):
                rows.append(Row([value, name, *_cells(_parts(model, part)[value], results.figures)], kind))
        if value in results.chance and part == "subset":
            rows.append(_values([value, "chance"], results.chance[value], results.figures, "chance", RANDOM))
    name = "subset" if part == "subset" else "subset / category"
    heads = [name, "model", *COUNTS, *results.figures]
    return Table(f"{_folder(results)}-by-{part}", f"{results.titled}: by {part}", heads, 2, rows)


def _cells(measured: Measured, figures: Sequence[str]) -> list[Cell]:
    return [measured.n, measured.groups, measured.ties, *(measured.figures.get(name) for name in figures)]


def _beside_papers(results: BenchmarkResults) -> Iterator[Table]:
    """A table for each published one that tells subsets apart: its columns, our models above its rows."""
    parted = [row for row in results.published if {part for part, _ in row.columns} - {""}]
    for number, (_, group) in enumerate(groupby(parted, key=lambda row: row.source), 1):
        papers = list(group)
        first = papers[0]
        means = [] if first.average_with else [*first.means]
        ours = []
        for name, model, kind in _asked(results):
            each = []
            for run in model.runs if isinstance(model, SeedResults) else [model]:
                found = {column: _pooled(run, first, *column) for column in first.columns}
                each.append([*found.values(), *(_mean(found, first.means[mean]) for mean in means)])
            ours.append(Row([name, *(_over(cells) for cells in zip(*each, strict=True))], kind))
        theirs = [
            Row([row.name, *_printed(row), *(_average(row, name) for name in means)], row.kind, _said(row))
            for row in papers
        ]
        heads = ["model", *(f"{part}\n{name}" for part, name in first.columns), *means]
        title = f"{results.titled}: beside published results"
        yield Table(f"{_folder(results)}-papers-{number}", title, heads, 1, [*ours, *theirs])


def _printed(row: Published) -> list[Cell]:
    cells = [row.figures.get(part, {}).get(name) for part, name in row.columns]
    return [None if cell is None else Figure(cell) for cell in cells]


def _mean(found: Mapping[Column, Cell], columns: Sequence[Column]) -> Cell:
    """A model's mean over some columns; None where it was not asked all of them."""
    values = [cell.value for column in columns if isinstance(cell := found[column], Figure)]
    return Figure(fmean(values)) if values and len(values) == len(columns) else None


def _over(cells: Sequence[Cell]) -> Cell:
    """One cell as it is; of several runs their mean and standard deviation."""
    values = [cell.value for cell in cells if isinstance(cell, Figure)]
    if len(cells) == 1 or len(values) < len(cells):
        return cells[0] if len(cells) == 1 else None
    return Figure(fmean(values), sd=stdev(values))


def _average(row: Published, name: str) -> Cell:
    """The mean of a row's cells, or as printed where they are not."""
    found = row.mean(name)
    if found is None and name == MEAN:
        found = row.average
    return None if found is None else Figure(found)


def _said(row: Published) -> str:
    """The source, and what it prints for the mean where that does not follow from the cells."""
    mean = row.mean(MEAN) if row.average is not None and not row.average_with else None
    wrong = row.average is not None and mean is not None and abs(row.average - mean) > MISPRINT
    return f"{row.source}; it prints {row.average} for the mean" if wrong else row.source


def _pooled(model: ModelResults, paper: Published, part: str, name: str) -> Cell:
    """A model's figure of the subsets or categories that a column of a paper is of; strict, without interval."""
    total, n = 0.0, 0
    for wanted in paper.pooled.get(part, [part]):
        found = [value for key, value in {**model.by_subset, **model.by_category}.items() if _is(key, wanted)]
        if not found or any(name not in measured.figures for measured in found):
            return None
        total += sum(measured.n * measured.figures[name].value for measured in found)
        n += sum(measured.n for measured in found)
    return Figure(total / n)


def _is(key: str, part: str) -> bool:
    """Whether the key of a subset, or that of a category, "SUBSET / CATEGORY", is of ``part``."""
    return key == part or key.endswith(f" / {part}")


def _differences(results: BenchmarkResults) -> Table:
    heads = ["model", "other", "figure", "n", "model %", "other %", "difference", "McNemar p", "p (Holm)"]
    rows = []
    for one in results.differences:
        line = one.figure
        difference = Figure(line.difference, None, line.low, line.high)
        cells: list[Cell] = [line.n, Figure(line.a), Figure(line.b), difference, line.p, line.p_holm]
        figure = line.figure if line.rows == ALL else f"{line.rows}: {line.figure}"
        rows.append(Row([one.a, one.b, figure, *cells]))
    return Table(
        f"{_folder(results)}-differences", f"{results.titled}: models compared on the same examples", heads, 3, rows
    )


def _probes(results: BenchmarkResults, probes: Probes) -> Table:
    heads = ["examples", "blind probe", "guess", "n", "groups", "right", "ties %", "solves"]
    rows = []
    for name, probed in {"all": probes.all, **probes.by}.items():
        for probe, one in probed.probes.items():
            # The interval is of the expected figure.
            right = Figure(one.expected, None, one.low, one.high)
            cells: list[Cell] = [name, probe, one.guess, one.n, one.groups, right, one.ties]
            rows.append(Row([*cells, "yes" if one.solves else "no"]))
    title = f"{results.titled}: what blind probes get right, ties broken at random"
    return Table(f"{_folder(results)}-probes", title, heads, 2, rows)


def _detectors(results: BenchmarkResults, probes: Probes) -> Iterator[Table]:
    """What detectors of synthetic captions and images get right (BiVLC, Table 4), by the categories that papers pool
    (Table 6), and by its own.
    """
    rows = {"all": probes.all, **probes.by}
    names = [name for name in DETECTED if name in probes.all.detectors]
    if not names:
        return
    pooled = dict[str, list[ProbedRow]]()
    for row in results.published:
        for part, wanted in row.pooled.items():
            if part not in rows:
                pooled[part] = [of for one in wanted for name, of in rows.items() if _is(name, one)]
    found = [Row(["all", "ours", probes.all.pairs, *(Figure(probes.all.detectors[name]) for name in names)])]
    figures = [DETECTED[name] for name in names]
    for one in results.published if results.whole in (0, probes.all.pairs) else ():
        values = one.figures.get("", {})
        if values.keys() & {"text detection", "image detection"}:
            cells = [Figure(values[name]) if name in values else None for name in figures]
            found.append(Row(["all", one.name, None, *cells], one.kind, one.source))
    every = {
        **{part: some for part, some in pooled.items() if some},
        **{name: [one] for name, one in probes.by.items()},
    }
    for part, some in every.items():
        if all(name in one.detectors for one in some for name in names):
            n = sum(one.pairs for one in some)
            means = [sum(one.pairs * one.detectors[name] for one in some) / n for name in names]
            found.append(Row([part, "ours", n, *map(Figure, means)]))
    heads = ["examples", "detectors", "n", *figures]
    title = f"{results.titled}: what detectors get right that compare no image with a caption"
    yield Table(f"{_folder(results)}-detectors", title, heads, 2, found)


def _folder(results: BenchmarkResults) -> str:
    return results.models[0].scored.folder
