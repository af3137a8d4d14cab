"""What `twinset eval benchmarks` lists: every benchmark with its release, and what of it lies in a folder."""

from pathlib import Path

import pytest

from tests.evaluation.benchmarks.made_layouts import LAYOUTS
from tests.evaluation.benchmarks.test_published_counts import SUGARCREPE
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.evaluation.benchmarks.listing import listing


def test_every_benchmark_says_how_large_it_is_and_where_it_comes_from() -> None:
    found = {one["name"]: one for one in listing()}
    assert [*found] == BENCHMARKS.kinds() and not any(one["present"] for one in found.values())
    assert all(one["obtained"] and one["licence"] for one in found.values())
    assert found["sugarcrepe"]["subsets"] == SUGARCREPE and found["sugarcrepe"]["examples"] == 7511


def test_what_lies_in_a_folder_and_in_its_folders_is_counted_without_images(tmp_path: Path) -> None:
    for name in ("cola", "spec", "mmvp"):
        LAYOUTS[name](tmp_path / name)
    (tmp_path / "cola" / "vg" / "1.jpg").unlink()
    (tmp_path / "colorswap").mkdir()
    found = {one["name"]: one["present"] for one in listing(tmp_path)}
    assert [name for name, present in found.items() if present] == ["cola", "colorswap", "mmvp", "spec"]
    assert found["cola"][0]["words"] == "3 examples; multi-objects: 3, the release has 210"
    assert found["colorswap"][0]["words"].startswith(
        "holds no annotation of it (ColorSwap (2024)). Expected: test.json"
    )


def test_a_folder_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no such folder"):
        listing(tmp_path / "nowhere")
