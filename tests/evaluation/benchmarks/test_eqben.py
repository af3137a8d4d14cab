"""EqBen's layouts, and images within Parquet files."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.benchmarks.made_files import parquet, picture, put
from tests.evaluation.benchmarks.made_layouts import bivlc, bivlc_rows, matchings, pixels
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut, Matching

Opener = Callable[..., Reader]


def test_frames_of_youcook2_are_turned_from_bgr(made_benchmark: Opener) -> None:
    found = matchings(made_benchmark("eqben", "eq-youcook2"))
    expected = np.asarray(Image.open(io.BytesIO(picture(12, "PNG"))).convert("RGB"))
    assert np.array_equal(pixels(found[0].images[0]), expected) and expected[0, 0].tolist() == [120, 100, 30]


def test_a_file_that_holds_other_objects_is_not_unpickled(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("eqben", "eq-youcook2")
    where = Path(matchings(benchmark)[0].images[0].where)
    np.save(where, np.array([{}]), allow_pickle=True)
    unclosed = b"{'descr': ("  # which Python's tokenizer has an error of its own for
    header = b"\x93NUMPY\1\0" + len(unclosed).to_bytes(2, "little") + unclosed
    for damaged in (where.read_bytes(), b"\x93NUMPY", header):
        where.write_bytes(damaged)
        with pytest.raises(WrongUse, match="not an array"):
            matchings(open_benchmark("eqben", benchmark.data, ["eq-youcook2"]))[0].images[0].read()


def test_eqbens_videos_are_groups_and_its_random_rows_are_passed_over(made_benchmark: Opener) -> None:
    found = matchings(made_benchmark("eqben"))
    assert {one.group for one in found if one.subset == "eq-ag"} == {"VIDEO0", "VIDEO1"}
    assert len({one.group for one in found if one.subset == "eq-sd"}) == 3
    assert found[0].captions == ("a red cup", "no cup")
    assert found[0].images[0].where.endswith("image/eqbenag/VIDEO0/000000.jpg")  # the annotation says .png


@pytest.mark.parametrize("nested", ["video", "object"])
def test_eqbens_files_by_video_are_read(made_benchmark: Opener, nested: str) -> None:
    benchmark = made_benchmark("eqben", "eq-ag")
    flat = matchings(benchmark)
    path = benchmark.data / "ann" / "all_select.json"
    pairs = [pair for pair in json.loads(path.read_text()) if pair["image0"].startswith("eqbenag")]
    by_video = {video: [pair for pair in pairs if f"/{video}/" in pair["image0"]] for video in ("VIDEO0", "VIDEO1")}
    by_object = {video: {"cup/glass": found[:1], "phone": found[1:]} for video, found in by_video.items()}
    put(path, by_video if nested == "video" else by_object)
    found = matchings(open_benchmark("eqben", benchmark.data, ["eq-ag"]))
    assert [(one.captions, one.group) for one in found] == [
        (one.captions, one.group) for one in sorted(flat, key=lambda one: one.group)
    ]


def test_a_pair_in_two_files_is_refused(made_benchmark: Opener) -> None:
    path = made_benchmark("eqben").data / "ann/all_select.json"
    put(path.parent / "subset.json", json.loads(path.read_text())[:1])
    with pytest.raises(WrongUse, match=r"subset\.json record 0: this pair is in .*all_select\.json too"):
        list(open_benchmark("eqben", path.parents[1]).examples())


IMAGES = ("image", "negative_image")


def test_rows_of_one_photo_are_one_group(tmp_path: Path) -> None:
    bivlc(tmp_path)
    found = [item for item in open_benchmark("bivlc", tmp_path).examples() if isinstance(item, Matching)]
    assert [one.key for one in found] == [f"test/{n:06d}" for n in range(4)]
    assert found[0].group == found[1].group != found[2].group == found[3].group
    assert {one.category for one in found} == {"replace_att"}


def test_a_part_that_was_not_fetched_is_missed_and_two_configurations_are_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        parquet(tmp_path / "two" / name / "test/0000.parquet", bivlc_rows(1), IMAGES)
    with pytest.raises(WrongUse, match=r"other/test/0000\.parquet is of the split test too"):
        open_benchmark("bivlc", tmp_path / "two")
    bivlc(tmp_path)
    next((tmp_path / "data").glob("*-00001-of-*")).unlink()
    with pytest.raises(WrongUse, match="1 of the 2 parts of test are there"):
        open_benchmark("bivlc", tmp_path)


def test_a_row_without_an_image_is_left_out(tmp_path: Path) -> None:
    rows = bivlc_rows(3)
    rows[1]["image"] = {"bytes": None, "path": "000000000001.jpg"}
    rows[2]["negative_image"] = None
    parquet(tmp_path / "test.parquet", rows, IMAGES)
    items = list(open_benchmark("bivlc", tmp_path).examples())
    assert [isinstance(item, LeftOut) for item in items] == [False, True, False]
    assert isinstance(items[2], Matching)
    with pytest.raises(WrongUse, match=r"test\.parquet: row 3 negative_image holds no image"):
        items[2].images[1].read()
