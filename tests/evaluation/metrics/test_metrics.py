"""Clusters are summed and counted as a loop would, and in an order that does not depend on that of rows.

Raw answers of two models to ColorSwap's 300 test pairs, read as their authors read them, give their group scores.
Two tables of scores compared row by row.
Correlations with ties, and their intervals.
EqBen's equivariance score.
"""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from tests.evaluation.benchmarks.test_published_counts import at_hand
from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import MATCHING_OUTCOMES
from twinset.evaluation.metrics import correlation
from twinset.evaluation.metrics.bootstrap import alike, distinct_rows
from twinset.evaluation.metrics.compare import compare, holm
from twinset.evaluation.metrics.correlation import correlations, rank_correlation
from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure
from twinset.generators.annotation_files import read_json
from twinset.generators.words_alone.guesses import sign_test

TRUTH = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]], np.uint8)
NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-200, 200), st.integers(-(2**40), 2**40))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=40))
def test_rows_are_counted_in_the_order_of_their_bytes(batch: list[tuple[int, int, int]]) -> None:
    rows, counts = distinct_rows(np.array(batch, np.int64), np.ones(len(batch), np.int64))
    assert {tuple(row): n for row, n in zip(rows.tolist(), counts.tolist(), strict=True)} == Counter(batch)
    wide = [row.tobytes() for row in rows]
    assert wide == sorted(wide) and len({*wide}) == len(wide)
    again = distinct_rows(np.array(batch[::-1], np.int64), np.full(len(batch), 2))
    np.testing.assert_array_equal(again[0], rows)
    np.testing.assert_array_equal(again[1], 2 * counts)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=50))
def test_clusters_are_summed_and_counted_like_a_loop(rows: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    codes, groups = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.uint64)
    sums, counts = alike(codes, TRUTH, groups)
    each = [tuple(TRUTH[codes[groups == group]].sum(0).tolist()) for group in np.unique(groups)]
    found = {tuple(row): count for row, count in zip(sums.tolist(), counts.tolist(), strict=True)}
    assert found == {row: each.count(row) for row in each}


def test_figures_do_not_depend_on_how_many_rows_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=3000).round(1) for name in ("s00", "s01", "s10", "s11")}
    identity = {"group": rng.integers(0, 400, 3000).astype(str), "half": rng.choice(["a", "b", "c"], 3000)}
    table = pa.table(identity | scores)
    whole = measure(table, ["half"])
    monkeypatch.setattr("twinset.evaluation.score_files.opening.ROWS", 70)
    blocks = measure(table, ["half"])
    for one, other in ((whole.all, blocks.all), *zip(whole.by.values(), blocks.by.values(), strict=True)):
        assert (one.n, one.groups, one.ties) == (other.n, other.groups, other.ties)
        for name, figure in one.figures.items():
            same = other.figures[name]
            if name.startswith("mean_"):  # sums of floating point numbers in another order
                assert (figure.value, figure.low) == pytest.approx((same.value, same.low), rel=1e-12)
            else:
                assert (figure.value, figure.low, figure.high) == (same.value, same.low, same.high)


#: What names a choice, wherever it stands in an answer; X is the letter. The authors read no other words.
ANYWHERE = (
    *("image presents (X)", "image presents option (X)", "image presents option X", "it would imply (X)"),
    *("it could metaphorically represent (X)", "it is (X)"),
)
FIRST = ("X)", "(X)", "Option X", "Option (X)")
SMALL = ("a", "an", "the", "with", "and")


def bare(text: str) -> str:
    """Without small words between others, and without one article at the start."""
    for word in SMALL:
        text = text.replace(f" {word} ", " ")
    for word in SMALL[:3]:
        text = text.removeprefix(f"{word} ")
    return text.lower()


def says(answer: str, own: str, other: str, letter: str, others: str) -> bool:
    small = answer.lower()
    if own.lower() in small and other.lower() not in small:
        return True
    if any(phrase.replace("X", letter).lower() in small for phrase in ANYWHERE) or answer == letter:
        return True
    if answer.startswith(tuple(phrase.replace("X", letter) for phrase in FIRST)):
        return True
    named = any(phrase.replace("X", letter).lower() in small for phrase in ("option X", "option (X)"))
    if named and f"{others})".lower() not in small:
        return True
    if f"this image presents {own}".lower() in small:
        return True
    return bare(own) in bare(answer) and bare(other) not in bare(answer)


