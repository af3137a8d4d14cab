"""Croissant metadata, validated and read by the specification's own library, without a network."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from cards.describe import describe
from shards.read import read_samples


@pytest.mark.parametrize("subset", ["eq-ag", "eq-gebc", "eq-youcook2"])
def test_mlcroissant_validates_and_reads(small_dataset: Any, mlcroissant: Any, subset: str) -> None:
    describe(small_dataset.store, [subset])
    dataset = mlcroissant.Dataset(jsonld=str(small_dataset.root / subset / "_meta" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    pairs = list(dataset.records("pairs"))
    assert [row["pairs/key"].decode() for row in pairs] == small_dataset.kept[subset]
    stored = {pair.key: pair for pair in read_samples(small_dataset.store, subset)}
    captions = {row["caption1/key"].decode(): row["caption1/content"].decode() for row in dataset.records("caption1")}
    assert captions == {key: pair.caption1 for key, pair in stored.items()}
    images = {row["image0/key"].decode(): row["image0/content"].size for row in dataset.records("image0")}
    assert images == {key: (96, 72) for key in stored}


def test_every_file_is_named_with_its_true_digest(small_dataset: Any) -> None:
    describe(small_dataset.store, ["eq-ag"])
    meta = small_dataset.root / "eq-ag" / "_meta"
    metadata = json.loads((meta / "croissant.json").read_bytes())
    files = [one for one in metadata["distribution"] if one["@type"] == "cr:FileObject"]
    assert [one["@id"] for one in files] == [
        "_meta/index.parquet",
        "test/00000.tar",
        "test/00002.tar",
        "test/00003.tar",
    ]
    for one in files:
        content = (meta / one["contentUrl"]).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest() and one["contentSize"] == f"{len(content)} B"


def test_metadata_of_a_subset_without_tars_validates(small_dataset: Any, mlcroissant: Any) -> None:
    for number in (0, 2, 3):
        small_dataset.store.remove(f"eq-ag/_meta/receipts/{number:05d}.json")
    describe(small_dataset.store, ["eq-ag"])
    dataset = mlcroissant.Dataset(jsonld=str(small_dataset.root / "eq-ag" / "_meta" / "croissant.json"))
    assert list(dataset.records("pairs")) == []
