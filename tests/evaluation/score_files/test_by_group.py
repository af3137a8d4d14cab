"""Rows come back group by group, from memory or from a temporary file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.by_group import RowsByGroup
from twinset.evaluation.score_files.identity import digests
from twinset.manifests.errors import WrongUse

ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=200)


def of(texts: list[str]) -> Batch:
    return Batch("here", 1, {"group": pa.array(texts)})


@pytest.mark.parametrize("held", [1, 16, 10_000])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_parts_hold_all_rows_and_cut_no_group(
    rows: list[tuple[int, int, int]], held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinset.evaluation.score_files.by_group.HELD", held)
    groups = digests(of([f"video-{group}" for group, _, _ in rows]), ["group"])
    labels, codes = (np.array(column, np.uint16) for column in [*zip(*rows, strict=True)][1:])
    numbers = np.arange(len(rows), dtype=np.float32)[:, None]
    kept = RowsByGroup(1)
    for begin in range(0, len(rows), 7):
        some = slice(begin, begin + 7)
        kept.add(groups[some], labels[some], codes[some], numbers[some])
    parts = [*kept.parts()]
    kept.close()
    together = np.concatenate(parts)
    order = np.lexsort((numbers[:, 0], labels, groups))
    for name, column in (("group", groups), ("label", labels), ("code", codes), ("numbers", numbers)):
        np.testing.assert_array_equal(together[name], column[order])
    seen = [{*part["group"].tolist()} for part in parts]
    assert sum(map(len, seen)) == len({*groups.tolist()})


def test_parts_are_about_as_large_as_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.evaluation.score_files.by_group.HELD", 5000)
    kept, n = RowsByGroup(0), 40_000
    groups = digests(of([f"video-{row // 2:08d}.mp4" for row in range(n)]), ["group"])
    for some in np.array_split(np.arange(n), 25):
        kept.add(groups[some], np.zeros(len(some), np.uint16), np.zeros(len(some), np.uint16), np.empty((len(some), 0)))
    sizes = [len(part) for part in kept.parts()]
    kept.close()
    assert sum(sizes) == n and max(sizes) <= 5000 and len(sizes) < 12


def test_figures_do_not_depend_on_where_rows_were_held(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=3000).round(1) for name in ("s00", "s01", "s10", "s11")}
    identity = {"group": rng.integers(0, 400, 3000).astype(str), "half": rng.choice(["a", "b", "c"], 3000)}
    table = pa.table(identity | scores)
    memory = measure(table, ["half"])
    monkeypatch.setattr("twinset.evaluation.score_files.by_group.HELD", 100)
    monkeypatch.setattr("twinset.evaluation.score_files.opening.ROWS", 70)
    monkeypatch.setattr("twinset.evaluation.metrics.clusters._ROWS", 50)
    file = measure(table, ["half"])
    for one, other in ((memory.all, file.all), *zip(memory.by.values(), file.by.values(), strict=True)):
        assert (one.n, one.groups, one.ties) == (other.n, other.groups, other.ties)
        for name, figure in one.figures.items():
            same = other.figures[name]
            if name.startswith("mean_"):  # sums of floating point numbers in another order
                assert (figure.value, figure.low) == pytest.approx((same.value, same.low), rel=1e-12)
            else:
                assert (figure.value, figure.low, figure.high) == (same.value, same.low, same.high)


def test_no_room_for_the_temporary_file_is_an_error_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinset.evaluation.score_files.by_group.HELD", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(WrongUse, match=r"absent: cannot hold the rows .* set TMPDIR .* room for 12 bytes"):
        measure(pa.table({"correct": [True, False], "group": ["a", "b"]}))


def test_digests_tell_values_apart() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "ä", *("x" * n for n in (7, 8, 9, 255, 256, 257, 3000)), "x" * 2999 + "y"]
    texts += [f"{kind}{row}" for kind in ("", "video-", "a long name of a video, ") for row in range(50_000)]
    found = digests(of(texts), ["group"])
    assert len({*found.tolist()}) == len(texts)
    # The first bits are as good as the others: they choose the part of a row.
    shares = np.bincount((found >> np.uint64(60)).astype(int)) / len(texts)
    np.testing.assert_allclose(shares, 1 / 16, rtol=0.05)
    sliced = Batch("here", 1, {"group": pa.array(texts).slice(3, 11)})
    np.testing.assert_array_equal(digests(sliced, ["group"]), found[3:14])
