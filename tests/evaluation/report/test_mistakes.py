"""What answers at random get, counted out.

Tables as papers have them, in LaTeX that a real TeX reads.
What detectors get right, beside BiVLC's Table 4 and by the categories that its Table 6 pools.
Every figure of twinset's own kinds of scores is explained on the page, and no other.
What a report shows of models that are asked by prompts: how far figures move, what was not asked or answered.
"""

import csv
import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, identity, matchings, ranks, released, save
from twinset.evaluation.examples import MATCHING_CHOICES, MATCHING_SCORES
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.matching import CHOICES, ORDERS
from twinset.evaluation.report.page import explained, write_report
from twinset.evaluation.report.result_tables import benchmark_tables
from twinset.evaluation.report.results import TWO_IMAGES, chance, measured_run, recall
from twinset.evaluation.report.tables import BEST, SECOND, Row, Table, as_markdown, compact, marked


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


def test_no_more_than_is_known_is_said(tmp_path: Path) -> None:
    path = save(tmp_path, "pairs", "m", matchings(4, 0, 0.0), SCHEMAS["matching"])
    assert chance(path, "matching", ["p_c", "mean_equivariance_text"]) == {}
    assert chance(path, "matching", ["accuracy"]) == {name: {"accuracy": 50.0} for name in ("", "first", "second")}
    assert chance(path, "grounding", ["grounding@0.1"]) == {}


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
    assert {"genecis-all.tex", "winoground-all-compact.tex"} <= {path.name for path in tables}
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


NAMES = ("text detector", "image detector", "i2t", "t2i", "group")


def probed(pairs: int, *shares: float) -> dict[str, object]:
    return {"pairs": pairs, "probes": {}, "detectors": dict(zip(NAMES, shares, strict=False))}


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    save(tmp_path, "bivlc", "m", matchings(500, 0, 0.1, ["test"]), SCHEMAS["matching"])
    rows = {"replace_obj": (300, 60.0, 100.0, 70.0, 20.0, 20.0), "replace_rel": (100, 40.0, 96.0, 50.0, 12.0, 8.0)}
    rows |= {"swap_att": (100, 52.0, 99.0, 60.0, 10.0, 10.0)}
    found = {
        "all": probed(500, 55.0, 98.0, 64.0, 17.0, 16.0),
        "by": {f"test / {k}": probed(*v) for k, v in rows.items()},
    }  # type: ignore[arg-type]
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "bivlc.json").write_text(json.dumps(found))
    with released(bivlc={"test": 500}):
        yield tmp_path


def values(cells: object) -> list[object]:
    return [cell.value if isinstance(cell, Figure) else cell for cell in cells]  # type: ignore[attr-defined]


def test_detection_of_a_part_stands_alone(out: Path) -> None:
    probes = json.loads((out / "probes/bivlc.json").read_text())
    probes["all"]["pairs"] = 499
    (out / "probes/bivlc.json").write_text(json.dumps(probes))
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert {row.cells[1] for row in table.rows} == {"ours"}


def test_detection_stands_beside_the_paper_and_by_category(out: Path) -> None:
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert table.heads == ["examples", "detectors", "n", "text detection", "image detection", "text", "image", "group"]
    rows = {(row.cells[0], row.cells[1]): values(row.cells[2:]) for row in table.rows}
    assert rows["all", "ours"] == [500, 55.0, 98.0, 64.0, 17.0, 16.0]
    assert rows["all", "CLIP Det"] == [None, 57.0, 100.0, 66.69, 19.64, 19.64]
    assert rows["replace", "ours"] == [400, 55.0, 99.0, 65.0, 18.0, 17.0]  # weighted by pairs
    assert rows["test / replace_rel", "ours"] == [100, 40.0, 96.0, 50.0, 12.0, 8.0]
    assert ("add", "ours") not in rows
    assert "what detectors get right" in write_report(out, resamples=0)[0].read_text()
    assert "Text det." in (out / "tables" / "bivlc-detectors-compact.md").read_text()


