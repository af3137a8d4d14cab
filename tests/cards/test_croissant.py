"""Croissant metadata, validated and read by the specification's own library, without a network."""

import hashlib
import json
from typing import Any

import pytest

from tests import made_samples
from tests.made_datasets import MadeDataset
from tests.made_samples import EQBEN, VIDEO_SUBSET
from twinset.shards.read import read_samples


def opened(dataset: MadeDataset, library: Any, name: str) -> Any:
    found = library.Dataset(jsonld=str(dataset.root / name / "_meta" / "croissant.json"))
    assert not found.metadata.ctx.issues.errors
    return found


def read(found: Any, record: str) -> dict[str, Any]:
    """A record set's content by key."""
    return {row[f"{record}/key"].decode(): row[f"{record}/content"] for row in found.records(record)}


@pytest.mark.parametrize("subset", EQBEN)
def test_mlcroissant_validates_and_reads_pairs(made_pairs: MadeDataset, mlcroissant: Any, subset: str) -> None:
    made_pairs.describe(subset)
    found = opened(made_pairs, mlcroissant, subset)
    assert [row["pairs/key"].decode() for row in found.records("pairs")] == made_pairs.kept[subset]
    stored = {pair.key: pair for pair in read_samples(made_pairs.store, subset)}
    captions = {key: content.decode() for key, content in read(found, "caption1").items()}
    assert captions == {key: pair.texts["caption1"] for key, pair in stored.items()}
    assert {key: image.size for key, image in read(found, "image0").items()} == dict.fromkeys(stored, (96, 72))


def test_mlcroissant_reads_each_subset_and_each_build_as_it_is(made_pairs: MadeDataset, mlcroissant: Any) -> None:
    def keys(name: str) -> list[str]:
        return sorted(read(opened(made_pairs, mlcroissant, name), "caption0"))

    made_pairs.describe("eq-ag", "eq-gebc")
    assert keys("eq-ag") == sorted(made_pairs.kept["eq-ag"])
    assert keys("eq-gebc") == sorted(made_pairs.kept["eq-gebc"]), "not what the cache has of the subset before"
    shards = made_samples.pair_shards("eq-ag")
    made_pairs.add("eq-ag", VIDEO_SUBSET, [shards[0][:1], *shards[1:]], "action-genome")
    made_pairs.describe("eq-ag")
    assert keys("eq-ag") == sorted(made_pairs.kept["eq-ag"]), "not what the cache has of the build before"
    assert len(made_pairs.kept["eq-ag"]) == 6
    markers = [name for name in made_pairs.store.names("eq-ag/_meta") if name.startswith("files-of-")]
    assert len(markers) == 1 and made_pairs.store.names(f"eq-ag/_meta/{markers[0]}") == ["README"]


def test_every_file_is_named_with_its_true_digest(made_pairs: MadeDataset) -> None:
    made_pairs.describe("eq-ag")
    meta = made_pairs.root / "eq-ag" / "_meta"
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


def test_metadata_of_a_subset_without_tars_validates(made_pairs: MadeDataset, mlcroissant: Any) -> None:
    for number in (0, 2, 3):
        made_pairs.store.remove(f"eq-ag/_meta/receipts/{number:05d}.json")
    made_pairs.describe("eq-ag")
    assert list(opened(made_pairs, mlcroissant, "eq-ag").records("pairs")) == []


def test_mlcroissant_validates_and_reads_triplets(made_triplets: MadeDataset, mlcroissant: Any) -> None:
    made_triplets.describe("two-images")
    assert "distractor_sha256" not in made_triplets.text("two-images/_meta/croissant.json"), "no triplet has any"
    found = opened(made_triplets, mlcroissant, "two-images")
    rows = {row["triplets/key"].decode(): row for row in found.records("triplets")}
    targets = read(found, "target")
    stored = {one.key: one for one in read_samples(made_triplets.store, "two-images")}
    assert rows.keys() == targets.keys() == stored.keys()
    for key, one in stored.items():
        assert targets[key].size == one.json.images["target"].size
        assert rows[key]["triplets/condition"].decode() == one.texts["condition"]
        assert rows[key]["triplets/target_caption"].decode() == one.json.captions["target"]


def test_mlcroissant_validates_and_reads_text_pairs(made_text_pairs: MadeDataset, mlcroissant: Any) -> None:
    made_text_pairs.describe("text")
    found = opened(made_text_pairs, mlcroissant, "text")
    negatives, captions = read(found, "negative_caption"), read(found, "caption")
    stored = {one.key: one for one in read_samples(made_text_pairs.store, "text")}
    rows = {row["text-pairs/key"].decode(): row for row in found.records("text-pairs")}
    assert rows.keys() == negatives.keys() == captions.keys() == stored.keys()
    for key, one in stored.items():
        assert (captions[key].decode(), negatives[key].decode()) == tuple(one.texts.values())
        assert rows[key]["text-pairs/image_id"].decode() == one.json.image_id


def test_mlcroissant_reads_an_index_without_tars(made_triplets: MadeDataset, mlcroissant: Any) -> None:
    made_triplets.describe("index-only")
    rows = list(opened(made_triplets, mlcroissant, "index-only").records("triplets"))
    assert [row["triplets/reference_id"].decode() for row in rows] == ["0", "1", "2", "4", "5", "6", "7", "8"]


def test_mlcroissant_validates_and_reads_templates(made_templates: MadeDataset, mlcroissant: Any) -> None:
    made_templates.describe("focus-attribute")
    assert "gallery09" not in made_templates.text("focus-attribute/_meta/croissant.json"), "no template has so many"
    found = opened(made_templates, mlcroissant, "focus-attribute")
    rows = {row["templates/key"].decode(): row for row in found.records("templates")}
    words, last = read(found, "condition"), read(found, "gallery08")
    stored = {one.key: one for one in read_samples(made_templates.store, "focus-attribute")}
    assert rows.keys() == stored.keys()
    for key, one in stored.items():
        assert words[key].decode() == rows[key]["templates/condition"].decode() == one.texts["condition"]
        assert rows[key]["templates/gallery08_sha256"].decode() == one.json.images["gallery08"].sha256
        assert last[key].size == one.json.images["gallery08"].size
