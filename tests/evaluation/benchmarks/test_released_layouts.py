"""Traps of the released layouts, one by one."""

import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.benchmarks.made_files import parquet, picture, put
from tests.evaluation.benchmarks.made_layouts import matchings, pixels, queries
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut, Query

Opener = Callable[..., Reader]


def test_records_that_two_instruments_name_alike_have_keys_of_their_own(made_benchmark: Opener) -> None:
    found = matchings(made_benchmark("valse"))
    assert [one.key for one in found] == ["existence/a_1", "foil-it/a_1", "foil-it/a_3"]
    assert [one.group for one in found] == ["v7w_1", "000000000007", "v7w_1"]
    assert found[1].images[0].where.endswith("coco/000000000007.jpg")


def test_winogrounds_parquet_is_its_lines(made_benchmark: Opener, tmp_path: Path) -> None:
    lines = matchings(made_benchmark("winoground"))
    records = [json.loads(line) for line in (tmp_path / "examples.jsonl").read_text().splitlines()]
    rows = []
    for record in records:
        row = dict(record)
        for field in ("image_0", "image_1"):
            name = f"{record[field]}.png"
            row[field] = {"bytes": (tmp_path / "images" / name).read_bytes(), "path": name}
        rows.append(row)
    elsewhere = tmp_path / "hub"
    parquet(elsewhere / "default" / "test" / "0000.parquet", rows, ("image_0", "image_1"))
    packed = matchings(open_benchmark("winoground", elsewhere))
    assert [(one.key, one.captions, one.category) for one in packed] == [
        (one.key, one.captions, one.category) for one in lines
    ]
    assert [[shown.read() for shown in one.images] for one in packed] == [
        [shown.read() for shown in one.images] for one in lines
    ]


