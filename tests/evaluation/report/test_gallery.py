"""The worst mistakes, their pictures, which are kept, and what stands beside them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.report.made_scores import SCHEMAS, SCRIPT, Made, errors, identity, matchings, picture, ranks, save
from twinset.evaluation.examples import STATEMENT_MARGINS, Query
from twinset.evaluation.report import page
from twinset.evaluation.report.gallery import mistake_blocks, pictures
from twinset.evaluation.report.mistakes import answers_to, worst_mistakes
from twinset.evaluation.report.model_answers import ModelAnswers, score_files
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.results import BenchmarkResults, measured_run


@pytest.fixture(autouse=True)
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time, and test_report.py has them drawn."""
    monkeypatch.setattr(page, "plot", lambda panels: "")


def saved(out: Path, rows: list[dict[str, object]], asked: str = "matching", model: str = "m") -> ModelAnswers:
    save(out, "made", model, rows, SCHEMAS[asked])
    return score_files(out)[0]


def measured(out: Path) -> BenchmarkResults:
    return measured_run(out, resamples=0)[0]


@settings(max_examples=12)
@given(st.lists(st.tuples(*[st.floats(-1, 1, width=32)] * 4), min_size=1, max_size=30), st.integers(1, 6))
def test_leads_are_the_largest_of_four_comparisons(
    tmp_path_factory: pytest.TempPathFactory, scores: list[tuple[float, ...]], count: int
) -> None:
    named = [dict(zip(("s00", "s01", "s10", "s11"), row, strict=True)) for row in scores]
    rows = [{**identity(number), "group": f"own-{number}", **row} for number, row in enumerate(named)]
    mistakes = worst_mistakes(saved(tmp_path_factory.mktemp("run"), rows), count)
    leads = sorted((max(b - a, c - d, c - a, b - d) for a, b, c, d in scores), reverse=True)
    assert [mistake.by for mistake in mistakes] == pytest.approx([lead for lead in leads if lead > 0][:count])


def test_queries_and_groundings_are_wrong_by_entries_and_seconds(tmp_path: Path) -> None:
    queries = worst_mistakes(saved(tmp_path / "queries", ranks(60), "query"), 4)
    assert [mistake.scores["higher"] for mistake in queries] == [14, 14, 14, 14] and queries[0].by == 1.0
    videos = worst_mistakes(saved(tmp_path / "videos", errors(7), "grounding"), 2)
    assert [round(mistake.by, 3) for mistake in videos] == [0.6, 0.4]
    assert worst_mistakes(saved(tmp_path / "right", matchings(9, 0, 5.0))) == []


def test_only_what_is_not_kept_is_read_again(tmp_path: Path) -> None:
    saved(tmp_path, matchings(9, 0, 0.0))
    results, made = measured(tmp_path), Made("made", 9)
    first = pictures(tmp_path, results, made, {"key-001": (), "key-003": ()})
    assert made.read == 4, "reading ends with the last one that is wanted"
    assert first["key-001"]["image 1"].cell("image 1").label == "image 1: cannot be read"
    assert pictures(tmp_path, results, made, {"key-003": ()}) == first and made.read == 4
    more = pictures(tmp_path, results, made, {"key-005": ()})
    assert more.keys() == {"key-001", "key-003", "key-005"} and more["key-003"] == first["key-003"]
    assert pictures(tmp_path, results, None, {"key-005": (), "key-006": ()}) == more
    save(tmp_path, "made", "other", matchings(9, 1, 0.0), SCHEMAS["matching"], data_digest="e" * 64)
    assert pictures(tmp_path, measured(tmp_path), None, {"key-005": ()}) == {}, "of another state of the benchmark"
    (tmp_path / "pictures" / "made.parquet").write_bytes(b"PAR1 cut off")
    assert pictures(tmp_path, results, None, {"key-005": ()}) == {}


def test_beside_a_mistake_stands_a_model_that_is_right(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "wrong", matchings(6, 0, -0.5), SCHEMAS["matching"])
    save(tmp_path, "pairs", "right", matchings(6, 1, 0.5), SCHEMAS["matching"])
    save(tmp_path, "pairs", "a tie", [{**row, "s01": row["s00"]} for row in matchings(6, 1, 0.5)], SCHEMAS["matching"])
    for model, margin in (("far", -0.4), ("on the threshold", -0.0)):
        save(tmp_path, "vsr", model, [{**identity(0), "margin": margin, "correct": False}], STATEMENT_MARGINS)
    html = write_report(tmp_path, resamples=0)[0].read_text("utf-8")
    assert "threshold is right:" not in html
    models = {model.name: model for model in measured(tmp_path).models}
    count = len(models["wrong"].mistakes) + len(models["a tie"].mistakes)
    assert count >= 6 and html.count("right is right:") == count and "a tie is right:" not in html
    answers = answers_to(models["right"].scored, {"key-001", "key-004", "absent"})
    assert {*answers} == {"key-001", "key-004"} and all(answer.by < 0 for answer in answers.values())


class Galleries(Made):
    """Queries of seven images each; the second asks for a text."""

    def examples(self):  # type: ignore[no-untyped-def]
        for number in range(self.n):
            gallery = [picture(f"{number}-{place}", (30 * place, 90, 20 * number)) for place in range(7)]
            texts = [f"text {place} {SCRIPT}" for place in range(7)]
            asked = {"image": gallery[0], "text": SCRIPT, "gallery": texts if number == 1 else gallery}
            yield Query(**identity(number), **asked, targets=frozenset({6}))


def test_a_query_is_shown_with_its_target_and_what_models_rank_first(tmp_path: Path) -> None:
    rows = [{**row, "higher": 3, "entries": 7, "top": [0, 1, 2, 6, 3]} for row in ranks(2)]
    saved(tmp_path, rows, "query", "wrong")
    saved(tmp_path, [{**row, "higher": 0, "top": [6, 0, 1, 2, 99]} for row in rows], "query", "right")
    results = measured(tmp_path)
    (right, wrong) = mistake_blocks(tmp_path, results, Galleries("made", 2))
    assert right["blocks"] == [] and wrong["without"] == 0
    (block, answers), (_, of_text) = wrong["blocks"]
    assert [cell.label for cell in block.cells] == ["query", "target"] and block.cells[1].outline == "right"
    assert [name for name, *_ in answers] == ["", "right"]
    framed = [[cell.label for cell in strip.cells if cell.outline == "right"] for *_, strip in answers]
    assert framed == [["4"], ["1"]] and len(answers[1][2].cells) == 4, "an entry that the gallery lacks"
    assert [word for word, _ in of_text[0][2].cells[0].words][:2] == ["text", "0"]
    first = write_report(tmp_path, resamples=0)[0].read_bytes()  # from what is kept
    assert first == write_report(tmp_path, resamples=0)[0].read_bytes()
    assert b"right is right:" in first and b"<script" not in first and b"&lt;script&gt;" in first
