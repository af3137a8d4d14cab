"""Tables of a report, and each as CSV and as LaTeX."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from twinset.evaluation.metrics.figures import Figure
from twinset.generators.markdown import Markdown, no_formula, plain
from twinset.generators.markdown import table as markdown_table

COUNTS = ("n", "groups", "ties %")  # columns beside figures
#: Figures as papers head them; those that are not here have no place in a compact table.
SHORT = {"text": "I2T", "image": "T2I", "group": "Group", "accuracy": "Acc.", "min": "min", "acc": "acc"}
SHORT |= {"text detection": "Text det.", "image detection": "Img det."}
SHORT |= {"grounding": "Acc.", "mean": "Avg", **{f"recall@{k}": f"R@{k}" for k in (1, 2, 3, 5, 10)}}
SHORT |= {"mean_kendall": "Kendall", "mean_spearman": "Spearman", "overlap@5": "Overlap@5"}
BEST, SECOND = "best", "second"
Cell = str | int | float | Figure | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    kind: ``model``; ``seed``, of several whose mean is another row; ``chance``, ``human`` or ``published``.
    source: where it is from.
    """

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


def compact(table: Table) -> Table:
    """The figures of a table that papers print, under their heads, without counts and intervals; chance goes first,
    and of seeds there is their mean.
    """
    heads = [head.split("\n") for head in table.heads]
    kept = [place for place, head in enumerate(heads) if place < table.labels or _short(head[-1]) is not None]
    parts = list(dict.fromkeys(row.cells[0] for row in table.rows)) if table.labels > 1 else []
    order = sorted(
        table.rows, key=lambda row: (row.cells[0] in parts and parts.index(row.cells[0]), row.kind != "chance")
    )
    rows = [
        Row([_plainer(row.cells[place]) for place in kept], row.kind, row.source) for row in order if row.kind != "seed"
    ]
    shown = [table.heads[place] for place in range(table.labels)]
    shown += ["\n".join([*heads[place][:-1], _short(heads[place][-1]) or ""]) for place in kept[table.labels :]]
    return Table(f"{table.name}-compact", table.title, shown, table.labels, rows)


def _short(head: str) -> str | None:
    return SHORT.get(head) or (head if head in ("natural", "synthetic") else None)


def _plainer(cell: Cell) -> Cell:
    return Figure(cell.value, sd=cell.sd) if isinstance(cell, Figure) else cell


def marked(table: Table) -> dict[tuple[int, int], str]:
    """The best and second figures of each column of models, as papers mark them, by row and column; equal ones alike.

    Of a table with several labels, within the rows of one first label.
    """
    found = dict[tuple[int, int], str]()
    for place in range(table.labels, len(table.heads)):
        parts = dict[Cell, list[tuple[float, int]]]()
        for number, row in enumerate(table.rows):
            cell = row.cells[place]
            if isinstance(cell, Figure) and row.kind in ("model", "published"):
                part = row.cells[0] if table.labels > 1 else ""
                parts.setdefault(part, []).append((round(cell.value, 2), number))
        for some in parts.values():
            values = {value for value, _ in some}
            best = sorted(values, reverse=True)[:2] if len(values) > 1 else []
            for value, number in some:
                if value in best:
                    found[number, place] = (BEST, SECOND)[best.index(value)]
    return found


def as_csv(table: Table) -> str:
    """One line a row, numbers unrounded; a figure takes five columns, of which those that nothing has are left out."""
    parts = ("", " sd", " expected", " low", " high")
    columns: list[tuple[str, int, str]] = []
    for place, head in enumerate(table.heads):
        figures = [row.cells[place] for row in table.rows if isinstance(row.cells[place], Figure)]
        names = [part for part in parts if not part or any(_part(cell, part) is not None for cell in figures)]
        columns += [(" ".join(head.split("\n")) + part, place, part) for part in names]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*(_plain(head) for head, _, _ in columns), "kind", "source", "table"])
    for row in table.rows:
        values = [_part(row.cells[place], part) for _, place, part in columns]
        writer.writerow([*(_plain(value) for value in values), row.kind, row.source, table.title])
    return stream.getvalue()