def test_probes_without_detectors_have_no_such_table(out: Path) -> None:
    path = out / "probes" / "bivlc.json"
    found = json.loads(path.read_text())
    for row in (found["all"], *found["by"].values()):
        del row["detectors"]
    path.write_text(json.dumps(found))
    assert not [one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if "detectors" in one.name]
    captions = {"text detector": 55.0}  # alone: of one image there is no detector
    path.write_text(json.dumps({**found, "all": {**found["all"], "detectors": captions}}))
    table = next(one for one in benchmark_tables(measured_run(out, resamples=0)[0]) if one.name == "bivlc-detectors")
    assert table.heads[3:] == ["text detection"]


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


def test_nothing_else_is_explained() -> None:
    assert explained(["accuracy"]).startswith("accuracy: ") and "group" not in explained(["accuracy"])
    assert explained(["group_match"]).startswith("group_match: ")
    assert explained(["mylab_score"]) == ""


def choices(right: int, of: int, image: bool = True) -> list[dict[str, object]]:
    """Rows of which the first ``right`` are right in all that is asked."""
    names = ("ipos2t", "ineg2t", *(("tpos2i", "tneg2i") if image else ()))
    return [identity(n) | dict.fromkeys(names, float(n < right)) for n in range(of)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return [*csv.DictReader(stream)]


def test_figures_move_with_the_prompt_and_only_what_was_asked_is_there(tmp_path: Path) -> None:
    for name, right, image in (("choose", 9, True), ("sugarcrepe", 3, False)):
        about = {"prompt": f"{name} 1", "unanswered": {"refusal": 2}}
        save(tmp_path, "made", f"vlm/{name}:F", choices(right, 12, image), MATCHING_CHOICES, **about)
    save(tmp_path, "made", "clip:F", matchings(12, 0, 1.0), MATCHING_SCORES)
    page = write_report(tmp_path)[0].read_text()
    moves = rows(tmp_path / "tables" / "made-prompts.csv")
    assert [(one["model"], one["figure"]) for one in moves] == [
        ("vlm:F", name) for name in ("text", "ipos2t", "ineg2t")
    ]
    assert (moves[0]["lowest"], moves[0]["highest"], moves[0]["moves by"]) == ("25", "75", "50")
    assert "how far figures move with the prompt" in page and "Questions that were not answered" in page
    assert [one["questions"] for one in rows(tmp_path / "tables" / "unanswered.csv")] == ["2", "2"]
    models = json.loads((tmp_path / "results.json").read_text())["benchmarks"]["made"]["models"]
    assert {"image", "group"} <= {*models["vlm/choose:F"]["all"]} and not {"image", "group"} & {
        *models["vlm/sugarcrepe:F"]["all"]
    }
    assert [one["by"] for one in models["vlm/choose:F"]["mistakes"]] == [4] * 3
    differences = json.loads((tmp_path / "results.json").read_text())["benchmarks"]["made"]["differences"]
    asked = {(one["a"], one["b"]): set() for one in differences} | {}
    for one in differences:
        asked[one["a"], one["b"]].add(one["figure"])
    assert asked["clip:F", "vlm/sugarcrepe:F"] == {"text"}
    assert asked["clip:F", "vlm/choose:F"] == {"text", "image", "group"}


def test_chance_is_that_of_choices(tmp_path: Path) -> None:
    save(tmp_path, "four", "vlm/choose:F", choices(5, 12), MATCHING_CHOICES)
    pairs = [identity(n) | {"pairing": 0.5, "order12": 1.0, "order21": 0.0} for n in range(12)]
    save(tmp_path, "whole", "vlm/eqben:F", pairs, MATCHING_CHOICES)
    write_report(tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())["benchmarks"]
    assert found["four"]["chance"][""]["group"] == 6.25 and found["four"]["chance"][""]["text"] == 25
    assert found["whole"]["chance"][""] == {"group": 50, "order12": 50, "order21": 50}
