"""What twinset built asks what its exports do, and nothing that models were trained on."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.benchmarks.made_layouts import pixels
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
        shard = [Planned(_drawn(one), one.identity, "1", one.judge, one.words) for one in pair_shards(name)[0]]
        made.add(name, VIDEO_SUBSET, [shard], "kubric-scenes")
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
    content = tar.read_bytes()
    tar.write_bytes(content[: len(content) // 2].ljust(len(content), b"\xff"))
    with pytest.raises(WrongUse, match=r"eq-ag/test/00003\.tar"):
        list(open_benchmark("twinset", made_pairs.root).examples())


def test_what_is_not_finished_or_not_there_is_refused(made_pairs: MadeDataset, tmp_path: Path) -> None:
    (made_pairs.root / layout.receipt("eq-gebc", 1)).unlink()
    with pytest.raises(WrongUse, match="eq-gebc: 3 of 4 shards are finished"):
        list(open_benchmark("twinset", made_pairs.root).examples())
    for folder, subset, message in ((made_pairs.root, ["eq-agg"], "did you mean"), (tmp_path / "no", [], "no such")):
        with pytest.raises(WrongUse, match=message):
            open_benchmark("twinset", folder, subset)


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
