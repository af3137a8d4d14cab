"""What twinset built asks what its exports do; traps of released layouts, one by one."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.benchmarks.made_files import put
from tests.evaluation.benchmarks.made_layouts import matchings, pixels, queries
from tests.made_datasets import MadeDataset
from tests.made_samples import EQBEN, VIDEO_SUBSET, Planned, draw, pair_shards
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.built_dataset import TRAINED, BuiltDataset
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut, Matching, Picture, Query
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout


def kept(benchmark: Reader) -> list[Matching | Query]:
    return [item for item in benchmark.examples() if isinstance(item, Matching | Query)]


def test_pairs_are_matchings_whose_videos_are_groups(made_pairs: MadeDataset) -> None:
    found = kept(open_benchmark("twinset", made_pairs.root))
    samples = [sample for name in sorted(EQBEN) for sample in read_samples(made_pairs.store, name)]
    assert [one.key for one in found] == [sample.key for sample in samples]
    for one, sample in zip(found, samples, strict=True):
        assert isinstance(one, Matching) and one.category == "colour"
        assert one.captions == tuple(sample.texts.values())
        assert [shown.read() for shown in one.images] == list(sample.images.values())
    # A video that three subsets take frames from is one group.
    assert Counter(one.group for one in found) == {"-Disc_0": 9, "Disc.2": 9, "-Same_3": 6}


def test_drawn_scenes_of_two_subsets_are_not_one_group(made: MadeDataset) -> None:
    for name in ("eq-kubric-location", "eq-kubric-counting"):
        shards = [
            [Planned(_drawn(one), one.identity, "1", one.judge, one.words) for one in shard]
            for shard in pair_shards(name)[:1]
        ]
        made.add(name, VIDEO_SUBSET, shards, "kubric-scenes")
    groups = {one.group for one in kept(open_benchmark("twinset", made.root))}
    assert groups == {"eq-kubric-location/1", "eq-kubric-counting/1"}


def _drawn(one: Planned) -> Pair:
    assert isinstance(one.made, Pair)
    return replace(one.made, group="1", image0=draw(10), image1=draw(11))


def test_a_triplet_asks_for_its_target_against_its_distractor(made_triplets: MadeDataset) -> None:
    items = list(open_benchmark("twinset", made_triplets.root, ["triplets", "two-images"]).examples())
    assert Counter(item.reason for item in items if isinstance(item, LeftOut)) == {"no distractor": 8}
    found = [item for item in items if isinstance(item, Query)]
    samples = list(read_samples(made_triplets.store, "triplets"))
    for one, sample in zip(found, samples, strict=True):
        assert isinstance(one.image, Picture) and one.image.read() == sample.images["reference"]
        shown = [entry.read() for entry in one.gallery if isinstance(entry, Picture)]
        assert shown == [sample.images["target"], sample.images["distractor"]] and one.targets == {0}
        assert (one.text, one.group) == (sample.texts["condition"], sample.json.image_ids["reference"])


def test_pairs_are_asked_as_their_export_is(made_pairs: MadeDataset, tmp_path: Path) -> None:
    names = list(EQBEN)
    shards = kept(open_benchmark("twinset", made_pairs.root, names))
    export(made_pairs.store, names, "eqben", tmp_path / "eqben")
    benchmark = open_benchmark("eqben", tmp_path / "eqben")
    assert benchmark.subsets == ("eq-ag", "eq-gebc", "eq-youcook2")
    released = kept(benchmark)
    assert [(one.key.partition("/")[2], one.subset, one.group) for one in released] == [
        (one.key, one.subset, one.group) for one in shards
    ]
    for ours, theirs in zip(shards, released, strict=True):
        assert isinstance(ours, Matching) and isinstance(theirs, Matching) and ours.captions == theirs.captions
        for one, other in zip(ours.images, theirs.images, strict=True):
            assert np.array_equal(pixels(one), pixels(other))


def test_a_tar_that_breaks_mid_stream_is_named(made_pairs: MadeDataset) -> None:
    tar = made_pairs.root / layout.tar("eq-ag", "test", 3)
    content = bytearray(tar.read_bytes())
    content[len(content) // 2 :] = bytes([255]) * (len(content) - len(content) // 2)
    tar.write_bytes(content)
    with pytest.raises(WrongUse, match=r"eq-ag/test/00003\.tar"):
        list(open_benchmark("twinset", made_pairs.root).examples())
    tar.unlink()
    with pytest.raises(WrongUse, match=r"eq-ag/test/00003\.tar: absent"):
        list(open_benchmark("twinset", made_pairs.root).examples())


def test_what_is_not_finished_or_not_there_is_said(made_pairs: MadeDataset, tmp_path: Path) -> None:
    (made_pairs.root / layout.receipt("eq-gebc", 1)).unlink()
    with pytest.raises(WrongUse, match="eq-gebc: 3 of 4 shards are finished"):
        list(open_benchmark("twinset", made_pairs.root).examples())
    with pytest.raises(WrongUse, match="did you mean 'eq-ag'"):
        open_benchmark("twinset", made_pairs.root, ["eq-agg"])
    with pytest.raises(WrongUse, match="there is no such folder"):
        open_benchmark("twinset", tmp_path / "nowhere")


def test_what_models_were_trained_on_is_not_asked(made_text_pairs: MadeDataset) -> None:
    """Of three shards of four, four and one (one pair was rejected), the first becomes one of the split train."""
    folder = made_text_pairs.root / "text"
    asked = captions_of(open_benchmark("twinset", made_text_pairs.root, ["text"]))
    receipt = folder / "_meta/receipts/00000.json"
    receipt.write_text(receipt.read_text().replace('"split":"test"', '"split":"train"'))
    (folder / "train").mkdir()
    (folder / "test/00000.tar").rename(folder / "train/00000.tar")
    opened = open_benchmark("twinset", made_text_pairs.root, ["text"])
    assert {one.reason for one in opened.examples() if isinstance(one, LeftOut)} == {TRAINED}
    assert 0 < captions_of(opened).total() < asked.total()
    assert len(list(opened.examples())) == asked.total()
    assert isinstance(opened, BuiltDataset)
    opened.every_split = True
    assert captions_of(opened) == asked


def captions_of(benchmark: Reader) -> Counter[tuple[str, ...]]:
    return Counter(item.captions for item in kept(benchmark) if isinstance(item, Matching))


Opener = Callable[..., Reader]


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


def test_a_box_that_leaves_the_image_is_black_there_as_in_aros_code(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("aro", "relation")
    path = benchmark.data / "visual_genome_relation.json"
    (row,) = json.loads(path.read_text())
    put(path, [{**row, "bbox_x": -5, "bbox_w": 40}, {**row, "bbox_x": 24}, {**row, "bbox_w": 10**8}])
    cut, *wrong = (one.images[0] for one in matchings(benchmark))
    whole = Image.open(benchmark.data / "images/0.jpg").convert("RGB")
    assert np.array_equal(pixels(cut), np.asarray(whole.crop((-5, 3, 35, 12))))
    for shown in wrong:
        with pytest.raises(WrongUse, match="has no pixel in an image of"):
            shown.read()


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


def test_mit_states_asks_for_every_other_adjective_of_a_test_noun(made_benchmark: Opener) -> None:
    found = queries(made_benchmark("mit-states"))
    gallery = [Path(one.where).parent.name for one in found[0].gallery]  # type: ignore[union-attr]
    folders = ("moldy tomato", "old castle", "ripe tomato", "sliced tomato")
    assert gallery == [folder for folder in folders for _ in range(2)]
    assert len(found) == 3 * 2 * 2  # a castle in one state alone is not asked for, but ranked; no pear is a test noun
    first = found[0]
    assert (first.key, first.text, first.category) == ("moldy tomato/moldy_0.jpg/ripe", "ripe", "tomato")
    assert (first.targets, first.excluded) == ({4, 5}, {0})
