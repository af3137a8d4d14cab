"""Readers of released layouts, with their traps one by one; a part that is drawn; a benchmark of one's own."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import tests.evaluation.benchmarks.made_layouts as layouts
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.benchmarks.boundaries import sampled
from twinset.evaluation.benchmarks.listing import listing
from twinset.evaluation.benchmarks.reader import Pairs, Reader
from twinset.evaluation.examples import Grounding, LeftOut, Matching, Query

Opener = Callable[..., Reader]


@pytest.fixture
def made_benchmark(tmp_path: Path) -> Opener:
    """Writes the tiny layout of a benchmark into the test's folder, and opens it."""

    def make(name: str, *subsets: str) -> Reader:
        layouts.LAYOUTS[name](tmp_path)
        return open_benchmark(name, tmp_path, subsets)

    return make


def test_the_caption_of_another_image_that_reads_the_same_is_found_too(tmp_path: Path) -> None:
    layouts.captioned(tmp_path, file=(file := "dataset_flickr30k.json"))
    held = json.loads((tmp_path / file).read_text())
    first, second = (image["sentences"] for image in held["images"][1:])
    second[2]["raw"] = first[0]["raw"]
    layouts.put(tmp_path / file, held)
    ways = {query.key: query.targets for query in layouts.queries(open_benchmark("flickr30k", tmp_path))}
    assert ways["image-to-text/000000000391"] == {0, 1, 2, 3, 4, 7}
    assert ways["image-to-text/000000000522"] == {5, 6, 7, 8, 9, 10, 0}
    assert ways["text-to-image/000000000391/0"] == ways["text-to-image/000000000522/2"] == {0, 1}
    assert ways["text-to-image/000000000522/1"] == {1}


@given(gaps=st.lists(st.floats(0.005, 1.5), min_size=0, max_size=60))
def test_sampled_times_are_the_nearest_to_fifths_of_a_second(gaps: list[float]) -> None:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    kept = sampled(times)
    assert kept[0] == 0 and (np.diff(kept) > 0).all() and np.isin(kept, times).all()
    for number in range(int(times[-1] * 5) + 1):
        assert np.abs(kept - number / 5).min() == pytest.approx(np.abs(times - number / 5).min())


