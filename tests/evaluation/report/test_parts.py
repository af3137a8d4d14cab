"""A part of a benchmark: never beside figures of the whole, with its number of examples, and a warning first."""

from pathlib import Path

import pytest

from tests.evaluation.report.made_scores import SCHEMAS, matchings, ranks, save
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.report.page import write_report

SUGARCREPE = BENCHMARKS.find("sugarcrepe").counts
PAPER = "CLIP TROHN"  # in a row of BiVLC's tables of SugarCrepe


def rows(counts: dict[str, int]) -> list[dict[str, object]]:
    """One image each."""
    subsets = [subset for subset, count in counts.items() for _ in range(count)]
    scores = matchings(len(subsets), 0, 0.1)
    return [
        {**row, "subset": subset, "category": subset, "s10": None, "s11": None}
        for row, subset in zip(scores, subsets, strict=True)
    ]


def written(out: Path, **about: object) -> dict[str, str]:
    """The tables of a report and its page, by name."""
    return {path.name: path.read_text() for path in write_report(out, resamples=0) if path.suffix != ".json"}


def test_the_whole_stands_beside_papers_with_its_number(tmp_path: Path) -> None:
    save(tmp_path, "sugarcrepe", "m", rows(dict(SUGARCREPE)), SCHEMAS["matching"], left_out={})
    found = written(tmp_path)
    assert all(PAPER in found[f"sugarcrepe-all{end}"] for end in (".csv", ".tex", "-compact.tex", "-compact.md"))
    assert "all examples; n = 7,511}" in found["sugarcrepe-all-compact.tex"]
    assert (
        "by subset; n = 692 add\\_att, 2,062 add\\_obj, 788 replace\\_att" in found["sugarcrepe-by-subset-compact.tex"]
    )
    assert 'class="warning"' not in found["report.html"].partition("<section")[0]


@pytest.mark.parametrize(
    ("counts", "left_out", "said"),
    [
        (
            {"swap_obj": 100, "add_att": 111},
            {"missing image": 7300},
            "211 of 937 examples; 7,300 left out: missing image",
        ),
        ({"swap_obj": 245}, {}, ""),  # --only
    ],
)
def test_a_part_stands_alone_with_its_number_and_a_warning(
    tmp_path: Path, counts: dict[str, int], left_out: dict[str, int], said: str
) -> None:
    save(tmp_path, "sugarcrepe", "m", rows(counts), SCHEMAS["matching"], left_out=left_out)
    found = written(tmp_path)
    assert not any(PAPER in text for text in found.values())
    n = f"n = {sum(counts.values()):,}"
    title = "examples that were scored" if said else "all examples"
    for name in ("sugarcrepe-all.tex", "sugarcrepe-all-compact.tex", "sugarcrepe-all-compact.md", "report.html"):
        assert f"{title}; {n}" in found[name], name
    assert found["sugarcrepe-all.csv"].splitlines()[0].startswith("model,n,")
    assert (said in found["report.html"].partition("<nav>")[2].partition("<section")[0]) and bool(said) == (
        'class="warning"' in found["report.html"].partition("<section")[0]
    )


def test_a_whole_subset_stands_beside_its_columns_and_others_are_empty(tmp_path: Path) -> None:
    counts = {"focus-attribute": 2000, "change-attribute": 30}
    queries = [
        {**row, "subset": subset}
        for row, subset in zip(ranks(2030), [name for name, count in counts.items() for _ in range(count)], strict=True)
    ]
    save(tmp_path, "genecis", "m", queries, SCHEMAS["query"], left_out={"missing image": 2082})
    lines = written(tmp_path)["genecis-papers-1.csv"].splitlines()
    assert lines[0].startswith("model,n,focus-attribute recall@1,") and lines[1].startswith("m,2000,6.7,13.4,20.1,,,")


def test_a_limit_is_a_part_also_of_a_benchmark_whose_size_is_not_known(tmp_path: Path) -> None:
    save(tmp_path, "mit-states", "m", ranks(40, 90), SCHEMAS["query"], left_out={}, limit=20)
    found = written(tmp_path)
    assert (
        "figures are of 20 examples of each subset." in found["report.html"]
        and "TIRG" not in found["mit-states-all.csv"]
    )
    save(tmp_path / "whole", "mit-states", "m", ranks(40, 90), SCHEMAS["query"], left_out={})
    assert "TIRG" in written(tmp_path / "whole")["mit-states-all.csv"]