def _part(cell: Cell, part: str) -> str | int | float | None:
    if not isinstance(cell, Figure):
        return None if part else cell
    return {"": cell.value, " sd": cell.sd, " expected": cell.expected, " low": cell.low, " high": cell.high}[part]


def _plain(value: str | int | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        # The writer does not quote \r, and readers take it for the end of the line.
        return str(no_formula(value.replace("\r", " ")))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_markdown(table: Table, marks: Mapping[tuple[int, int], str] = MappingProxyType({})) -> str:
    """A table for pages that show Markdown, with intervals beside the figures. marks: as `marked` gives them."""
    heads = [" ".join(head.split("\n")) for head in table.heads]
    rows = [
        [Markdown(_MARKDOWN.get(marks.get((number, place), ""), "{}").format(_markdown(cell, table.heads[place])))
         if (number, place) in marks else _markdown(cell, table.heads[place]) for place, cell in enumerate(cells)]
        for number, (_, cells) in enumerate(table.shown())
    ]  # fmt: skip
    return f"{plain(table.title)}\n\n{markdown_table(heads, rows)}"


def _markdown(cell: Cell, head: str) -> str:
    if isinstance(cell, Figure):
        shown = decimals(cell.value, head) + ("" if cell.sd is None else f" ± {decimals(cell.sd, head)}")
        if cell.low is not None and cell.high is not None:
            shown += f" [{decimals(cell.low, head)}, {decimals(cell.high, head)}]"
        return Markdown(shown)
    return "–" if cell is None else cell if isinstance(cell, str) else number(cell)


_MARKDOWN = {BEST: "**{}**", SECOND: "<u>{}</u>"}
_MARKED = {BEST: "\\textbf{{{}}}", SECOND: "\\underline{{{}}}"}
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


def as_latex(table: Table, marks: Mapping[tuple[int, int], str] = MappingProxyType({})) -> str:
    """A booktabs table: values with two decimals, their interval below in small print; sources as a comment a row.

    marks: as `marked` gives them.
    """
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
    for number, (row, cells) in enumerate(table.shown()):
        now = "model" if row.kind == "seed" else row.kind
        if kind and table.labels > 1 and row.cells[0] == first and now != kind:
            lines.append(f"\\cmidrule{{2-{len(table.heads)}}}")  # within what the first label names
        elif kind and (now != kind or (table.labels > 1 and row.cells[0] != first)):
            lines.append("\\midrule")
        kind, first = now, str(row.cells[0])
        comment = f" % {' '.join(row.source.split())}" if row.source else ""
        shown = [
            _MARKED.get(marks.get((number, place), ""), "{}").format(_latex(cell, table.heads[place]))
            for place, cell in enumerate(cells)
        ]
        lines.append(f"{' & '.join(shown)} \\\\{comment}")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


def _latex_head(head: str) -> str:
    lines = [escaped(line) for line in head.split("\n")]
    return lines[0] if len(lines) == 1 else "\\shortstack[r]{" + " \\\\ ".join(lines) + "}"


def _latex(cell: Cell, head: str) -> str:
    if isinstance(cell, Figure):
        value = _minus(decimals(cell.value, head))
        if cell.sd is not None:
            value += f" {{\\scriptsize $\\pm$ {decimals(cell.sd, head)}}}"
        if cell.low is not None and cell.high is not None:
            low, high = (_minus(decimals(end, head)) for end in (cell.low, cell.high))
            value += f" {{\\scriptsize [{low}, {high}]}}"
        if differs(cell, head):
            value += f" {{\\scriptsize exp. {decimals(cell.expected or 0.0, head)}}}"
        return value
    if isinstance(cell, str):
        return escaped(cell)
    return "--" if cell is None else number(cell)


def _minus(number: str) -> str:
    return number.replace("-", "$-$")


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
