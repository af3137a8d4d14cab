"""What a report shows of models that are asked by prompts: how far figures move, what was not asked or answered."""

import csv
import json
from pathlib import Path

from tests.evaluation.report.made_scores import identity, matchings, save
from twinset.evaluation.examples import MATCHING_CHOICES, MATCHING_SCORES
from twinset.evaluation.report.page import write_report


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
