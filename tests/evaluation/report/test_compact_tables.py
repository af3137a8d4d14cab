"""Tables as papers have them, in LaTeX that a real TeX reads."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, matchings, ranks, released, save
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import measured_run
from twinset.evaluation.report.tables import BEST, SECOND, Row, Table, as_markdown, compact, marked


def test_figures_of_papers_stay_with_their_heads_and_the_best_are_marked() -> None:
    heads = ["model", "n", "groups", "ties %", "text", "ipos2t", "group", "mean_equivariance_text"]
    rows = [
        Row(["ours", 4, 4, 0.0, Figure(50.0, 51.0, 40.0, 60.0), Figure(70.0), Figure(25.0), Figure(0.1)]),
        Row(["theirs", None, None, None, Figure(60.0), None, Figure(25.001), None], "published", "Table 1"),
        Row(["third", None, None, None, Figure(40.0), None, None, None], "published", "Table 1"),
        Row(["chance", None, None, None, Figure(99.0), None, Figure(16.67), None], "chance"),
    ]
    found = compact(Table("all", "title", heads, 1, rows))
    assert found.heads == ["model", "I2T", "Group"] and found.rows[0].cells[0] == "chance"
    assert marked(found) == {(2, 1): BEST, (1, 1): SECOND}  # where all tie, none is the best
    title, blank, *_, ours, theirs, third = as_markdown(found, marked(found)).splitlines()
    assert (title, blank, ours) == ("title", "", "| ours | <u>50.00</u> | 25.00 |")
    assert (theirs, third) == ("| theirs | **60.00** | 25.00 |", "| third | 40.00 | – |")
    tied = [Row([name, Figure(value)]) for name, value in (("a", 25.0), ("b", 25.001), ("c", 20.0))]
    assert marked(Table("all", "title", ["model", "Group"], 1, tied)) == {(0, 1): BEST, (1, 1): BEST, (2, 1): SECOND}


def test_a_row_that_a_paper_prints_in_two_tables_is_one(tmp_path: Path) -> None:
    save(tmp_path, "winoground", "m", matchings(8, 0, 0.5), SCHEMAS["matching"])
    with released(winoground={"first": 4, "second": 4}):
        (results,) = measured_run(tmp_path)
    rows = benchmark_tables(results)[0].rows
    named = [row for row in rows if row.cells[0] == "FIBER + EqSim (COCO)"]
    assert len(named) == 1 and "Table 5" in named[0].source and "Table 9" in named[0].source
    # Two tables disagree about this one.
    assert len([row for row in rows if row.cells[0] == "FIBER + FT (F30K)"]) == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX on this machine: texlive-latex-recommended")
def test_a_real_tex_reads_every_table(tmp_path: Path) -> None:
    for model in ("a_b", "c & d # 50 %", "<unk>", "f^g~h", "e"):
        save(tmp_path, "winoground", model, matchings(9, 1, 0.2), SCHEMAS["matching"])
        save(tmp_path, "genecis", model, ranks(9, 15), SCHEMAS["query"])
    tables = [path for path in write_report(tmp_path) if path.suffix == ".tex"]
    assert {"orders.tex", "winoground-all-compact.tex"} <= {path.name for path in tables}
    inputs = "\n".join(f"\\input{{{path}}}\\clearpage" for path in tables)
    packages = "\\usepackage{booktabs}\n\\usepackage[T1]{fontenc}\n\\usepackage{lmodern}"
    document = f"\\documentclass{{article}}\n{packages}\n\\begin{{document}}\n{inputs}\n\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(document, "utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"],
        cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:].decode("utf-8", "replace")
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
