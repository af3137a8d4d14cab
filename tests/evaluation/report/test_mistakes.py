"""What answers at random get, counted out.

Tables as papers have them, in LaTeX that a real TeX reads.
Every figure of twinset's own kinds of scores is explained on the page, and no other.
"""

import json
import shutil
import subprocess
from itertools import combinations, permutations
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, identity, matchings, ranks, released, save
from twinset.evaluation.examples import MATCHING_CHOICES
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.matching import CHOICES, ORDERS
from twinset.evaluation.report.page import explained, write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import TWO_IMAGES, chance, measured_run, recall
from twinset.evaluation.report.tables import BEST, SECOND, Row, Table, compact, marked


def test_of_two_images_it_is_the_share_of_all_orders_of_four_scores() -> None:
    orders = [dict(zip(("s00", "s01", "s10", "s11"), order, strict=True)) for order in permutations((1, 2, 4, 8))]
    right = {
        "ipos2t": [one["s00"] > one["s01"] for one in orders],
        "ineg2t": [one["s11"] > one["s10"] for one in orders],
        "tpos2i": [one["s00"] > one["s10"] for one in orders],
        "tneg2i": [one["s11"] > one["s01"] for one in orders],
        "group_match": [one["s00"] + one["s11"] > one["s01"] + one["s10"] for one in orders],
    }
    right["text"] = [a and b for a, b in zip(right["ipos2t"], right["ineg2t"], strict=True)]
    right["image"] = [a and b for a, b in zip(right["tpos2i"], right["tneg2i"], strict=True)]
    right["group"] = [a and b for a, b in zip(right["text"], right["image"], strict=True)]
    assert pytest.approx({name: 100 * mean(values) for name, values in right.items()}) == TWO_IMAGES


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, 8))))
def test_recall_is_the_share_of_all_first_entries_with_a_target(sizes: tuple[int, int, int]) -> None:
    entries, targets, k = sizes
    firsts = list(combinations(range(entries), min(k, entries)))
    hit = mean(any(entry < targets for entry in first) for first in firsts)
    assert recall(k, entries, targets) == pytest.approx(100 * hit)


def test_it_is_counted_for_the_galleries_that_there_are(tmp_path: Path) -> None:
    rows = [*ranks(9, 15), *({**row, "key": f"b{row['key']}", "subset": "third"} for row in ranks(3, 10))]
    path = save(tmp_path, "galleries", "m", rows, SCHEMAS["query"])
    found = chance(path, "query", ["recall@1", "recall@3"])
    assert found["third"] == pytest.approx({"recall@1": 10, "recall@3": 30})
    assert found["first"] == pytest.approx({"recall@1": 100 / 15, "recall@3": 20})
    assert found[""]["recall@1"] == pytest.approx((9 * 100 / 15 + 3 * 10) / 12)


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
    assert {"genecis-all.tex", "winoground-all.tex"} <= {path.name for path in tables}
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


FIGURES = {
    *("text", "image", "group", "group_match", "accuracy", "p_c", "p_f", "acc", "min", *CHOICES[:4], *ORDERS),
    *("vqa_acc", "q_acc", "i_acc", "g_acc", "text_detection", "image_detection", "all_targets"),
    *("recall@1", "recall@50", "grounding", "grounding@0.1", "mean_equivariance_text", "mean_equivariance_image"),
    *("map@5", "map", "map@10 negation", "pair_accuracy", "set_accuracy", "mean_kendall", "mean_spearman", "overlap@5"),
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_figure_is_explained(name: str) -> None:
    together = {"acc": "p_c", "min": "p_c", "p_f": "p_c", "set_accuracy": "pair_accuracy", "overlap@5": "mean_kendall"}
    together |= {"q_acc": "vqa_acc", "i_acc": "vqa_acc", "g_acc": "vqa_acc", "mean_spearman": "mean_kendall"}
    together |= {one: "ipos2t" for one in CHOICES[1:4]} | {"image_detection": "text_detection"}
    assert explained([together.get(name, name)]).count(name.split("@")[0].split(" ")[0])
    assert explained(["mylab_score"]) == ""


def test_chance_is_that_of_choices(tmp_path: Path) -> None:
    four = [identity(n) | dict.fromkeys(CHOICES[:4], float(n < 5)) for n in range(12)]
    about = {"unanswered": {"refusal": 2}}
    save(tmp_path, "four", "vlm/choose:F", four, MATCHING_CHOICES, **about)
    pairs = [identity(n) | {"pairing": 0.5, "order12": 1.0, "order21": 0.0} for n in range(12)]
    save(tmp_path, "whole", "vlm/eqben:F", pairs, MATCHING_CHOICES)
    write_report(tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())["benchmarks"]
    assert found["four"]["chance"][""]["group"] == 6.25 and found["four"]["chance"][""]["text"] == 25
    assert found["whole"]["chance"][""] == {"group": 50, "order12": 50, "order21": 50}
    assert "four,vlm/choose:F,refusal,2" in (tmp_path / "tables" / "unanswered.csv").read_text()
