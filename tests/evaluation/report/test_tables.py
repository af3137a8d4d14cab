"""Tables as CSV and LaTeX: numbers that read back, names that stay text."""

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st

from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.report.tables import Row, Table, as_csv, as_latex, escaped

TABLE = Table(
    "made",
    "50 % & more",
    ["subset", "model", "n", "text", "image"],
    2,
    [
        Row(["one", "a_b", 1234, Figure(50.0, 62.5, 40.0, 60.0), Figure(1 / 3)]),
        Row(["one", "chance", None, Figure(25.0), None], "chance", "A paper, Table 1"),
        Row(["two", "a_b", 1, Figure(0.0, 0.0, 0.0, 0.0), Figure(100.0)]),
    ],
)


def test_csv_has_every_number_of_a_figure_and_repeats_names() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(TABLE))))
    assert list(rows[0]) == [
        *("subset", "model", "n", "text", "text expected", "text low", "text high", "image", "kind", "source", "table")
    ]
    assert [float(rows[0][name]) for name in ("text", "text expected", "text low", "text high")] == [50, 62.5, 40, 60]
    assert rows[1]["subset"] == "one" and rows[1]["text expected"] == "" and rows[1]["source"] == "A paper, Table 1"
    assert {row["table"] for row in rows} == {"50 % & more"}
    assert rows[0]["n"] == "1234" and rows[0]["image"] == "0.333333"


def test_csv_holds_no_formula() -> None:
    rows = [Row([name, 1]) for name in ("=cmd|x", "+1", "-1", "@a", "\tb", "plain", "two\rlines")]
    lines = list(csv.reader(io.StringIO(as_csv(Table("t", "T", ["model", "n"], 1, rows)), newline="")))[1:]
    head = as_csv(Table("t", "T", ["=cmd|x", "n"], 1, rows)).partition("\n")[0]
    assert head == "'=cmd|x,n,kind,source,table"  # a score file names what its scoring cost
    assert [line[0] for line in lines] == ["'=cmd|x", "'+1", "'-1", "'@a", "'\tb", "plain", "two lines"]


def test_latex_shows_intervals_and_what_ties_hide() -> None:
    text = as_latex(TABLE)
    assert r"50.00 {\scriptsize [40.00, 60.00]} {\scriptsize exp. 62.50}" in text
    assert r"one & a\_b & 1,234 &" in text and " & chance & -- & 25.00 & -- \\\\ % A paper, Table 1" in text
    assert r"\caption{50 \% \& more}" in text and text.count(r"\midrule") == 2
    assert text.count(r"\cmidrule{2-5}") == 1  # between model and chance of one subset
    assert as_latex(Table("t", "T", ["m", "d"], 1, [Row(["a", Figure(-1, low=-2, high=3)])])).count("$-$") == 2
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if "&" in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {4}


@given(st.text(max_size=30))
def test_escaped_text_has_no_active_character(text: str) -> None:
    left = escaped(text)
    # What escaping itself writes is taken away; then nothing is left that TeX would act on.
    for known in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}", r"\textless{}", r"\textgreater{}",
                  r"\textbar{}", r"\textquotedbl{}", r"\dots{}", "$-$", "{[}", "{]}"):  # fmt: skip
        left = left.replace(known, "")
    left = re.sub(r"\\[{}$&#%_]", "", left)
    assert not set(left) & set("\\{}$&#%_~^") and "\n" not in left
