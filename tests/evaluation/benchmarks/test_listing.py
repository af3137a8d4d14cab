"""What `twinset eval benchmarks` lists: every benchmark with its release, and what of it lies in a folder."""

from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.evaluation.benchmarks.test_published_counts import SUGARCREPE
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, KINDS
from twinset.evaluation.benchmarks.listing import listing


def test_every_benchmark_says_how_large_it_is_and_where_it_comes_from() -> None:
    found = {one["name"]: one for one in listing()}
    assert [*found] == BENCHMARKS.kinds() and not any(one["present"] for one in found.values())
    assert all(one["obtained"] and one["licence"] for one in found.values())
    assert found["sugarcrepe"]["subsets"] == SUGARCREPE and found["sugarcrepe"]["examples"] == 7511


def test_what_lies_in_a_folder_and_in_its_folders_is_counted_without_images(tmp_path: Path) -> None:
    for name in ("sugarcrepe", "genecis", "bivlc"):
        LAYOUTS[name](tmp_path / name)
    (tmp_path / "sugarcrepe" / "val2017" / "000000000001.jpg").unlink()
    (tmp_path / "valse").mkdir()
    found = {one["name"]: one["present"] for one in listing(tmp_path)}
    assert [name for name, present in found.items() if present and name in KINDS] == [
        "bivlc",
        "genecis",
        "sugarcrepe",
        "valse",
    ]
    assert found["sugarcrepe"][0]["words"].startswith("6 examples; swap_obj: 3, the release has 245")
    assert found["valse"][0]["words"].startswith("holds no annotation of it (VALSE (2022)). Expected: ")


def test_a_folder_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no such folder"):
        listing(tmp_path / "nowhere")
