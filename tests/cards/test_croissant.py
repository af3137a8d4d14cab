"""Croissant metadata, validated and read by the specification's own library, without a network.

Previews of a dataset of several kinds, as they are published, and what a card says of how to make a subset again.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from tests.made_datasets import MadeDataset
from twinset.cards.publication import dataset_card, part_of, write_preview
from twinset.cards.rebuilding import ON_SERVER, models, recipe_of
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe, shipped_recipes
from twinset.contracts.stage import Stage
from twinset.shards.read import read_samples

RECORDS = {
    "eq-ag": "pairs",
    "text": "text-pairs",
    "triplets": "triplets",
    "index-only": "triplets",
    "focus-attribute": "templates",
}


def planned(name: str, count: int | None = None) -> Stage:
    return Stage(name=name, facts={}, content="", plan="", count=count, planned=7, shards=1, excluded={})


@pytest.mark.parametrize("name", RECORDS)
def test_mlcroissant_validates_and_reads_every_kind(made_all: MadeDataset, mlcroissant: Any, name: str) -> None:
    made_all.describe(name)
    path = made_all.root / name / "_meta/croissant.json"
    found, record = mlcroissant.Dataset(jsonld=str(path)), RECORDS[name]
    assert not found.metadata.ctx.issues.errors
    rows = {row[f"{record}/key"].decode(): row for row in found.records(record)}
    assert [*rows] == made_all.kept[name]
    for one in read_samples(made_all.store, name):
        row = {field.partition("/")[2]: value.decode() for field, value in rows[one.key].items()}
        assert {column: row[column] for column in one.texts} == one.texts
        assert all(row[f"{role}_sha256"] == hashlib.sha256(image).hexdigest() for role, image in one.images.items())
    for file in json.loads(path.read_bytes())["distribution"]:
        content = (path.parent / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest() and file["contentSize"] == f"{len(content)} B"


@pytest.mark.slow
def test_previews_show_the_images_of_every_kind(made_all: MadeDataset, tmp_path: Path) -> None:
    made_all.describe()
    shown = []
    for part in [part_of(made_all.store, name) for name in made_all.stages]:
        stored = {one.key: one for one in read_samples(made_all.store, part.name)}
        assert write_preview(made_all.store, part, tmp_path / "to") is bool(stored)
        for path in (tmp_path / "to/preview" / part.name).rglob("*.parquet"):
            shown.append(part.makes)
            rows = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache" / part.name))
            assert {row["key"] for row in rows} == stored.keys()
            for row in rows:
                one = stored[row["key"]]
                assert {name: row[name] for name in one.texts} == one.texts
                assert all(row[role].format == "JPEG" for role in one.images)
                assert row["licence"] == one.json.licence and row["credit"] == one.json.credit
    assert {*shown} == {"pair", "text-pair", "triplet", "template"}


def test_subsets_without_tars_are_no_configuration_beside_those_with(made_triplets: MadeDataset) -> None:
    """`load_dataset` takes the first configuration's format for that of all, and would read Parquet as a tar."""
    made_triplets.describe()
    parts = [part_of(made_triplets.store, name) for name in made_triplets.stages]
    card = dataset_card(parts, [], "lab/made", None, "")
    configs = yaml.safe_load(card.split("---\n")[1])["configs"]
    assert [one["config_name"] for one in configs] == ["triplets", "two-images"]
    assert 'index_only = load_dataset("lab/made", data_files="index-only/_meta/index.parquet")' in card
    only = [part for part in parts if part.name == "index-only"]
    alone = yaml.safe_load(dataset_card(only, [], "lab/made", None, "").split("---\n")[1])["configs"]
    assert alone[0]["data_files"][0]["path"] == "index-only/_meta/index.parquet"


@pytest.mark.parametrize("name", shipped_recipes())
def test_the_recipe_in_a_card_is_the_shipped_one(name: str) -> None:
    whole = load_recipe(name).model_copy(update={"max_missing": 0.5})
    for subset in whole.subsets:
        pasted = parse_recipe(yaml.safe_load(yaml.safe_dump(recipe_of(whole, planned(subset, 7)))))
        needed = whole.only([subset]).all
        assert pasted.max_missing == 0.5 and [*pasted.all] == [*needed] and pasted[subset].count == 7
        for one, settings in needed.items():
            assert content_of(pasted[one], pasted.seed) == content_of(settings, whole.seed)


def test_a_card_names_models_and_nothing_of_the_machine_or_of_how_a_server_is_paid(tmp_path: Path) -> None:
    engine = {"kind": "openai", "model": "some-llm", "base_url": "http://127.0.0.1:1/v1", "max_cost": 4000}
    engine |= {"api_key_variable": "LAB_KEY", "price_in": 1, "price_out": 2}
    source = {"kind": "negative-captions", "captions": "c.json", "kinds": ["replace_obj"], "engine": engine}
    recipe = parse_recipe({"name": "one", "subsets": {"one": {"source": source | {"licence": "CC0-1.0"}}}})
    said = yaml.safe_dump(recipe_of(recipe, planned("one")))
    assert "some-llm" in said and not any(one in said for one in ("LAB_KEY", "4000", "price_in", "127.0.0.1"))
    assert models(recipe)["some-llm"] == ON_SERVER and ON_SERVER not in models(load_recipe("triplet-clip")).values()
    filtered = load_recipe("eqben", [f"subsets.eq-sd.filters=[{{kind: true-of-both, model: {tmp_path}}}]"])
    pasted = recipe_of(filtered, planned("eq-sd"))
    assert pasted["subsets"]["eq-sd"]["filters"][0]["model"] == "path/to/model"
    assert str(tmp_path) not in yaml.safe_dump(pasted)
