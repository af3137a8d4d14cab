"""Tables of a report, and each as CSV, as Markdown and as LaTeX."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinset.evaluation.metrics.figures import Figure
from twinset.generators.markdown import Markdown, no_formula, plain
from twinset.generators.markdown import cell as markdown_cell
from twinset.generators.markdown import table as markdown_table

COUNTS = ("n", "groups", "ties %")  # columns beside figures
#: Figures as papers head them; those that are not here have no place in a compact table.
SHORT = {"text": "I2T", "image": "T2I", "group": "Group", "accuracy": "Acc.", "min": "min", "acc": "acc"}
SHORT |= dict.fromkeys(("text_detection", "text detector"), "Text det.") | {"i2t": "I2T", "t2i": "T2I"}
SHORT |= dict.fromkeys(("image_detection", "image detector"), "Img det.")
SHORT |= {"grounding": "Acc.", "mean": "Avg", **{f"recall@{k}": f"R@{k}" for k in (1, 2, 3, 5, 10)}}
SHORT |= {name: name for name in ("natural", "synthetic", "mean_kendall", "mean_spearman", "overlap@5")}
BEST, SECOND = "best", "second"
LATEX, MARKDOWN = {BEST: r"\textbf{{{}}}", SECOND: r"\underline{{{}}}"}, {BEST: "**{}**", SECOND: "<u>{}</u>"}
Cell = str | int | float | Figure | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line. kind: ``model``; ``seed``, one of several; ``part`` of one; ``chance``, ``human``, ``published``."""

    cells: Sequence[Cell]
    kind: str = "model"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. name: of its files, no ending. heads: of the columns, a line or two; the first ``labels`` hold names.

    LaTeX and the page show a name that repeats that of the row above as an empty cell; CSV repeats it.
    """

    name: str
    title: str
    heads: Sequence[str]
    labels: int
    rows: Sequence[Row]

    @property
    def sources(self) -> list[str]:
        """Where rows are from, each once."""
        return list(dict.fromkeys(row.source for row in self.rows if row.source))

    def shown(self) -> Iterator[tuple[Row, Sequence[Cell]]]:
        """Rows with their cells, without names that repeat those above."""
        before: Sequence[Cell] = ()
        for row in self.rows:
            same = 0
            while same < self.labels - 1 and before and before[same] == row.cells[same]:
                same += 1
            yield row, [*[""] * same, *row.cells[same:]]
            before = row.cells


def compact(table: Table, figures: Collection[str] = ()) -> Table:
    """The figures of a table that papers print, under their heads, and those of ``figures``, without counts and
    intervals; chance goes first, and of seeds there is their mean.
    """
    names = SHORT | {name: SHORT.get(name, name) for name in figures}
    short = ["\n".join([*lines[:-1], names.get(lines[-1], "")]) for lines in (head.split("\n") for head in table.heads)]
    heads = [*table.heads[: table.labels], *short[table.labels :]]
    kept = [place for place, head in enumerate(heads) if head.split("\n")[-1]]
    parts = list(dict.fromkeys(row.cells[0] if table.labels > 1 else "" for row in table.rows))
    rows = [row for row in table.rows if row.kind != "seed"]
    rows.sort(key=lambda row: (parts.index(row.cells[0]) if table.labels > 1 else 0, row.kind != "chance"))
    lines = [
        replace(row, cells=[Figure(cell.value, sd=cell.sd) if isinstance(cell, Figure) else cell for cell in cells])
        for row, cells in ((row, [row.cells[place] for place in kept]) for row in rows)
    ]
    return Table(table.name, table.title, [heads[place] for place in kept], table.labels, lines)


def marked(table: Table) -> Mapping[tuple[int, int], str]:
    """The best and second figures of each column of models, as papers mark them, by row and column; equal ones alike.

    Of a table with several labels, within the rows of one first label.
    """
    # Of other means nobody said whether more is better: a distance from equivariance is best at 0.
    ranked = ["mean_" not in head or head in SHORT for head in table.heads]
    values = dict[tuple[int, Cell], dict[tuple[int, int], float]]()
    for number, row in enumerate(table.rows):
        for place, cell in enumerate(row.cells):
            if isinstance(cell, Figure) and ranked[place] and row.kind in ("model", "published"):
                part = row.cells[0] if table.labels > 1 else ""
                values.setdefault((place, part), {})[number, place] = float(decimals(cell.value, table.heads[place]))
    marks = dict[tuple[int, int], str]()
    for column in values.values():
        best = sorted({*column.values()}, reverse=True)
        for value, mark in zip(best if len(best) > 1 else [], (BEST, SECOND), strict=False):
            marks |= {cell: mark for cell, shown in column.items() if shown == value}
    return marks


def as_csv(table: Table) -> str:
    """One line a row, numbers with six digits; a figure takes five columns, those that nothing has left out."""
    columns = [
        (place, part)
        for place in range(len(table.heads))
        for part in ("value", "sd", "expected", "low", "high")
        if part == "value" or any(getattr(row.cells[place], part, None) is not None for row in table.rows)
    ]
    heads = [f"{table.heads[place]} {part.removeprefix('value')}" for place, part in columns]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*(_plain(" ".join(head.split())) for head in heads), "kind", "source", "table"])
    for row in table.rows:
        cells = [(row.cells[place], part) for place, part in columns]
        values = [getattr(cell, part, cell if part == "value" else None) for cell, part in cells]
        writer.writerow([_plain(value) for value in (*values, row.kind, row.source, table.title)])
    return stream.getvalue()


def _plain(value: Any) -> str:
    if isinstance(value, str):
        # The writer does not quote \r, and readers take it for the end of the line.
        return str(no_formula(value.replace("\r", " ")))
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _written(
    table: Table, escape: Callable[[str], str], styles: Mapping[str, str]
) -> Iterator[tuple[Row, Sequence[str]]]:
    """Rows with their cells as text: what `marked` gives in these styles, other people's text escaped."""
    marks = marked(table)
    for line, (row, cells) in enumerate(table.shown()):
        texts = [escape(_text(cell, head)) for cell, head in zip(cells, table.heads, strict=True)]
        yield row, [styles.get(marks.get((line, n), ""), "{}").format(text) for n, text in enumerate(texts)]