def test_a_repeated_key_is_an_error(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("winoground")
    path = benchmark.data / "examples.jsonl"
    path.write_text(path.read_text().replace('"id": 2', '"id": 1'))
    with pytest.raises(WrongUse, match=r"two examples of Winoground .* have the key 'test/1'"):
        list(benchmark.examples())


def test_an_empty_subset_is_an_error(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("sugarcrepe")
    put(benchmark.data / "swap_obj.json", {})
    with pytest.raises(WrongUse, match=r"subset 'swap_obj' of SugarCrepe .* is empty"):
        list(benchmark.examples())


def test_genecis_keeps_the_order_of_the_released_loader(made_benchmark: Opener) -> None:
    first, second = queries(made_benchmark("genecis", "change-object"))
    numbers = [[Path(one.where).stem.lstrip("0") for one in query.gallery] for query in (first, second)]  # type: ignore[union-attr]
    assert numbers == [["2", "1", "3", "4", "5"], ["3", "1", "2", "4", "5"]]
    assert first.targets == {0} and first.group == second.group == "000000000000.jpg"


def test_a_gallery_that_repeats_its_target_has_two_right_entries(made_benchmark: Opener) -> None:
    # One released template of Change an Object does; with one right entry the best possible score would be a tie.
    benchmark = made_benchmark("genecis", "change-object")
    path = benchmark.data / "change_object.json"
    templates = json.loads(path.read_text())
    templates[0]["gallery"][2] = templates[0]["target"]
    put(path, templates)
    assert [query.targets for query in queries(benchmark)] == [{0, 3}, {0}]


def test_crops_of_visual_genome_are_those_of_the_released_loader(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("genecis", "focus-attribute")
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    Image.fromarray(noise).save(benchmark.data / "VG_100K" / "0.jpg", quality=95)
    template = json.loads((benchmark.data / "focus_attribute.json").read_text())[:1]
    x, y, width, height = template[0]["reference"]["instance_bbox"] = [30.5, 10.0, 20.0, 31.0]
    put(benchmark.data / "focus_attribute.json", template)
    whole = Image.open(benchmark.data / "VG_100K" / "0.jpg").convert("RGB")
    left, top = max(0, x - 0.7 * width), max(0, y - 0.7 * height)
    cut = whole.crop((left, top, min(80, left + 1.7 * width), min(60, top + 1.7 * height)))
    side = max(cut.size)
    expected = Image.new("RGB", (side, side))
    expected.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
    (query,) = queries(benchmark)
    assert np.array_equal(pixels(query.image), np.asarray(expected))


def test_the_images_of_coco_and_visual_genome_are_not_mixed_up(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("genecis")
    for query in queries(benchmark):
        folder = "VG_100K" if query.subset == "focus-attribute" else "val2017"
        assert query.image is not None
        assert all(f"/{folder}/" in one.where for one in (query.image, *query.gallery))  # type: ignore[union-attr]
    (benchmark.data / "VG_100K" / "0.jpg").rename(benchmark.data / "VG_100K" / "COCO_val2014_000000000000.jpg")
    again = open_benchmark("genecis", benchmark.data)
    reasons = [(item.reason, item.where[-5:]) for item in again.examples() if isinstance(item, LeftOut)]
    assert reasons == [("missing image", "0.jpg")] * 2


def test_cirr_masks_the_reference_in_both_galleries(made_benchmark: Opener) -> None:
    found = queries(made_benchmark("cirr"))
    whole, part = found[0], found[3]
    assert (whole.key, part.key) == ("global/12060", "subset/12060") and {one.group for one in found} == {"set-36"}
    assert len(whole.gallery) == 8 and (whole.targets, whole.excluded) == ({1}, {0})
    assert len(part.gallery) == 6 and (part.targets, part.excluded) == ({4}, {5})
    assert all(query.gallery is whole.gallery for query in found[:3])
    (Path(whole.gallery[7].where)).unlink()  # type: ignore[union-attr]
    left = list(open_benchmark("cirr", Path(whole.image.where).parents[2], ["global"]).examples())  # type: ignore[union-attr]
    assert [item.reason for item in left if isinstance(item, LeftOut)] == ["missing gallery image"]
    assert {len(item.gallery) for item in left if isinstance(item, Query)} == {7}


def test_cirr_without_its_list_of_images_ranks_those_that_captions_name(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("cirr", "global")
    (benchmark.data / "image_splits" / "split.rc2.val.json").unlink()
    assert {len(query.gallery) for query in queries(benchmark)} == {6}


def test_mit_states_asks_for_every_other_adjective_of_a_test_noun(made_benchmark: Opener) -> None:
    found = queries(made_benchmark("mit-states"))
    gallery = [Path(one.where).parent.name for one in found[0].gallery]  # type: ignore[union-attr]
    folders = ("moldy tomato", "old castle", "ripe tomato", "sliced tomato")
    assert gallery == [folder for folder in folders for _ in range(2)]
    assert len(found) == 3 * 2 * 2  # a castle in one state alone is not asked for, but ranked; no pear is a test noun
    first = found[0]
    assert (first.key, first.text, first.category) == ("moldy tomato/moldy_0.jpg/ripe", "ripe", "tomato")
    assert (first.targets, first.excluded) == ({4, 5}, {0})


def test_all_captions_of_the_test_split_are_asked(made_benchmark: Opener) -> None:
    found = queries(made_benchmark("coco"))
    images, captions = found[:2], found[2:]
    assert [len(query.targets) for query in images] == [5, 6] and len(images[0].gallery) == 11
    assert all(query.gallery is captions[0].gallery for query in captions)
    for query in captions:
        (image,) = query.targets
        assert query.text in [images[image].gallery[place] for place in images[image].targets]
        assert query.group == images[image].group


def test_a_missing_image_leaves_the_gallery_with_its_captions(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("coco")
    (benchmark.data / "val2014" / "COCO_val2014_000000000391.jpg").unlink()
    items = list(benchmark.examples())
    assert sum(isinstance(item, LeftOut) for item in items) == 2  # one a direction
    found = [item for item in items if isinstance(item, Query)]
    assert [len(query.gallery) for query in found] == [6] + [1] * 6


def test_images_may_lie_in_a_tar(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("sugarcrepe", "swap_obj")
    folder, packed = benchmark.data / "val2017", benchmark.data / "coco" / "00000.tar"
    packed.parent.mkdir()
    with tarfile.open(packed, "w") as tar:
        tar.add(folder, "val2017")
    shutil.rmtree(folder)
    found = matchings(benchmark)
    assert [one.images[0].read() for one in found] == [picture(number % 2) for number in range(3)]
    assert found[0].images[0].where.endswith("coco/00000.tar/val2017/000000000000.jpg")
    os.truncate(packed, 1100)
    with pytest.raises(WrongUse, match=r"00000\.tar: cut short within"):
        found[0].images[0].read()
