"""What a card says of how to make a subset again."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.cards.made_cards import described, small_card
from tests.made_datasets import MadeDataset
from twinset.cards.rebuilding import models, packages, rebuilding, recipe_of
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.locations import PLACES
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe, shipped_recipes
from twinset.contracts.stage import Stage, runtime_facts
from twinset.shards.read import read_settings
from twinset.shards.storage import layout


def test_packages_that_brought_kinds_are_named(made_pairs: MadeDataset) -> None:
    facts = made_pairs.stages["eq-ag"].facts
    alone = small_card(made_pairs)
    assert "other people's" not in alone and "CHECKOUT/demo" not in alone
    brought = {
        "generator": {**facts["generator"], "distribution": "my-videos 1.2"},
        "filters": [{"kind": "dark", "version": 1, "weights": {}, "distribution": "twinset-demo 0.1.0"}],
        "libraries": {"numpy": "2.4.0", "torch": "2.9.0+cpu"},
    }
    text = small_card(made_pairs, facts={**facts, **brought})
    assert f"* `my-videos 1.2`, for source {facts['generator']['kind']}\n" in text
    assert "pip install CHECKOUT/demo  # twinset-demo 0.1.0: filter dark\n" in text
    assert "pip install numpy==2.4.0 torch==2.9.0+cpu\n" in text and "https://download.pytorch.org/whl" in text


def test_machines_are_those_of_the_logs(made_pairs: MadeDataset) -> None:
    store, recipe = made_pairs.store, read_settings(made_pairs.store, "eq-ag")[0].only(["eq-ag"])
    stage = made_pairs.stages["eq-ag"]
    assert rebuilding(store, recipe, [stage]).anywhere
    facts = runtime_facts("A GPU", 2, 8)
    numbers = [layout.shard_number(name, "json") for name in store.names(layout.meta("eq-ag", "receipts"))]
    for number in numbers:
        receipt = json.loads(store.read(layout.receipt("eq-ag", number))) | {"runtime": digest(facts)}
        store.write(layout.receipt("eq-ag", number), canonical_json(receipt) + b"\n")
        store.write(layout.log("eq-ag", number), json.dumps({"runtime": facts}).encode())
    found = rebuilding(store, recipe, [stage])
    (machine,) = found.machines
    assert machine.startswith("A GPU (") and machine.endswith("), 2 threads, 8 samples at a time")
    assert found.machines[machine] == ["eq-ag"] and found.libraries["torch"] == version("torch") and not found.unknown
    for number in numbers:
        store.write(layout.log("eq-ag", number), json.dumps({"runtime": {**facts, "threads": 3}}).encode())
    found = rebuilding(store, recipe, [stage])
    assert found.unknown == ("eq-ag",) and not found.machines and not found.anywhere


@pytest.mark.parametrize("name", ["eq-ag", "triplets", "index-only", "change-attribute", "text"])
def test_the_recipe_in_the_card_makes_the_same_stage(
    made_pairs: MadeDataset,
    made_triplets: MadeDataset,
    made_templates: MadeDataset,
    made_text_pairs: MadeDataset,
    tmp_path: Path,
    name: str,
) -> None:
    block = re.search(r"```yaml\n(.*?)```", described(made_pairs, name), re.DOTALL)
    assert block is not None
    (tmp_path / "recipe.yaml").write_text(block[1], "utf-8")
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    stage, settings = made_pairs.stages[name], content_of(recipe[name], recipe.seed)
    assert settings == stage.facts["settings"]
    assert digest({**stage.facts, "settings": settings}) == stage.content


@pytest.mark.parametrize("name", shipped_recipes())
def test_the_recipe_in_a_card_is_the_shipped_one(name: str) -> None:
    whole = load_recipe(name).model_copy(update={"max_missing": 0.5})
    for subset in whole.subsets:
        stage = Stage(name=subset, facts={}, content="", plan="", count=7, planned=7, shards=1, excluded={})
        pasted = parse_recipe(yaml.safe_load(yaml.safe_dump(recipe_of(whole, stage))))
        needed = whole.only([subset]).all
        assert pasted.max_missing == 0.5 and [*pasted.all] == [*needed] and pasted[subset].count == 7
        for one, settings in needed.items():
            assert content_of(pasted[one], pasted.seed) == content_of(settings, whole.seed)


def test_all_folders_of_a_package_are_named(monkeypatch: pytest.MonkeyPatch, made_pairs: MadeDataset) -> None:
    monkeypatch.setattr(type(PLACES), "distribution", lambda *_: "brings 1.0")
    recipe, _ = read_settings(made_pairs.store, "eq-ag")
    places = [("", "", f"{one}:file") for one in ("ones", "ones", "twos")]
    monkeypatch.setattr(type(recipe["eq-ag"].source), "places", lambda _: places)
    assert packages([], recipe.only(["eq-ag"])) == {"brings 1.0": ["the files of ones", "the files of twos"]}


def test_a_card_names_the_model_of_a_server_and_none_of_how_it_is_asked_and_paid() -> None:
    engine = {"kind": "openai", "model": "some-llm", "base_url": "http://127.0.0.1:1/v1", "max_cost": 4000}
    engine |= {"api_key_variable": "LAB_KEY", "price_in": 1, "price_out": 2}
    source = {"kind": "negative-captions", "captions": "c.json", "kinds": ["replace_obj"], "engine": engine}
    recipe = parse_recipe({"name": "one", "subsets": {"one": {"source": source | {"licence": "CC0-1.0"}}}})
    stage = Stage(name="one", facts={}, content="", plan="", planned=7, shards=1, excluded={})
    said = yaml.safe_dump(recipe_of(recipe, stage))
    assert "some-llm" in said and not any(one in said for one in ("LAB_KEY", "4000", "price_in", "127.0.0.1"))
    assert models(recipe)["some-llm"] == "on the server that the recipe names"


def test_a_language_model_in_this_process_is_on_no_server() -> None:
    assert "on the server that the recipe names" not in models(load_recipe("triplet-clip")).values()


def test_a_filters_model_that_is_a_folder_is_a_place_to_fill_in(tmp_path: Path) -> None:
    recipe = load_recipe("eqben", [f"subsets.eq-sd.filters=[{{kind: directional-similarity, model: {tmp_path}}}]"])
    stage = Stage(name="eq-sd", facts={}, content="", plan="", planned=7, shards=1, excluded={})
    pasted = recipe_of(recipe, stage)
    assert pasted["subsets"]["eq-sd"]["filters"][0]["model"] == "path/to/model"
    assert str(tmp_path) not in yaml.safe_dump(pasted)
