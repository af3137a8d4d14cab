"""Our own shards, and what we export in others' layouts, ask the same."""

import io
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.benchmarks.made_files import picture, put
from tests.made_datasets import MadeDataset
from tests.made_samples import EQBEN, NEGATIVE_SUBSET, VIDEO_SUBSET, Planned, draw, pair_shards, text_pair_shards
from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.receipt import IndexRecord
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.built_dataset import TRAINED, BuiltDataset
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import LeftOut, Matching, Picture, Query
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store


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
            [Planned(_drawn(one), one.identity, "scene-000001", one.judge, one.words) for one in shard]
            for shard in pair_shards(name)[:1]
        ]
        made.add(name, VIDEO_SUBSET, shards, "kubric-scenes")
    groups = {one.group for one in kept(open_benchmark("twinset", made.root))}
    assert groups == {"eq-kubric-location/scene-000001", "eq-kubric-counting/scene-000001"}


def _drawn(one: Planned) -> Pair:
    assert isinstance(one.made, Pair)
    return replace(one.made, group="scene-000001", image0=draw(0), image1=draw(1))


def test_its_title_is_that_of_its_recipe(made_pairs: MadeDataset) -> None:
    found = open_benchmark("twinset", made_pairs.root)
    assert found.title == "made" and not found.apart


def test_text_pairs_have_one_image_and_their_kind(made_text_pairs: MadeDataset) -> None:
    items = list(open_benchmark("twinset", made_text_pairs.root).examples())
    left_out = [item for item in items if isinstance(item, LeftOut)]
    assert Counter(item.reason for item in left_out) == {"an index without images": 8}
    found = [item for item in items if isinstance(item, Matching)]
    assert Counter(one.category for one in found) == {"replace_att": 2, "add_obj": 3, "": 3}
    assert {(len(one.images), one.subset) for one in found} == {(1, "text")}
    assert Counter(one.group for one in found) == {"0.jpg": 3, "1.jpg": 2, "2.jpg": 3}


def test_an_index_alone_cannot_be_asked(made_text_pairs: MadeDataset) -> None:
    with pytest.raises(WrongUse, match=r"all 8 examples are left out, .* an index without images; build"):
        list(open_benchmark("twinset", made_text_pairs.root, ["text-index"]).examples())


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


def test_templates_are_asked_as_their_export_is(made_templates: MadeDataset, tmp_path: Path) -> None:
    tasks = ("focus-attribute", "change-object")
    shards = kept(open_benchmark("twinset", made_templates.root, tasks))
    export(made_templates.store, tasks, "genecis", tmp_path / "genecis")
    for number in range(200):
        put(tmp_path / "genecis" / "val2017" / f"{number:012d}.jpg", picture(number % 25))
        put(tmp_path / "genecis" / "VG_100K" / f"{number}.jpg", picture(number % 25))
    released = kept(open_benchmark("genecis", tmp_path / "genecis"))
    assert len(released) == len(shards) == 16
    for ours, theirs in zip(shards, released, strict=True):
        assert isinstance(ours, Query) and isinstance(theirs, Query)
        assert (ours.text, ours.targets, ours.category) == (theirs.text, theirs.targets, theirs.category)
        assert len(ours.gallery) == len(theirs.gallery) == {"focus-attribute": 10, "change-object": 15}[ours.subset]


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
            assert np.array_equal(_pixels(one), _pixels(other))


def _pixels(shown: Picture) -> Any:
    return np.asarray(Image.open(io.BytesIO(shown.read())).convert("RGB"))


def test_text_pairs_are_asked_as_their_export_is(made: MadeDataset, tmp_path: Path) -> None:
    plan = [[one for one in shard if getattr(one.made, "type", "")] for shard in text_pair_shards("text")]
    made.add("text", NEGATIVE_SUBSET, filter(None, plan))
    made.index("text")
    stage, index = made.stages["text"], sha256_of_file(made.root / layout.meta("text", "index.parquet"))
    record = IndexRecord(
        content=stage.content, plan=stage.plan, digest="d", planned=5, kept=5, rows=5, files={"index.parquet": index}
    )
    made.store.write(layout.meta("text", "index.json"), record.to_bytes())
    export(made.store, ["text"], "sugarcrepe", tmp_path / "crepe")
    for number in range(3):
        put(tmp_path / "crepe" / "images" / f"{number}.jpg", picture(number))
    both = [kept(open_benchmark("twinset", made.root)), kept(open_benchmark("sugarcrepe", tmp_path / "crepe"))]
    ours, theirs = (
        Counter((one.captions, one.category) for one in found if isinstance(one, Matching)) for found in both
    )
    assert ours == theirs and ours.total() == 5


def test_receipts_are_the_digest(made_pairs: MadeDataset) -> None:
    before = open_benchmark("twinset", made_pairs.root).digest()
    assert before == open_benchmark("twinset", made_pairs.root).digest()
    assert before != open_benchmark("twinset", made_pairs.root, ["eq-ag"]).digest()
    receipt = made_pairs.receipts["eq-ag"][0].model_copy(update={"tar_sha256": "0" * 64})
    made_pairs.store.write(layout.receipt("eq-ag", 0), receipt.to_bytes())
    assert open_benchmark("twinset", made_pairs.root).digest() != before


@pytest.mark.parametrize("cut", [0, 700, 3000, -1])
def test_a_tar_that_is_cut_short_is_named(made_pairs: MadeDataset, cut: int) -> None:
    tar = made_pairs.root / layout.tar("eq-ag", "test", 3)
    os.truncate(tar, cut if cut >= 0 else tar.stat().st_size - 1)
    with pytest.raises(WrongUse, match=r"eq-ag/test/00003\.tar: .* instead of"):
        list(open_benchmark("twinset", made_pairs.root).examples())


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
    with pytest.raises(WrongUse, match="holds no subset"):
        open_benchmark("twinset", tmp_path / "nowhere")


def test_an_object_store_is_read_alike(made_pairs: MadeDataset, tmp_path: Path) -> None:
    remote = Store(f"memory://{tmp_path.name}")
    for path in sorted(made_pairs.root.rglob("*")):
        if path.is_file():
            remote.write(path.relative_to(made_pairs.root).as_posix(), path.read_bytes())
    here, there = (open_benchmark("twinset", root, ["eq-ag"]) for root in (made_pairs.root, remote.root))
    assert here.digest() == there.digest()
    for one, other in zip(kept(here), kept(there), strict=True):
        assert isinstance(one, Matching) and isinstance(other, Matching)
        assert one.key == other.key and one.images[1].read() == other.images[1].read()


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