def _text(cell: Cell, head: str) -> str:
    """A cell as text; of a figure the value with its deviation and its interval."""
    if not isinstance(cell, Figure):
        return "–" if cell is None else cell if isinstance(cell, str) else number(cell)
    shown = decimals(cell.value, head)
    if cell.sd is not None:
        shown += f" ± {decimals(cell.sd, head)}"
    if cell.low is not None and cell.high is not None:
        shown += f" [{decimals(cell.low, head)}, {decimals(cell.high, head)}]"
    return Markdown(shown.replace("-", "−"))


def as_markdown(table: Table, styles: Mapping[str, str] = MARKDOWN) -> str:
    """A table for pages that show Markdown, the best in bold, with intervals beside the figures."""
    rows = [map(Markdown, texts) for _, texts in _written(table, markdown_cell, styles)]
    return f"{plain(table.title)}\n\n{markdown_table([' '.join(head.split()) for head in table.heads], rows)}"


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "[": "{[}", "]": "{]}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "±": r"$\pm$", "–": "--", "−": "$-$",
    "…": r"\dots{}",
}  # fmt: skip
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


def escaped(text: str) -> str:
    """Somebody's text for LaTeX with ``\\usepackage[T1]{fontenc}``; control characters become spaces."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return _SPECIAL.sub(lambda match: _LATEX[match.group()], printable)


def as_latex(table: Table) -> str:
    """A booktabs table of values with two decimals, the best in bold; sources as a comment a row."""
    heads = [r" \\ ".join(map(escaped, head.split("\n"))) for head in table.heads]
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        "\\begin{table}\n\\centering",
        f"\\caption{{{escaped(table.title)}}}",
        f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table.name)}}}",
        f"\\begin{{tabular}}{{{'l' * table.labels}{'r' * (len(heads) - table.labels)}}}\n\\toprule",
        " & ".join(f"\\shortstack[r]{{{head}}}" if r" \\ " in head else head for head in heads) + r" \\",
    ]
    before = ""
    for row, texts in _written(table, escaped, LATEX):
        part = str(row.cells[0]) if table.labels > 1 else row.kind
        lines += ["\\midrule"] if part != before else []
        before = part
        lines.append(rf"{' & '.join(texts)} \\" + (f" % {' '.join(row.source.split())}" if row.source else ""))
    return "\n".join([*lines, "\\bottomrule\n\\end{tabular}\n\\end{table}\n"])


def differs(figure: Figure, head: str) -> bool:
    """Whether ties matter: the expected figure looks different from the strict one."""
    return figure.expected is not None and decimals(figure.expected, head) != decimals(figure.value, head)


def decimals(value: float, head: str) -> str:
    """A value of the figure ``head``: percent with two decimals, means of scores with four."""
    return f"{value:.4f}" if "mean_" in head else f"{value:.2f}"


def number(value: int | float) -> str:
    """A count with commas between thousands; another number with one decimal, below 10 with three digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