def test_frames_are_five_a_second_and_know_their_times(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("gebc")
    first, second, third = (item for item in benchmark.examples() if isinstance(item, Grounding))
    assert (first.key, second.key) == ("val/-0-s1eu4sF4_0A", "val/SIbQ1aJ8eLM_3A")
    assert first.times == pytest.approx(np.arange(10) / 5, abs=0.021) and len(first.frames) == 10
    assert first.captions == ("Person in red stands.", "Person in red sits down.")
    assert (first.boundary, first.category, first.group) == (0.5, "Change of Action", "-0-s1eu4sF4")
    assert second.frames is third.frames  # encoded once
    for at, shown in enumerate(first.frames):
        grey = np.asarray(Image.open(io.BytesIO(shown.read())))[4:-4, 4:-4].mean()
        assert grey == pytest.approx(4 * round(first.times[at] * 25), abs=4)


def test_what_cannot_be_grounded_is_counted(made_benchmark: Opener, tmp_path: Path) -> None:
    benchmark, video = made_benchmark("gebc"), tmp_path / "videos" / "SIbQ1aJ8eLM.mp4"
    layouts.film(tmp_path / "videos" / "-0-s1eu4sF4.mp4", 0.3)
    layouts.put(video, b"no video")
    broken = [item.reason for item in benchmark.items("val") if isinstance(item, LeftOut)]
    assert broken == ["boundary outside the video", "no words for one side", "broken video", "broken video"]
    layouts.film(video, 0.04)
    assert {item.reason for item in benchmark.items("val") if isinstance(item, LeftOut)} >= {"video of one frame"}
    with pytest.raises(WrongUse, match="all 4 examples are left out"):
        list(benchmark.examples())


def drawn(benchmark: Reader, limit: int, seed: int) -> list[str]:
    benchmark.draw(limit, seed)
    return [item.key for item in benchmark.examples() if isinstance(item, Matching)]


def test_a_part_is_the_same_again_others_by_another_seed_and_in_a_larger_one(made_benchmark: Opener) -> None:
    data = made_benchmark("sugarcrepe").data
    asked = [(limit, seed) for limit in (1, 2, 9) for seed in range(4)]
    parts = {part: drawn(open_benchmark("sugarcrepe", data), *part) for part in asked}
    assert {len(keys) for (limit, _), keys in parts.items() if limit == 1} == {2}, "one of each subset"
    assert all({*parts[1, seed]} < {*parts[2, seed]} < {*parts[9, seed]} for seed in range(4))
    assert len({*map(tuple, parts.values())}) > 5 and parts[1, 0] == drawn(open_benchmark("sugarcrepe", data), 1, 0)


def test_what_lies_in_a_folder_and_in_its_folders_is_counted_without_images(tmp_path: Path) -> None:
    for name in ("sugarcrepe", "valse"):
        layouts.LAYOUTS[name](tmp_path / name)
    (tmp_path / "sugarcrepe" / "val2017" / "000000000001.jpg").unlink()
    listed = {row["name"]: row for row in listing(tmp_path)}
    assert [*listed] == BENCHMARKS.kinds() and listed["sugarcrepe"]["examples"] == 7511
    (valse,) = listed["valse"]["present"]
    subsets = {"existence": 1, "foil-it": 2}
    assert valse == {"folder": f"{tmp_path}/valse", "subsets": subsets, "left_out": {"foil not validated": 1}}
    assert listed["sugarcrepe"]["present"] and not listed["cirr"]["present"]


def test_crops_of_visual_genome_are_those_of_the_released_loader(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("genecis", "focus-attribute")
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    Image.fromarray(noise).save(benchmark.data / "VG_100K" / "0.jpg", quality=95)
    template = json.loads((benchmark.data / "focus_attribute.json").read_text())[:1]
    x, y, width, height = template[0]["reference"]["instance_bbox"] = [30.5, 10.0, 20.0, 31.0]
    layouts.put(benchmark.data / "focus_attribute.json", template)
    whole = Image.open(benchmark.data / "VG_100K" / "0.jpg").convert("RGB")
    left, top = max(0, x - 0.7 * width), max(0, y - 0.7 * height)
    cut = whole.crop((left, top, min(80, left + 1.7 * width), min(60, top + 1.7 * height)))
    side = max(cut.size)
    expected = Image.new("RGB", (side, side))
    expected.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
    (query,) = layouts.queries(benchmark)
    assert np.array_equal(layouts.pixels(query.image), np.asarray(expected))


def test_a_box_that_leaves_the_image_is_black_there_as_in_aros_code(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("aro", "relation")
    path = benchmark.data / "visual_genome_relation.json"
    (row,) = json.loads(path.read_text())
    layouts.put(path, [{**row, "bbox_x": -5, "bbox_w": 40}, {**row, "bbox_x": 24}, {**row, "bbox_w": 10**8}])
    cut, *wrong = (item.images[0] for item in layouts.matchings(benchmark))
    whole = Image.open(benchmark.data / "images/0.jpg").convert("RGB")
    assert np.array_equal(layouts.pixels(cut), np.asarray(whole.crop((-5, 3, 35, 12))))
    for shown in wrong:
        with pytest.raises(WrongUse, match="has no pixel in an image of"):
            shown.read()


def test_cirr_masks_the_reference_in_both_galleries(made_benchmark: Opener) -> None:
    asked = layouts.queries(made_benchmark("cirr"))
    whole, part = asked[0], asked[3]
    assert (whole.key, part.key) == ("global/12060", "subset/12060") and {query.group for query in asked} == {"set-36"}
    assert len(whole.gallery) == 8 and (whole.targets, whole.excluded) == ({1}, {0})
    assert len(part.gallery) == 6 and (part.targets, part.excluded) == ({4}, {5})
    assert all(query.gallery is whole.gallery for query in asked[:3])
    (Path(whole.gallery[7].where)).unlink()  # type: ignore[union-attr]
    left = list(open_benchmark("cirr", Path(whole.image.where).parents[2], ["global"]).examples())  # type: ignore[union-attr]
    assert [item.reason for item in left if isinstance(item, LeftOut)] == ["missing gallery image"]
    assert {len(item.gallery) for item in left if isinstance(item, Query)} == {7}


def test_mit_states_asks_for_every_other_adjective_of_a_test_noun(made_benchmark: Opener) -> None:
    first, *rest = layouts.queries(made_benchmark("mit-states"))
    gallery = [Path(entry.where).parent.name for entry in first.gallery]  # type: ignore[union-attr]
    folders = ("moldy tomato", "old castle", "ripe tomato", "sliced tomato")
    assert gallery == [folder for folder in folders for _ in range(2)]
    assert len(rest) == 11  # a castle in one state alone is not asked for, but ranked; no pear is a test noun
    assert (first.key, first.text, first.category) == ("moldy tomato/moldy_0.jpg/ripe", "ripe", "tomato")
    assert (first.targets, first.excluded) == ({4, 5}, {0})


def test_frames_of_youcook2_are_turned_from_bgr(made_benchmark: Opener) -> None:
    first, *_ = layouts.matchings(made_benchmark("eqben", "eq-youcook2"))
    assert layouts.pixels(first.images[0])[0, 0].tolist() == [120, 100, 30]


def test_a_file_that_holds_other_objects_is_not_unpickled(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("eqben", "eq-youcook2")
    where = Path(layouts.matchings(benchmark)[0].images[0].where)
    np.save(where, np.array([{}]), allow_pickle=True)
    unclosed = b"{'descr': ("  # which Python's tokenizer has an error of its own for
    header = b"\x93NUMPY\1\0" + len(unclosed).to_bytes(2, "little") + unclosed
    for damaged in (where.read_bytes(), header):
        where.write_bytes(damaged)
        with pytest.raises(WrongUse, match="not an array"):
            layouts.matchings(open_benchmark("eqben", benchmark.data, ["eq-youcook2"]))[0].images[0].read()


def test_eqbens_videos_are_groups_and_its_random_rows_are_passed_over(made_benchmark: Opener) -> None:
    items = layouts.matchings(made_benchmark("eqben"))
    assert {item.group for item in items if item.subset == "eq-ag"} == {"VIDEO0", "VIDEO1"}
    assert len({item.group for item in items if item.subset == "eq-sd"}) == 3
    assert items[0].captions == ("a red cup", "no cup")
    assert items[0].images[0].where.endswith("image/eqbenag/VIDEO0/000000.jpg")  # the annotation says .png


def test_eqbens_files_by_video_are_read(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("eqben", "eq-ag")
    flat = sorted((item.group, item.captions) for item in layouts.matchings(benchmark))
    path = benchmark.data / "ann" / "all_select.json"
    first, second, third = (pair for pair in json.loads(path.read_text()) if pair["image0"].startswith("eqbenag"))
    for pairs in ([first, third], {"cup/glass": [first], "phone": [third]}):
        layouts.put(path, {"VIDEO0": pairs, "VIDEO1": [second] if isinstance(pairs, list) else {"cup": [second]}})
        nested = layouts.matchings(open_benchmark("eqben", benchmark.data, ["eq-ag"]))
        assert sorted((item.group, item.captions) for item in nested) == flat


IMAGES = ("image", "negative_image")


def test_rows_of_one_photo_are_one_group_and_parts_and_configurations_are_counted(tmp_path: Path) -> None:
    for name in ("one", "other"):
        layouts.parquet(tmp_path / "two" / name / "test/0000.parquet", layouts.bivlc_rows(1), IMAGES)
    with pytest.raises(WrongUse, match=r"other/test/0000\.parquet is of the split test too"):
        open_benchmark("bivlc", tmp_path / "two")
    layouts.bivlc(tmp_path)
    first, second, *rest = layouts.matchings(open_benchmark("bivlc", tmp_path))
    assert first.group == second.group and first.group not in {item.group for item in rest}
    assert (first.key, first.category) == ("test/000000", "replace_att")
    next((tmp_path / "data").glob("*-00001-of-*")).unlink()
    with pytest.raises(WrongUse, match="1 of the 2 parts of test are there"):
        open_benchmark("bivlc", tmp_path)


def test_a_row_without_an_image_is_left_out(tmp_path: Path) -> None:
    rows = layouts.bivlc_rows(3)
    rows[1]["image"] = {"bytes": None, "path": "000000000001.jpg"}
    rows[2]["negative_image"] = None
    layouts.parquet(tmp_path / "test.parquet", rows, IMAGES)
    items = list(open_benchmark("bivlc", tmp_path).examples())
    assert [isinstance(item, LeftOut) for item in items] == [False, True, False]
    assert isinstance(items[2], Matching)
    with pytest.raises(WrongUse, match=r"test\.parquet: row 3 negative_image holds no image"):
        items[2].images[1].read()


DOCS = Path(__file__).parents[3] / "docs/extending.md"
HEADER = "id,photo,caption,foil,kind"


@pytest.fixture
def cups() -> type[Pairs]:
    section = DOCS.read_text("utf-8").partition("## A benchmark of your own")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    assert len(re.findall(r"^    \S", code, re.MULTILINE)) <= 15
    names: dict[str, type[Pairs]] = {}
    exec(code, names)
    return names["Cups"]


def written(folder: Path, *rows: str) -> Path:
    layouts.put(folder / "images" / "a.jpg", layouts.picture(1))
    layouts.put(folder / "test.csv", "\n".join([HEADER, *rows, ""]))
    return folder


def test_it_is_read_by_its_declaration(cups: type[Pairs], tmp_path: Path) -> None:
    rows = ("x,a.jpg,a red cup,a blue cup,colour", "y,gone.jpg,a,b,", "z,a.jpg,a cup,a cup,", "w,a.jpg,a cup,a jug,")
    first, absent, same, last = cups(written(tmp_path, *rows)).examples()
    assert isinstance(first, Matching) and first.images[0].read() == layouts.picture(1)
    assert (first.key, first.category, first.group) == ("test/x", "colour", "a.jpg")
    assert first.captions == ("a red cup", "a blue cup")
    assert isinstance(absent, LeftOut) and (absent.where, absent.reason) == (
        f"{tmp_path}/test.csv line 3: gone.jpg", "missing image",
    )  # fmt: skip
    assert isinstance(same, LeftOut) and same.reason == "both captions are the same"
    assert isinstance(last, Matching) and last.category == "test"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,a.jpg,a red cup,,colour", r"test\.csv line 3, field 'foil'"),
        ("x,../../a.jpg,a red cup,a jug,colour", r"test\.csv line 3: '\.\./\.\./a\.jpg' leaves the folder"),
        ("x,a.jpg,a red cup", r"test\.csv line 3: wrong-columns"),
        ("v,a.jpg,a red cup,a jug,", "have the key 'test/v'"),
    ],
)
def test_an_odd_row_is_refused_with_its_place(cups: type[Pairs], tmp_path: Path, row: str, words: str) -> None:
    benchmark = cups(written(tmp_path, "v,a.jpg,a cup,a jug,", row))
    with pytest.raises(WrongUse, match=words):
        list(benchmark.examples())
