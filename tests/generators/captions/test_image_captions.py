"""Photographs with captions become samples: groups, splits and lists."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.generators.made_inputs import picture, write
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.recipe import parse_recipe
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import Query
from twinset.generators.captions.image_captions import ImageCaptions
from twinset.generators.captions.training_split import TrainingSplit
from twinset.shards.contracts import Context
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.training.examples.example_set import open_examples

FLICKR8K = Path(__file__).resolve().parents[3].parent / "shared/data/karpathy/flickr8k"
TEXTS = ["A dog.", "A cat.", "A dog runs.", "A bird.", "A fish.", "A fish swims."]
TOKENS = "".join(f"{name}.jpg#{at}\t{text}\n" for at, (name, text) in enumerate(zip("abacdd", TEXTS, strict=True)))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """``tokens.txt`` and a folder of its four images; the captions of ``a.jpg`` are scattered."""
    images = {f"images/{name}.jpg": picture((60 * number, 90, 200), form="JPEG") for number, name in enumerate("abcd")}
    return write(tmp_path, {"tokens.txt": TOKENS.encode(), **images})


def source(folder: Path, **settings: Any) -> dict[str, Any]:
    own = {"kind": "image-captions", "licence": "CC0-1.0"}
    return {**own, "captions": str(folder / "tokens.txt"), "images": str(folder / "images"), **settings}


def built(folder: Path, **settings: Any) -> list[Stored[Any]]:
    raw = {"name": "photos", "subsets": {"photos": {"source": source(folder, **settings), "shard_size": 2}}}
    twinset.build(parse_recipe(raw), str(folder / "out"), workers=1)
    return list(read_samples(Store(str(folder / "out")), "photos"))


def planned(folder: Path, **settings: Any) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Split of each planned image, and what is left out."""
    generator = ImageCaptions.model_validate(source(folder, **settings)).open(Context("photos"))
    return {photo.image_id: photo.split for photo in generator.plan()}, generator.excluded.examples


def test_a_sample_is_an_image_with_all_its_captions_which_ask_for_each_other(photos: Path) -> None:
    (photos / "train.txt").write_text("b.jpg\n")
    (photos / "test.txt").write_text("a.jpg\nd.jpg\nc.jpg\n")
    samples = built(photos, train=str(photos / "train.txt"), test=str(photos / "test.txt"))
    assert {tuple(sample.fields) for sample in samples} == {("jpg", "txt", "json")}  # as open_clip reads them
    assert {sample.json.image_id: sample.json.captions for sample in samples} == {
        **{"a.jpg": ("A dog.", "A dog runs."), "b.jpg": ("A cat.",)},
        **{"c.jpg": ("A bird.",), "d.jpg": ("A fish.", "A fish swims.")},
    }
    assert [*planned(photos)[0]] == ["b.jpg", "c.jpg", "d.jpg", "a.jpg"]  # scattered, hence the last
    assert "Known biases" not in (photos / "out/photos/README.md").read_text()  # none are counted

    queries = [example for example in BuiltDataset(photos / "out").examples() if isinstance(example, Query)]
    of_images = [query for query in queries if query.subset == "photos/image-to-text"]
    answers = [{query.gallery[n] for n in query.targets} for query in of_images]
    assert answers == [{"A bird."}, {"A fish.", "A fish swims."}, {"A dog.", "A dog runs."}]  # not that of training
    of_texts = [query for query in queries if query.subset == "photos/text-to-image"]
    assert [(query.text, sorted(query.targets)) for query in of_texts][:2] == [("A bird.", [0]), ("A fish.", [1])]
    assert len(of_texts) == 5 and all(len(query.gallery) == 3 for query in of_texts)
    examples = open_examples([f"{photos}/out"], "pairs")
    assert sorted(examples[n].texts["text"] for n in range(len(examples))) == sorted(TEXTS)


def test_a_packed_file_that_expands_without_end_is_refused(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.annotation_files.MOST_EXPANDED", 1000)
    (photos / "bomb.json.gz").write_bytes(gzip.compress(b" " * 5000))
    with pytest.raises(WrongUse, match=r"bomb\.json\.gz: expands to more than 1,000 bytes"):
        planned(photos, captions=str(photos / "bomb.json.gz"))


def test_lists_give_the_splits_and_name_what_is_not_there(photos: Path) -> None:
    (photos / "train.txt").write_text("b.jpg\nlost.jpg\n")
    (photos / "validation.txt").write_text("a.jpg\n\n")
    lists = {name: str(photos / f"{name}.txt") for name in ("train", "validation")}
    splits, left_out = planned(photos, **lists)
    assert splits == {"b.jpg": "train", "a.jpg": "validation"}
    assert ("no-caption", "train.txt line 2") in left_out
    assert Counter(reason for reason, _ in left_out) == {"no-caption": 1, "not-listed": 3}
    assert ("not-listed", "tokens.txt line 4") in left_out
    (photos / "validation.txt").write_text("b.jpg\n")
    with pytest.raises(WrongUse, match=r"validation\.txt, line 1: 'b\.jpg' is of train too \(train\.txt line 1\)"):
        planned(photos, **lists)


def test_splits_of_the_source_are_renamed_and_repeated_ids_count_once(photos: Path) -> None:
    rows = "1,a.jpg,A dog.,restval\n1,b.jpg,A cat.,val\n2,c.jpg,A bird.,val\n3,d.jpg,A fish.,Odd one\n"
    (photos / "own.csv").write_text(f"id,image,caption,split\n{rows}")
    splits, left_out = planned(photos, captions=str(photos / "own.csv"))
    assert splits == {"a.jpg": "train", "c.jpg": "validation"}
    assert left_out == [("repeated-id", "own.csv line 3"), ("unknown-split", "own.csv line 5")]


@pytest.mark.slow
@pytest.mark.skipif(not FLICKR8K.is_dir(), reason="Flickr8k's lists are not in ../shared/data on this machine")
def test_the_official_lists_of_flickr8k() -> None:
    lists = {"train": "trainImages", "validation": "devImages", "test": "testImages"}
    settings = {split: str(FLICKR8K / f"Flickr_8k.{name}.txt") for split, name in lists.items()}
    splits, left_out = planned(FLICKR8K, captions=str(FLICKR8K / "Flickr8k.token.txt.gz"), images=None, **settings)
    assert Counter(splits.values()) == {"train": 6000, "validation": 1000, "test": 1000}
    assert {reason for reason, _ in left_out} == {"no-tab", "not-listed"}


def test_photos_are_split_by_share(photos: Path) -> None:
    rows = [f"{number}.jpg,a caption,{'test' if number < 20 else ''}" for number in range(200)]
    (photos / "own.csv").write_text("\n".join(["image,caption,split", *rows]))
    splits, left_out = planned(photos, captions=str(photos / "own.csv"), images=None, train=0.8)
    assert len(splits) == 200 and not left_out
    assert {splits.pop(f"{number}.jpg") for number in range(20)} == {"test"}, "as stated"
    assert 130 <= Counter(splits.values())["train"] <= 158  # 144 of 180 +- 2.6 deviations
    share = TrainingSplit(0.8, "test", 0)  # as text-pairs of the same recipe splits the same images
    assert splits == {name: share.of(name) for name in splits}
    with pytest.raises(ValueError, match="train is a share beside a list"):
        ImageCaptions.model_validate(source(photos, train=0.8, test=str(photos / "own.csv")))
