"""The first entries of two models side by side: of queries that they differ in, with the targets framed."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tests.evaluation.report.made_scores import SCHEMAS, Made, identity, picture, save
from twinset.evaluation.examples import Query
from twinset.evaluation.report.page import write_report
from twinset.evaluation.report.results import BenchmarkResults, measured_run
from twinset.evaluation.report.strips import strip_blocks, strips_of


def rows(before: list[int], tied: int = 0, first: int = 0) -> list[dict[str, object]]:
    """Galleries of seven whose target is at 6; ``before`` wrong entries stand before it."""
    found = []
    for number, higher in enumerate(before, first):
        order = [0, 1, 2, 3, 4, 5]
        order.insert(higher + tied, 6)
        known = {"tied": tied, "entries": 7, "targets": 1, "tied_targets": 1, "best_wrong": 0}
        found.append({**identity(number), "higher": higher, **known, "top": order[:5]})
    return found


class Galleries(Made):
    """Queries by text, of seven images each; of key-002 by image, of texts."""

    def examples(self):  # type: ignore[no-untyped-def]
        for number in range(self.n):
            self.read += 1
            gallery = [picture(f"{number}-{place}", (30 * place, 90, 20 * number)) for place in range(7)]
            asked = {"image": None, "text": f"query <b>{number}</b>", "gallery": gallery}
            if number == 2:
                asked = {"image": gallery[0], "text": None, "gallery": [f"text {place}" for place in range(7)]}
            yield Query(**identity(number), **asked, targets=frozenset({6}))


def run(out: Path) -> BenchmarkResults:
    return measured_run(out, resamples=0)[0]


def test_queries_are_those_of_which_one_model_has_the_target_first_and_another_has_not(tmp_path: Path) -> None:
    save(tmp_path, "galleries", "a", rows([0, 3, 0, 0, 2]), SCHEMAS["query"])
    save(tmp_path, "galleries", "b", rows([0, 0, 5, 0, 1])[::-1], SCHEMAS["query"])
    save(tmp_path, "galleries", "c", [*rows([0, 1, 2]), *rows([0], tied=1, first=3)], SCHEMAS["query"])  # not key-004
    found = {one.key: [(of.model, of.before) for of in one.found] for one in strips_of(run(tmp_path))}
    assert found == {
        "key-001": [("b", 0), ("a", 3)],
        "key-002": [("a", 0), ("b", 5)],
        "key-003": [("a", 0), ("c", 1)],  # a tie is before the target
    }
    top = next(one for one in strips_of(run(tmp_path)) if one.key == "key-001").found
    assert [of.top for of in top] == [[6, 0, 1, 2, 3], [0, 1, 2, 6, 3]]
    # Groups are of three: of each its worst first. Each model in front comes before any comes twice.
    assert [one.key for one in strips_of(run(tmp_path), 2)] == ["key-002", "key-003"]


def test_a_model_without_first_entries_has_no_strip(tmp_path: Path) -> None:
    old = pa.schema([one for one in SCHEMAS["query"] if one.name != "top"])
    save(tmp_path, "galleries", "a", rows([0, 3]), SCHEMAS["query"])
    save(tmp_path, "galleries", "b", rows([1, 0]), old)
    assert strips_of(run(tmp_path)) == []
    save(tmp_path, "galleries", "c", [{**row, "top": None} for row in rows([1, 0])], SCHEMAS["query"])
    assert strips_of(run(tmp_path)) == []
    save(tmp_path, "galleries", "d", rows([1, 0]), SCHEMAS["query"], data_digest="e" * 64)
    assert strips_of(run(tmp_path)) == []
    assert "The first five" not in write_report(tmp_path, resamples=0)[0].read_text()


def test_pictures_are_read_once_and_kept(tmp_path: Path) -> None:
    save(tmp_path, "galleries", "a", rows([0, 3, 0, 0]), SCHEMAS["query"])
    save(tmp_path, "galleries", "b", rows([0, 0, 5, 0]), SCHEMAS["query"])
    results, made = run(tmp_path), Galleries("galleries", "query", 4)
    assert list(strip_blocks(tmp_path, results, None)) == []  # nowhere to read them from
    found = {query.key: (query, strips) for query, strips in strip_blocks(tmp_path, results, made)}
    assert made.read == 3
    (asked,), strips = found["key-001"][0].cells, found["key-001"][1]
    assert asked.image is None and [word for word, _ in asked.words] == ["query", "<b>1</b>"]
    framed = [[place for place, cell in enumerate(block.cells) if cell.outline == "right"] for _, block in strips]
    assert framed == [[0], [3]] and all(cell.image for _, block in strips for cell in block.cells)
    assert found["key-002"][0].cells[0].image
    assert [word for word, _ in found["key-002"][1][0][1].cells[0].words] == ["text", "6"]
    assert {query.key: (query, strips) for query, strips in strip_blocks(tmp_path, results, None)} == found
    page = write_report(tmp_path, resamples=0)[0].read_text()
    assert "The first five of two models" in page and "<b>1</b>" not in page and "b: the target is first" in page


def test_figures_are_those_without_first_entries(tmp_path: Path) -> None:
    old = pa.schema([one for one in SCHEMAS["query"] if one.name != "top"])
    save(tmp_path, "galleries", "a", rows([0, 3, 1]), SCHEMAS["query"])
    save(tmp_path, "galleries", "b", rows([0, 3, 1]), old)
    a, b = run(tmp_path).models
    assert a.all == b.all and [replace(one, scores={}) for one in a.mistakes] == [
        replace(one, scores={}) for one in b.mistakes
    ]
