"""Tables of a report, and each as CSV and as LaTeX."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinset.evaluation.metrics.figures import Figure
from twinset.manifests.markdown import Markdown, no_formula
from twinset.manifests.markdown import table as markdown_table

Cell = str | int | float | Figure | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table. kind: ``model``, or ``chance``, ``human`` or ``published``. source: where it is from."""

    cells: Sequence[Cell]
    kind: str = "model"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    name: of its files, without ending. heads: of the columns, a line or two; the first ``labels`` hold names.

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


def as_csv(table: Table) -> str:
    """One line a row, numbers unrounded; a figure takes four columns, of which those that nothing has are left out."""
    parts = ("", " expected", " low", " high")
    columns: list[tuple[str, int, str]] = []
    for place, head in enumerate(table.heads):
        figures = [row.cells[place] for row in table.rows if isinstance(row.cells[place], Figure)]
        names = [part for part in parts if not part or any(_part(cell, part) is not None for cell in figures)]
        columns += [(" ".join(head.split("\n")) + part, place, part) for part in names]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*(_plain(head) for head, _, _ in columns), "kind", "source"])
    for row in table.rows:
        values = [_part(row.cells[place], part) for _, place, part in columns]
        writer.writerow([*(_plain(value) for value in values), row.kind, row.source])
    return stream.getvalue()


def _part(cell: Cell, part: str) -> str | int | float | None:
    if not isinstance(cell, Figure):
        return None if part else cell
    return {"": cell.value, " expected": cell.expected, " low": cell.low, " high": cell.high}[part]


def _plain(value: str | int | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        # The writer does not quote \r, and readers take it for the end of the line.
        return str(no_formula(value.replace("\r", " ")))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_markdown(table: Table) -> str:
    """A table for pages that show Markdown, with intervals beside the figures."""
    heads = [" ".join(head.split("\n")) for head in table.heads]
    return markdown_table(heads, [list(map(_markdown, cells, table.heads)) for _, cells in table.shown()])


def _markdown(cell: Cell, head: str) -> str:
    if isinstance(cell, Figure):
        shown = decimals(cell.value, head)
        if cell.low is not None and cell.high is not None:
            shown += f" [{decimals(cell.low, head)}, {decimals(cell.high, head)}]"
        return Markdown(shown)
    return "–" if cell is None else cell if isinstance(cell, str) else number(cell)


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "[": "{[}", "]": "{]}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "–": "--", "−": "$-$", "…": r"\dots{}",
}  # fmt: skip
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


def escaped(text: str) -> str:
    """Somebody's text for LaTeX with ``\\usepackage[T1]{fontenc}``; control characters become spaces."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return _SPECIAL.sub(lambda found: _LATEX[found.group()], printable)


def as_latex(table: Table) -> str:
    """A booktabs table: values with two decimals, their interval below in small print; sources as a comment a row."""
    columns = "".join("l" if place < table.labels else "r" for place in range(len(table.heads)))
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escaped(table.title)}}}",
        f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table.name)}}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(map(_latex_head, table.heads)) + " \\\\",
        "\\midrule",
    ]
    kind, first = "", ""
    for row, cells in table.shown():
        if kind and (row.kind != kind or (table.labels > 1 and row.cells[0] != first)):
            lines.append("\\midrule")
        kind, first = row.kind, str(row.cells[0])
        comment = f" % {' '.join(row.source.split())}" if row.source else ""
        line = " & ".join(_latex(cell, head) for cell, head in zip(cells, table.heads, strict=True))
        lines.append(f"{line} \\\\{comment}")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


def _latex_head(head: str) -> str:
    lines = [escaped(line) for line in head.split("\n")]
    return lines[0] if len(lines) == 1 else "\\shortstack[r]{" + " \\\\ ".join(lines) + "}"


def _latex(cell: Cell, head: str) -> str:
    if isinstance(cell, Figure):
        value = decimals(cell.value, head)
        if cell.low is not None and cell.high is not None:
            value += f" {{\\scriptsize [{decimals(cell.low, head)}, {decimals(cell.high, head)}]}}"
        if differs(cell, head):
            value += f" {{\\scriptsize exp. {decimals(cell.expected or 0.0, head)}}}"
        return value
    if isinstance(cell, str):
        return escaped(cell)
    return "--" if cell is None else number(cell)


def differs(figure: Figure, head: str) -> bool:
    """Whether ties matter: the expected figure looks different from the strict one."""
    return figure.expected is not None and decimals(figure.expected, head) != decimals(figure.value, head)


def decimals(value: float, head: str) -> str:
    """A value of the figure ``head``: percent with two decimals, means of scores with four."""
    return f"{value:.4f}" if "mean_" in head else f"{value:.2f}"


def number(value: int | float) -> str:
    """A count with commas between thousands; another number with at most three digits that say something."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
