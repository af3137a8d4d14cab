"""An option that says what the right one says is right too, or the question is not asked.

Frames for boundary grounding: which ones, when, and that they are decoded in runs.
Tables of negatives are probed as they lie in OUT: by kind, without images, and for blind probes alone.
Benchmarks that are opened for their captions need no image, and give none.
A part of a benchmark, drawn by seed: strata, the same rows again, nothing read twice.
What `twinset eval benchmarks` lists: every benchmark with its release, and what of it lies in a folder.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import LAYOUTS, captioned, film, queries
from tests.evaluation.benchmarks.test_published_counts import SUGARCREPE
from tests.evaluation.features.small_benchmark import SmallBenchmark
from tests.generators.finished_stage import write_index
from tests.generators.words_alone.test_probe import captions
from twinset.contracts.canonical import identity_of
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, KINDS, boundaries, open_benchmark
from twinset.evaluation.benchmarks.boundaries import sampled
from twinset.evaluation.benchmarks.limited import Limited, shares
from twinset.evaluation.benchmarks.listing import listing
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.blind_probes.run import give_away
from twinset.evaluation.examples import Grounding, LeftOut, Matching, Picture
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.video import frames as video_frames

Opener = Callable[..., Reader]


def test_captions_of_two_images_that_are_one_are_left_out_too(made_benchmark: Opener) -> None:
    lines = (path := made_benchmark("winoground").data / "examples.jsonl").read_text().splitlines()
    row = json.loads(lines[1])
    lines[1] = json.dumps({**row, "caption_1": row["caption_0"]})
    put(path, "\n".join(lines))
    items = list(open_benchmark("winoground", path.parent).examples())
    assert [isinstance(item, LeftOut) for item in items] == [False, True, False]


def test_two_captions_that_are_one_are_left_out_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path / "images" / "1.jpg", picture(1))
    rows = [{"filename": "1.jpg", "caption": "a dog", "negative_caption": one} for one in ("a cat", "a dog")]
    put(tmp_path / "swap_obj.json", {str(n): row for n, row in enumerate(rows)})
    asked, lost = open_benchmark("sugarcrepe", tmp_path).examples()
    assert isinstance(lost, LeftOut) and (asked.key, lost.reason) == ("swap_obj/0", "both captions are the same")


def test_the_caption_of_another_image_that_reads_the_same_is_found_too(tmp_path: Path) -> None:
    captioned(tmp_path, file := "dataset_flickr30k.json")
    held = json.loads((tmp_path / file).read_text())
    first, second = (image["sentences"] for image in held["images"][1:])
    second[2]["raw"] = first[0]["raw"]
    put(tmp_path / file, held)
    ways = {one.key: one.targets for one in queries(open_benchmark("flickr30k", tmp_path))}
    assert ways["image-to-text/000000000391"] == {0, 1, 2, 3, 4, 7}
    assert ways["image-to-text/000000000522"] == {5, 6, 7, 8, 9, 10, 0}
    assert ways["text-to-image/000000000391/0"] == {0} and ways["text-to-image/000000000522/2"] == {1}


def test_an_image_that_a_file_of_captions_has_twice_is_refused(tmp_path: Path) -> None:
    captioned(tmp_path, file := "dataset_coco.json")
    held = json.loads((tmp_path / file).read_text())
    put(tmp_path / file, {"images": [*held["images"], held["images"][1]]})
    with pytest.raises(WrongUse, match=r"record 3: a second record of the image 000000000391"):
        list(open_benchmark("coco", tmp_path).examples())


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


def test_a_video_is_decoded_in_runs(made_benchmark: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    original = video_frames.read_frames

    def counted(path: Path, addresses: list[float], addressing: str) -> object:
        runs.append(len(addresses))
        return original(path, addresses, "seconds")

    monkeypatch.setattr(video_frames, "read_frames", counted)
    monkeypatch.setattr(boundaries, "TOGETHER", 4)
    first = next(item for item in made_benchmark("gebc").examples() if isinstance(item, Grounding))
    for shown in first.frames:
        shown.read()
    assert runs == [4, 4, 2]


def test_what_cannot_be_grounded_is_counted(made_benchmark: Opener, tmp_path: Path) -> None:
    benchmark = made_benchmark("gebc")
    film(tmp_path / "videos" / "-0-s1eu4sF4_000010_000020.mp4", 0.3)
    (tmp_path / "videos" / "SIbQ1aJ8eLM.mp4").write_bytes(b"no video")
    reasons = [item.reason for item in _items(benchmark)]
    assert reasons == ["boundary outside the video", "no words for one side", "broken video", "broken video"]
    film(tmp_path / "videos" / "SIbQ1aJ8eLM.mp4", 0.04)
    assert [item.reason for item in _items(benchmark)][2:] == ["video of one frame"] * 2


def _items(benchmark: Reader) -> list[LeftOut]:
    found = []
    with pytest.raises(WrongUse, match="all 4 examples are left out"):
        for item in benchmark.examples():
            assert isinstance(item, LeftOut)
            found.append(item)
    return found


def test_a_name_that_leads_out_is_refused(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("gebc")
    put(benchmark.data / "val.json", {"../../etc/video": []})
    with pytest.raises(WrongUse, match=r"val\.json record '\.\./\.\./etc/video': .* leaves the folder"):
        list(open_benchmark("gebc", benchmark.data).examples())


def telling(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same with a word that stands in negatives alone."""
    return [(caption, negative.replace("beside a", "beside a masked")) for caption, negative in pairs]


