"""The worst mistakes: the right ones, spread over groups, and their pictures kept."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, Made, errors, identity, matchings, ranks, save
from twinset.evaluation.report import mistakes as room
from twinset.evaluation.report.mistakes import answers_to, keep, kept, worst_mistakes
from twinset.evaluation.report.model_answers import score_files
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.results import measured_run


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