def caption_of(record: dict[str, Any], image: int) -> str | None:
    """The letter of the caption that was chosen for an image; None where both or none is named."""
    asked = record[f"prompt_image_{image}"].removeprefix("Does this image present (A) ")
    first, second = asked.partition("? ")[0].split(", or (B) ")
    answer = record[f"response_image_{image}"]
    said = {"A": says(answer, first, second, "A", "B"), "B": says(answer, second, first, "B", "A")}
    return next(letter for letter in said if said[letter]) if sum(said.values()) == 1 else None


def image_of(record: dict[str, Any], caption: int) -> str | None:
    """Which image was chosen for a caption."""
    answer = record[f"response_caption_{caption}"].lower()

    def chosen(own: str, other: str) -> bool:
        phrases = (f"{own} image better aligns", f"{own} image aligns better", f"the {own} image is more relevant")
        return (own in answer and other not in answer) or any(phrase in answer for phrase in phrases)

    said = {"first": chosen("first", "second"), "second": chosen("second", "first")}
    return next(word for word in said if said[word]) if sum(said.values()) == 1 else None


@pytest.mark.parametrize(("model", "group"), [("llava", 42.0), ("llavar", 8.3)])
def test_group_scores_of_the_release(model: str, group: float) -> None:
    folder = at_hand("benchmarks/colorswap")
    texts, images = (read_json(folder / f"{kind}-{model}-colorswap.json.gz") for kind in ("text", "image"))
    rows = []
    for text, image in zip(texts, images, strict=True):
        right = [caption_of(text, n) == text[f"log_{n}"]["correct_answer"] for n in (1, 2)]
        right += [image_of(image, n) == image[f"log_{n}"]["correct_answer"] for n in (1, 2)]
        names = ("text_score_i0", "text_score_i1", "image_score_c0", "image_score_c1")
        named = {"key": str(text["id"]), "subset": "test", "category": "", "group": str(text["id"])}
        rows.append(named | dict(zip(names, right, strict=True)))
    found = measure(pa.Table.from_pylist(rows, MATCHING_OUTCOMES), resamples=0).all
    assert found.n == 300 and round(found.figures["group"].value, 1) == group


def scores(n: int, lead: float, seed: int, **columns: Any) -> pa.Table:
    drawn = np.random.default_rng(seed).normal(size=(4, n))
    drawn[[0, 3]] += lead
    return pa.table({"key": [f"k{row}" for row in range(n)]} | dict(zip(SCORES, drawn, strict=True)) | columns)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_binomial_test(only_a: int, only_b: int) -> None:
    wanted = scipy.stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert sign_test(only_a, only_b) == pytest.approx(wanted, rel=1e-9, abs=1e-250)


@pytest.mark.parametrize(("only_a", "only_b"), [(500_000, 502_000), (1, 40), (0, 5), (7, 7), (8, 7)])
def test_mcnemar_of_extremes(only_a: int, only_b: int) -> None:
    assert sign_test(only_a, only_b) == pytest.approx(scipy.stats.binomtest(only_a, only_a + only_b).pvalue, rel=1e-7)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1] and holm([]) == []


def test_compare_equals_measuring_both_and_a_loop_over_pairs() -> None:
    half = ["x", "y"] * 100
    a, b = scores(200, 1.0, 0, type=half), scores(200, 0.6, 1, type=half)
    found = compare(a, b, ["type"])
    assert [(line.rows, line.figure) for line in found.table] == [
        (rows, figure) for rows in ("all", "x", "y") for figure in ("text", "image", "group")
    ]
    one, other = (measure(table, ["type"], resamples=0) for table in (a, b))
    for line in found.table:
        first, second = ((which.all if line.rows == "all" else which.by[line.rows]) for which in (one, other))
        assert (line.a, line.b) == pytest.approx((first.figures[line.figure].value, second.figures[line.figure].value))
        assert line.difference == pytest.approx(line.a - line.b)
        assert line.p == pytest.approx(scipy.stats.binomtest(line.only_a, line.only_a + line.only_b).pvalue)
        assert line.low is not None and line.high is not None and line.low < line.difference < line.high
    assert [line.p_holm for line in found.table] == pytest.approx(holm([line.p for line in found.table]))
    right = [
        np.array([row["s00"] > row["s01"] and row["s11"] > row["s10"] for row in table.to_pylist()]) for table in (a, b)
    ]
    assert found.table[0].only_a == (right[0] & ~right[1]).sum()