def table(folder: Path, pairs: dict[str, list[tuple[str, str]]]) -> None:
    """Write the finished stage ``negatives``, of pairs by kind."""
    rows = []
    for kind, of_kind in pairs.items():
        type_, subtype = kind.split("_")
        for place, (caption, negative) in enumerate(of_kind):
            row = dict(zip(COLUMNS.names, (str(place), str(place), "", caption, negative, type_, subtype), strict=True))
            rows.append(
                {"key": f"{kind}-{place}", "identity": identity_of(kind, place), "group": f"caption-{place}", **row}
            )
    ids = [pa.field(name, pa.string()) for name in ("key", "identity", "group")]
    write_index(pa.Table.from_pylist(rows, pa.schema([*ids, *COLUMNS])), folder, "negatives", len(rows))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    table(
        tmp_path, {"replace_att": captions(300, 0), "add_att": telling(captions(300, 1)), "swap_obj": captions(40, 2)}
    )
    return tmp_path


def test_both_probes_of_each_kind(out: Path) -> None:
    found = give_away(open_benchmark("caption-pairs", out, captions_only=True)).model_dump()
    by = found["by"]
    assert {name: row["pairs"] for name, row in by.items()} == {
        "negatives / replace_att": 300,
        "negatives / add_att": 300,
        "negatives / swap_obj": 40,
    }
    assert by["negatives / add_att"]["probes"]["text classifier"]["solves"]


def test_captions_alone_are_not_scored_with_images(out: Path) -> None:
    with pytest.raises(WrongUse, match=r"have no images; ask .twinset eval blind caption-pairs=DIR"):
        list(open_benchmark("caption-pairs", out).examples())


@pytest.fixture
def without_images(tmp_path: Path) -> Path:
    record = {"filename": "000000000139.jpg", "caption": "A dog.", "negative_caption": "A cat."}
    (tmp_path / "add_obj.json").write_text(json.dumps({"0": record}), "utf-8")
    return tmp_path


def test_captions_are_read_where_images_are_missing(without_images: Path) -> None:
    opened = open_benchmark("sugarcrepe", without_images, captions_only=True)
    (example,) = opened.examples()
    assert isinstance(example, Matching)
    assert (example.captions, example.group) == (("A dog.", "A cat."), "000000000139")
    with pytest.raises(WrongUse, match=r"139\.jpg: the benchmark was opened for its captions alone"):
        example.images[0].read()


def unread() -> bytes:
    raise AssertionError("no image is read")


def examples(order: int = 1) -> Iterator[Matching | LeftOut]:
    made = [
        Matching(
            key=f"{subset}-{n}", subset=subset, group=f"g{n}", category=f"c{n % 5 == 0}",
            images=(Picture("p", unread),), captions=("a", "b"),
        )
        for subset, count in (("large", 500), ("small", 7))
        for n in range(count)
    ]  # fmt: skip
    yield from made[::order]
    yield LeftOut("x.jpg", "missing image")


def keys(limit: int, seed: int = 0, order: int = 1) -> list[str]:
    found = Limited(SmallBenchmark(lambda: [*examples(order)]), limit, seed).examples()
    return [one.key for one in found if isinstance(one, Matching)]


def test_each_subset_gives_as_many_by_the_shares_of_its_categories() -> None:
    found = [*Limited(SmallBenchmark(lambda: [*examples()]), 20, 0).examples()]
    drawn = [one for one in found if isinstance(one, Matching)]
    counts = Counter((one.subset, one.category) for one in drawn)
    assert counts == {("large", "cTrue"): 4, ("large", "cFalse"): 16, ("small", "cTrue"): 2, ("small", "cFalse"): 5}
    assert [one for one in found if isinstance(one, LeftOut)] == [LeftOut("x.jpg", "missing image")]


def test_the_same_rows_in_any_order_others_with_another_seed_and_more_with_a_larger_limit() -> None:
    assert sorted(keys(20)) == sorted(keys(20, order=-1)) != sorted(keys(20, seed=1))
    assert {*keys(20)} < {*keys(40)} and len(keys(10_000)) == 507


def test_shares_add_up() -> None:
    for total in range(14):
        found = shares({"a": 1, "b": 3, "c": 9}, total)
        assert sum(found.values()) == min(total, 13) and found["a"] <= 1 and found["b"] <= 3 and found["c"] <= 9


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
