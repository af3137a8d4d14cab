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
    items = kept(open_benchmark("twinset", made_pairs.root))
    samples = [sample for name in sorted(EQBEN) for sample in read_samples(made_pairs.store, name)]
    assert [item.key for item in items] == [sample.key for sample in samples]
    for item, sample in zip(items, samples, strict=True):
        assert isinstance(item, Matching) and item.category == "colour"
        assert item.captions == tuple(sample.texts.values())
        assert [shown.read() for shown in item.images] == list(sample.images.values())
    # A video that three subsets take frames from is one group.
    assert Counter(item.group for item in items) == {"-Disc_0": 9, "Disc.2": 9, "-Same_3": 6}


def test_drawn_scenes_of_two_subsets_are_not_one_group(made: MadeDataset) -> None:
    for name in ("eq-kubric-location", "eq-kubric-counting"):
        shard = []
        for planned in pair_shards(name)[0]:
            assert isinstance(planned.made, Pair)
            scene = replace(planned.made, group="1", image0=draw(10), image1=draw(11))
            shard.append(Planned(scene, planned.identity, "1", planned.judge, planned.words))
        made.add(name, VIDEO_SUBSET, [shard], "kubric-scenes")
    groups = {item.group for item in kept(open_benchmark("twinset", made.root))}
    assert groups == {"eq-kubric-location/1", "eq-kubric-counting/1"}


def test_a_triplet_asks_for_its_target_against_its_distractor(made_triplets: MadeDataset) -> None:
    items = list(open_benchmark("twinset", made_triplets.root, ["triplets", "two-images"]).examples())
    assert Counter(item.reason for item in items if isinstance(item, LeftOut)) == {"no distractor": 8}
    queries = [item for item in items if isinstance(item, Query)]
    for query, sample in zip(queries, read_samples(made_triplets.store, "triplets"), strict=True):
        assert isinstance(query.image, Picture) and query.image.read() == sample.images["reference"]
        shown = [entry.read() for entry in query.gallery if isinstance(entry, Picture)]
        assert shown == [sample.images["target"], sample.images["distractor"]] and query.targets == {0}
        assert (query.text, query.group) == (sample.texts["condition"], sample.json.image_ids["reference"])


def test_pairs_are_asked_as_their_export_is(made_pairs: MadeDataset, tmp_path: Path) -> None:
    names = list(EQBEN)
    shards = kept(open_benchmark("twinset", made_pairs.root, names))
    export(made_pairs.store, names, "eqben", tmp_path / "eqben")
    benchmark = open_benchmark("eqben", tmp_path / "eqben")
    assert benchmark.subsets == ("eq-ag", "eq-gebc", "eq-youcook2")
    released = kept(benchmark)
    for ours, theirs in zip(shards, released, strict=True):
        assert (ours.key, ours.subset, ours.group) == (theirs.key.partition("/")[2], theirs.subset, theirs.group)
        assert isinstance(ours, Matching) and isinstance(theirs, Matching) and ours.captions == theirs.captions
        assert np.array_equal([pixels(image) for image in ours.images], [pixels(image) for image in theirs.images])


def test_what_is_broken_not_finished_or_not_there_is_refused(made_pairs: MadeDataset, tmp_path: Path) -> None:
    tar = made_pairs.root / layout.tar("eq-ag", "test", 3)
    content = tar.read_bytes()
    tar.write_bytes(content[: len(content) // 2].ljust(len(content), b"\xff"))
    with pytest.raises(WrongUse, match=r"eq-ag/test/00003\.tar"):
        list(open_benchmark("twinset", made_pairs.root).examples())
    tar.write_bytes(content)
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
    assert {item.reason for item in opened.examples() if isinstance(item, LeftOut)} == {TRAINED}
    assert 0 < captions_of(opened).total() < asked.total()
    assert len(list(opened.examples())) == asked.total()
    assert isinstance(opened, BuiltDataset)
    opened.every_split = True
    assert captions_of(opened) == asked


def captions_of(benchmark: Reader) -> Counter[tuple[str, ...]]:
    return Counter(item.captions for item in kept(benchmark) if isinstance(item, Matching))