def test_the_interval_is_paired_and_clustered() -> None:
    groups = [f"g{row // 5}" for row in range(500)]
    a = scores(500, 1.0, 0, group=groups)
    same = compare(a, a)
    assert {(line.difference, line.low, line.high, line.p) for line in same.table} == {(0, 0, 0, 1)}
    assert same.table[0].groups == 100
    b = scores(500, 1.0, 1)
    rng, right = np.random.default_rng(0), []
    for table in (a, b):
        s00, s01, s10, s11 = (table[name].to_numpy() for name in SCORES)
        right.append((s00 > s01) & (s11 > s10))
    difference = (right[0].astype(int) - right[1]).reshape(100, 5).sum(1)
    drawn = [100 * difference[rng.integers(0, 100, 100)].sum() / 500 for _ in range(4000)]
    line = compare(a, b, resamples=4000).table[0]
    assert (line.low, line.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=1.0)


def test_rows_are_joined_by_key_and_the_others_counted() -> None:
    a, b = scores(100, 1.0, 0), scores(100, 0.5, 1)
    whole = compare(a, b, resamples=0)
    shuffled = b.take(np.random.default_rng(0).permutation(100))
    assert compare(a, shuffled, resamples=0) == whole
    found = compare(a, b.slice(30), resamples=0)
    assert (found.n, found.only_in_a, found.only_in_b) == (70, 30, 0)
    assert any("30 rows of table are not in table" in note for note in found.notes)


def test_recall_and_outcomes_and_chosen_figures() -> None:
    ranks = {"key": ["a", "b"], "tied": [0, 0], "entries": [15, 15], "targets": [1, 1]}
    found = compare(pa.table(ranks | {"higher": [0, 1]}), pa.table(ranks | {"higher": [0, 0]}))
    assert [(line.figure, line.a, line.b) for line in found.table][:2] == [
        ("recall@1", 50, 100),
        ("recall@2", 100, 100),
    ]
    a, b = scores(20, 1.0, 0), scores(20, 1.0, 1)
    assert [line.figure for line in compare(a, b, figures=["tpos2i"]).table] == ["tpos2i"]
    with pytest.raises(WrongUse, match="--figures accuracy: the files have text, image"):
        compare(a, b, figures=["accuracy"])
    outcomes = pa.table({"correct": [1, 0, 1]}), pa.table({"correct": [1, 1, 1]})
    (line,) = compare(*outcomes, key=None).table
    assert (line.only_a, line.only_b, line.p) == (0, 1, 1)


def test_files_that_cannot_be_compared() -> None:
    a = scores(5, 1.0, 0)
    double = pa.concat_tables([a, a.slice(2, 1)])
    for pair in ((double, a), (a, double)):
        with pytest.raises(WrongUse, match="rows 3 and 6 have the same key"):
            compare(*pair)
    with pytest.raises(WrongUse, match="no key in common"):
        compare(a, a.set_column(0, "key", [["1", "2", "3", "4", "5"]]))
    with pytest.raises(WrongUse, match="different kinds"):
        compare(a, pa.table({"key": ["k1"], "higher": [0], "tied": [0], "entries": [9], "targets": [1]}))
    with pytest.raises(WrongUse, match="no column 'name' for --key"):
        compare(a, a, key=["name"])
    with pytest.raises(WrongUse, match="5 and 4 rows"):
        compare(a, a.slice(1), key=None)
    with pytest.raises(WrongUse, match="some rows have one image"):
        compare(a, a.select(["key", "s00", "s01"]))


def test_figures_of_a_threshold_are_compared_where_both_files_have_one() -> None:
    table = pa.table({"key": ["a", "b"], "s00": [0.9, 0.8], "s01": [0.1, 0.2]})
    told = table.replace_schema_metadata({"twinset": '{"threshold": 0.5}'})
    assert [row.b for row in compare(told, told, figures=["p_c"]).table] == [100]
    for pair in ((told, table), (table, told)):
        with pytest.raises(WrongUse, match="--figures p_c: the files have accuracy"):
            compare(*pair, figures=["p_c"])


SCIPY = {"kendall": kendalltau, "spearman": spearmanr, "pearson": pearsonr}


