"""What answers at random get, counted out.

Tables as papers have them, in LaTeX that a real TeX reads.
What detectors get right, beside BiVLC's Table 4 and by the categories that its Table 6 pools.
Which distributions the page draws.
Every figure of twinset's own kinds of scores is explained on the page, and no other.
The worst mistakes: the right ones, spread over groups, and their pictures kept.
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

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, Made, errors, identity, matchings, ranks, released, save
from twinset.evaluation.examples import MATCHING_CHOICES, MATCHING_SCORES
from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.matching import CHOICES, ORDERS
from twinset.evaluation.report import mistakes as room
from twinset.evaluation.report.distributions import (
    MOST_SUBSETS,
    calibration_panels,
    equivariance_panels,
    largest_subsets,
)
from twinset.evaluation.report.mistakes import answers_to, keep, kept, worst_mistakes
from twinset.evaluation.report.model_answers import score_files
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


@pytest.mark.slow
def test_of_many_subsets_the_largest_are_drawn_and_all_are_in_the_tables(tmp_path: Path) -> None:
    subsets = [f"part {number:02d}" for number in range(30)]
    save(tmp_path, "made", "one", matchings(30 * 4 + 7, 3, 0.1, subsets[::-1]), SCHEMAS["matching"])
    shown, count = largest_subsets(score_files(tmp_path))
    # The last seven have one row more; the others are as large as each other.
    assert (shown, count) == ({*subsets[-7:], *subsets[: MOST_SUBSETS - 7]}, 30)
    panels = equivariance_panels(score_files(tmp_path), shown)
    assert {panel.title.partition(":")[0] for panel in panels} == shown
    write_report(tmp_path, {}, resamples=50)
    page = (tmp_path / "report.html").read_text()
    assert "Equivariance scores of the 24 largest of 30 subsets" in page
    assert all(subset in page for subset in subsets)


def test_calibration_is_of_probabilities_alone(tmp_path: Path) -> None:
    """By hand: of pairs at .95 half match, and of those at .15 too: errors are .45 and .35."""
    rows = [{**identity(0), "s00": 0.95, "s01": 0.95, "s10": None, "s11": None}]
    rows += [{**identity(1), "s00": 0.15, "s01": 0.15, "s10": None, "s11": None}]
    save(tmp_path, "pairs", "m", rows, SCHEMAS["matching"], threshold=0.5)
    (panel,) = calibration_panels(score_files(tmp_path))
    assert panel.title == "m: error 40.0 %" and panel.y["share that match"][[1, 9]].tolist() == [0.5, 0.5]
    assert np.isnan(panel.y["share that match"][[0, 5]]).all()
    other = tmp_path / "other"
    save(other, "pairs", "cosines", rows, SCHEMAS["matching"])
    save(other, "pairs", "log-odds", [{**rows[0], "s00": 3.0}], SCHEMAS["matching"], threshold=0.0)
    assert calibration_panels(score_files(other)) == []


def test_equivariance_is_also_shown_as_the_scores_have_it(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "m", matchings(30, 0, 0.1), SCHEMAS["matching"])
    divided, raw = (equivariance_panels(score_files(tmp_path), {"first"}, one) for one in (False, True))
    assert [one.title for one in divided] == [one.title for one in raw] and {one.axis for one in raw} == {
        "equivariance score"
    }
    scale = divided[0].x / raw[0].x
    assert np.allclose(scale, scale[0]) and scale[0] > 1


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


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.floats(-1, 1, width=32)] * 4), min_size=1, max_size=30), st.integers(1, 6))
def test_leads_are_the_largest_of_four_comparisons(
    tmp_path_factory: pytest.TempPathFactory, scores: list[tuple[float, ...]], count: int
) -> None:
    out = tmp_path_factory.mktemp("run")
    rows = [
        {**identity(number), "group": f"own-{number}", **dict(zip(("s00", "s01", "s10", "s11"), one, strict=True))}
        for number, one in enumerate(scores)
    ]
    save(out, "pairs", "m", rows, SCHEMAS["matching"])
    leads = [max(b - a, c - d, c - a, b - d) for a, b, c, d in scores]
    found = worst_mistakes(score_files(out)[0], count)
    assert [one.by for one in found] == pytest.approx(
        sorted((lead for lead in leads if lead > 0), reverse=True)[:count]
    )


def test_each_group_comes_once_before_any_comes_twice(tmp_path: Path) -> None:
    rows = [
        {**identity(number), "group": group, "s00": 0.0, "s01": lead, "s10": None, "s11": None}
        for number, (group, lead) in enumerate([("a", 0.9), ("a", 0.8), ("a", 0.7), ("b", 0.2), ("c", -0.5)])
    ]
    save(tmp_path, "pairs", "m", rows, SCHEMAS["matching"])
    found = worst_mistakes(score_files(tmp_path)[0], 3)
    assert [(one.group, round(one.by, 3)) for one in found] == [("a", 0.9), ("a", 0.8), ("b", 0.2)]


def test_a_pool_that_is_too_small_for_all_keeps_the_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "POOL", 5)
    save(tmp_path, "galleries", "m", ranks(60), SCHEMAS["query"])
    found = worst_mistakes(score_files(tmp_path)[0], 4)
    assert [one.scores["higher"] for one in found] == [14, 14, 14, 14] and found[0].by == 1.0


def test_groundings_are_wrong_by_seconds(tmp_path: Path) -> None:
    save(tmp_path, "videos", "m", errors(7), SCHEMAS["grounding"])
    found = worst_mistakes(score_files(tmp_path)[0], 2)
    assert [round(one.by, 3) for one in found] == [0.6, 0.4]


def test_only_what_is_not_kept_is_read_again(tmp_path: Path) -> None:
    path, made = tmp_path / "mistakes" / "pairs.parquet", Made("pairs", "matching", 9)
    one, three, five = ("key-001", None), ("key-003", None), ("key-005", None)
    first = keep(path, made, [one, three], made.digest())
    assert made.read == 4, "reading ends with the last one that is wanted"
    assert first[one].images[1] == ("image 1", None), "a picture that cannot be read"
    assert kept(path, made.digest()) == first
    again = keep(path, made, [three], made.digest())
    assert made.read == 4 and again == first
    more = keep(path, made, [five], made.digest())
    assert set(more) == {one, three, five} and more[three] == first[three]
    assert kept(path, "e" * 64) == {}, "the benchmark's files have changed"
    assert [file.name for file in path.parent.iterdir()] == ["pairs.parquet"]


def test_a_query_is_shown_with_the_wrong_entry_that_each_model_ranked_highest(tmp_path: Path) -> None:
    save(tmp_path, "galleries", "m", ranks(3), SCHEMAS["query"])
    (worst, *_) = worst_mistakes(score_files(tmp_path)[0])
    path, made = tmp_path / "mistakes" / "galleries.parquet", Made("galleries", "query", 9)
    shown = keep(path, made, [(worst.key, worst.best_wrong), (worst.key, 1)], made.digest())
    first, second = shown[worst.key, 0], shown[worst.key, 1]
    assert [label for label, _ in first.images] == ["query", "target", "best wrong entry"]
    assert first.images[0][1] == first.images[2][1] != second.images[2][1] == second.images[1][1]
    assert kept(path, made.digest()) == shown


def test_matchings_that_are_right_are_no_mistakes(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "m", matchings(9, 0, 5.0), SCHEMAS["matching"])
    assert worst_mistakes(score_files(tmp_path)[0]) == []


def test_beside_a_mistake_stands_a_model_that_is_right(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "wrong", matchings(6, 0, -0.5), SCHEMAS["matching"])
    save(tmp_path, "pairs", "right", matchings(6, 1, 0.5), SCHEMAS["matching"])
    save(tmp_path, "pairs", "a tie", [{**row, "s01": row["s00"]} for row in matchings(6, 1, 0.5)], SCHEMAS["matching"])
    page = write_report(tmp_path)[0].read_text("utf-8")
    models = {model.name: model for model in measured_run(tmp_path)[0].models}
    mistakes = len(models["wrong"].mistakes) + len(models["a tie"].mistakes)
    assert mistakes >= 6 and page.count("right is right:") == mistakes and "a tie is right:" not in page
    found = answers_to(models["right"].scored, {"key-001", "key-004", "absent"})
    assert {*found} == {"key-001", "key-004"} and all(one.by < 0 for one in found.values())


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
