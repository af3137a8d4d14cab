"""Readers of captions and of videos, a part that is drawn, and what `twinset eval benchmarks` lists."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.evaluation.benchmarks.made_files import put
from tests.evaluation.benchmarks.made_layouts import LAYOUTS, captioned, film, queries
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, KINDS, open_benchmark
from twinset.evaluation.benchmarks.boundaries import sampled
from twinset.evaluation.benchmarks.listing import listing
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Grounding, LeftOut, Matching

Opener = Callable[..., Reader]


def test_the_caption_of_another_image_that_reads_the_same_is_found_too(tmp_path: Path) -> None:
    captioned(tmp_path, file=(file := "dataset_flickr30k.json"))
    held = json.loads((tmp_path / file).read_text())
    first, second = (image["sentences"] for image in held["images"][1:])
    second[2]["raw"] = first[0]["raw"]
    put(tmp_path / file, held)
    ways = {one.key: one.targets for one in queries(open_benchmark("flickr30k", tmp_path))}
    assert ways["image-to-text/000000000391"] == {0, 1, 2, 3, 4, 7}
    assert ways["image-to-text/000000000522"] == {5, 6, 7, 8, 9, 10, 0}
    assert ways["text-to-image/000000000391/0"] == ways["text-to-image/000000000522/2"] == {0, 1}
    assert ways["text-to-image/000000000522/1"] == {1}


@given(gaps=st.lists(st.floats(0.005, 1.5), min_size=0, max_size=60))
def test_sampled_times_are_the_nearest_to_fifths_of_a_second(gaps: list[float]) -> None:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    found = sampled(times)
    assert found[0] == 0 and (np.diff(found) > 0).all() and np.isin(found, times).all()
    for number in range(int(times[-1] * 5) + 1):
        assert np.abs(found - number / 5).min() == pytest.approx(np.abs(times - number / 5).min())


def test_frames_are_five_a_second_and_know_their_times(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("gebc")
    found = [item for item in benchmark.examples() if isinstance(item, Grounding)]
    assert [one.key for one in found] == ["val/-0-s1eu4sF4_0A", "val/SIbQ1aJ8eLM_3A", "val/SIbQ1aJ8eLM_3B"]
    first, second, third = found
    assert first.times == pytest.approx(np.arange(10) / 5, abs=0.021) and len(first.frames) == 10
    assert first.captions == ("Person in red stands.", "Person in red sits down.")
    assert (first.boundary, first.category, first.group) == (0.5, "Change of Action", "-0-s1eu4sF4")
    assert second.frames is third.frames  # encoded once
    for at, shown in enumerate(first.frames):
        grey = np.asarray(Image.open(io.BytesIO(shown.read())))[4:-4, 4:-4].mean()
        assert grey == pytest.approx(4 * round(first.times[at] * 25), abs=4)


def test_what_cannot_be_grounded_is_counted(made_benchmark: Opener, tmp_path: Path) -> None:
    benchmark, video = made_benchmark("gebc"), tmp_path / "videos" / "SIbQ1aJ8eLM.mp4"
    film(tmp_path / "videos" / "-0-s1eu4sF4.mp4", 0.3)
    put(video, b"no video")
    broken = [item.reason for item in benchmark.items("val") if isinstance(item, LeftOut)]
    assert broken == ["boundary outside the video", "no words for one side", "broken video", "broken video"]
    film(video, 0.04)
    assert {item.reason for item in benchmark.items("val") if isinstance(item, LeftOut)} >= {"video of one frame"}
    with pytest.raises(WrongUse, match="all 4 examples are left out"):
        list(benchmark.examples())


def drawn(benchmark: Reader, limit: int, seed: int) -> list[str]:
    benchmark.draw(limit, seed)
    return [item.key for item in benchmark.examples() if isinstance(item, Matching)]


def test_a_part_is_the_same_again_others_by_another_seed_and_in_a_larger_one(made_benchmark: Opener) -> None:
    data = made_benchmark("sugarcrepe").data
    asked = [(limit, seed) for limit in (1, 2, 9) for seed in range(9)]
    parts = {one: drawn(open_benchmark("sugarcrepe", data), *one) for one in asked}
    assert {len(keys) for (limit, _), keys in parts.items() if limit == 1} == {2}, "one of each subset"
    assert all({*parts[1, seed]} < {*parts[2, seed]} < {*parts[9, seed]} for seed in range(9))
    assert len({*map(tuple, parts.values())}) > 9 and parts[1, 0] == drawn(open_benchmark("sugarcrepe", data), 1, 0)


def test_what_lies_in_a_folder_and_in_its_folders_is_counted_without_images(tmp_path: Path) -> None:
    for name in ("sugarcrepe", "genecis", "bivlc", "valse"):
        LAYOUTS[name](tmp_path / name)
    (tmp_path / "sugarcrepe" / "val2017" / "000000000001.jpg").unlink()
    listed = {one["name"]: one for one in listing(tmp_path)}
    assert [*listed] == BENCHMARKS.kinds() and listed["sugarcrepe"]["examples"] == 7511
    found = {name: one["present"] for name, one in listed.items() if one["present"] and name in KINDS}
    assert [*found] == ["bivlc", "genecis", "sugarcrepe", "valse"]
    assert found["sugarcrepe"] == [
        {"folder": f"{tmp_path}/sugarcrepe", "subsets": {"swap_obj": 3, "add_att": 3}, "left_out": {}}
    ]
    assert found["valse"][0]["left_out"] == {"foil not validated": 1}