@pytest.mark.parametrize("seed", range(3))
def test_they_are_scipys_with_ties(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(seed).integers(0, 6, (2, 30)).tolist()
    found = correlations(a, b, None)
    for name, theirs in SCIPY.items():
        one = found[name]
        assert one.value == pytest.approx(theirs(a, b).statistic)
        draws = np.random.default_rng(1).integers(0, 30, (600, 30))
        again = [theirs(np.array(a)[draw], np.array(b)[draw]).statistic for draw in draws]
        assert (one.low, one.high) == pytest.approx(tuple(np.percentile(again, [2.5, 97.5])), abs=0.1)
    assert rank_correlation(a, b) == found["kendall"]
    monkeypatch.setattr(correlation, "_CELLS", 1 + len({*a}) * len({*b}))  # a table at a time
    assert correlations(a, b, None, resamples=50)["pearson"].low is not None


def test_one_order_and_the_reverse() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]).value == 1
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]).value == -1
    for one in correlations([1, 2, 3, 4], [5, 5, 5, 5], None).values():
        assert np.isnan(one.value) and one.low is None


def test_rows_of_a_group_are_drawn_together() -> None:
    draw = np.random.default_rng(0)
    a = draw.normal(size=40).round(1)
    b = (a + draw.normal(size=40)).round(1)
    groups = [str(n) for n in range(40)]
    alone, whole = (correlations(list(x), list(y), g) for x, y, g in (
        (a, b, groups), (np.tile(a, 4), np.tile(b, 4), groups * 4),
    ))  # fmt: skip
    for name in SCIPY:  # four copies of a row are no more evidence than one, if they are a group
        assert (whole[name].low, whole[name].high) == pytest.approx((alone[name].low, alone[name].high), abs=1e-6)
    assert correlations([1, 2, 3], [1, 3, 2], ["a"] * 3)["kendall"].low is None


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "_CELLS", 8)
    with pytest.raises(WrongUse, match="3 and 3 different values are too many"):
        correlations([1, 2, 3], [1, 2, 3], None)


def table(n: int = 500) -> pa.Table:
    scores = np.random.default_rng(0).normal(size=(4, n))
    return pa.table(dict(zip(SCORES, scores, strict=True)) | {"subset": ["a", "b"] * (n // 2)})


def test_the_mean_equals_a_loop() -> None:
    scores = table()
    rows = [tuple(row[name] for name in SCORES) for row in scores.to_pylist()]
    text = np.array([(s00 - s01) - (s11 - s10) for s00, s01, s10, s11 in rows])
    image = np.array([(s00 - s10) - (s11 - s01) for s00, s01, s10, s11 in rows])
    figures = measure(scores).all.figures
    for name, values in (("text", text), ("image", image)):
        figure = figures[f"mean_equivariance_{name}"]
        assert figure.value == pytest.approx(np.abs(values).mean())
        error = np.abs(values).std(ddof=1) / 500**0.5
        assert (figure.low, figure.high) == pytest.approx(
            (figure.value - 1.96 * error, figure.value + 1.96 * error), 1e-3
        )
        grouped = measure(scores.append_column("group", [[str(n) for n in range(500)]])).all.figures
        assert grouped[f"mean_equivariance_{name}"].low == pytest.approx(figure.low, rel=1e-5)


def test_an_interval_of_a_mean_that_cannot_be_negative_begins_at_0_or_above() -> None:
    scores = pa.table({"s00": [0.5, 0.5, 5.0], "s01": [0.0] * 3, "s10": [0.0] * 3, "s11": [0.5, 0.5, 0.5]})
    figure = measure(scores).all.figures["mean_equivariance_text"]
    assert figure.value == 1.5 and figure.low == 0


def test_an_equivariant_model_has_0_everywhere() -> None:
    exact = pa.table({"s00": [0.5, 0.75], "s01": [0.25, 0.5], "s10": [0.25, 0.5], "s11": [0.5, 0.75]})
    assert measure(exact).all.figures["mean_equivariance_text"].value == 0


def test_one_image_has_no_equivariance() -> None:
    one = pa.table({"s00": [1.0], "s01": [0.0], "s10": pa.nulls(1, pa.float32()), "s11": pa.nulls(1, pa.float32())})
    assert "mean_equivariance_text" not in measure(one).all.figures
