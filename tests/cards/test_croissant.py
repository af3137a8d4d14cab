"""Croissant metadata, validated and read by the specification's own library, without a network.

What a card says that captions tell without the images.
The card and the previews of a dataset of several kinds, as they are published.
What a card says of how to make a subset again.
"""

import hashlib
import io
import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests import made_samples
from tests.cards.made_cards import described, small_card
from tests.generators.words_alone.test_probe import captions
from tests.made_datasets import MadeDataset
from tests.made_samples import EQBEN, NEGATIVE_SUBSET, VIDEO_SUBSET
from twinset.cards.describe import describe
from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.publication import Part, dataset_card, part_of, write_preview
from twinset.cards.rebuilding import models, packages, rebuilding, recipe_of
from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import PLACES
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe, shipped_recipes
from twinset.contracts.stage import Stage, runtime_facts
from twinset.shards.read import read_samples, read_settings
from twinset.shards.storage import layout


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


def test_the_card_flags_what_is_solved_blind(made: MadeDataset) -> None:
    pairs = [one for shard in made_samples.text_pair_shards("text") for one in shard if hasattr(one.made, "caption")]
    plan = []
    for number in range(60):
        type_ = ("add", "swap")[number % 2]
        said = {"caption": "a red disc", "negative_caption": "a red disc, big" if type_ == "add" else "disc red a"}
        about = {"key": f"text-{number:016d}", "group": f"{number // 3}.jpg", "type": type_, "subtype": "obj"}
        plan.append(replace(pairs[0], made=replace(pairs[0].made, **said, **about), group=about["group"]))
    made.add("text", NEGATIVE_SUBSET, [plan])
    text = described(made, "text")
    assert (
        "* **Length: the true caption can be guessed (chance: 50 %).** The caption that is shorter is it in 75.0%"
        in text
    )
    assert "| shorter | **75.0%** | 70.8 to 78.8 % | 50.0% |" in text
    assert (
        "* **Order of words: 30 pairs (50.0 %) ask for it.** In these alone both captions are made of the same" in text
    )


def test_few_pairs_tell_nothing_of_words(made_pairs: MadeDataset) -> None:
    few, enough = small_card(made_pairs, kept=11), small_card(made_pairs, kept=12)
    assert (
        "* **Single words: too few pairs to say.** There are 11; it takes 12 with one word, always on the same" in few
    )
    assert (
        "none stands on one side more often than chance explains** (sign test of each word, p < 0.001 after" in enough
    )


def test_cards_say_what_words_alone_tell(made: MadeDataset, made_text_pairs: MadeDataset) -> None:
    few = described(made_text_pairs, "text")
    assert "* **All words together: not measured.** A model of the words needs 100 pairs of a kind" in few
    assert "both captions: right" not in few
    made.add("negatives", {"source": {"kind": "test-scores"}}, [])
    pairs = captions(150, 0)
    texts = dict(zip(("caption", "negative_caption"), (list(side) for side in zip(*pairs, strict=True)), strict=True))
    index = io.BytesIO()
    pq.write_table(pa.table({**texts, "type": ["replace"] * 150, "subtype": ["att"] * 150}), index)
    made.store.write("negatives/_meta/index.parquet", index.getvalue())
    describe(made.store, "negatives", IndexSummary(150, 150, {}, {}, {"test": 150}, 1, {}, 0))
    row = re.search(r"\| replace att \| 150 \| (0\.\d\d) \| (\d+)% \|", made.text("negatives/README.md"))
    said = re.search(r"a model of the words is right in (\d+) % of the pairs", made.text("negatives/README.md"))
    assert said is not None and row is not None and said[1] == row[2]
    assert 0.3 < float(row[1]) < 0.7 and 35 < int(row[2]) < 65


def parts_of(made: MadeDataset) -> list[Part]:
    made.describe()
    return [part_of(made.store, name) for name in made.stages]


@pytest.mark.slow
def test_subsets_without_tars_are_no_configuration_beside_those_with(made_triplets: MadeDataset) -> None:
    """`load_dataset` takes the first configuration's format for that of all, and would read Parquet as a tar."""
    parts = parts_of(made_triplets)
    card = dataset_card(parts, [], "lab/made", None, "")
    configs = yaml.safe_load(card.split("---\n")[1])["configs"]
    assert [one["config_name"] for one in configs] == ["triplets", "two-images"]
    assert 'load_dataset("lab/made", "two-images")' in card
    assert 'index_only = load_dataset("lab/made", data_files="index-only/_meta/index.parquet")' in card
    only = [part for part in parts if part.name == "index-only"]
    alone = yaml.safe_load(dataset_card(only, [], "lab/made", None, "").split("---\n")[1])["configs"]
    assert alone[0]["data_files"][0]["path"] == "index-only/_meta/index.parquet"


@pytest.mark.slow
@pytest.mark.usefixtures("made_pairs", "made_text_pairs", "made_triplets", "made_templates")
def test_previews_show_the_images_of_every_kind(made: MadeDataset, tmp_path: Path) -> None:
    shown = []
    for part in parts_of(made):
        stored = {one.key: one for one in read_samples(made.store, part.name)}
        assert write_preview(made.store, part, tmp_path / "to") is bool(stored)
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


EDITED = [
    f"---\n{{{text}}}\n---\n"
    for text in ("tags: ", "language: en", "configs: [{config_name: a}]", 'configs: [{data_files: "test/*.tar"}]')
]


@pytest.mark.parametrize("card", ["", "no metadata", "---\n- a list\n---\n", "---\n{a: [\n---\n", None, *EDITED])
def test_a_card_without_metadata_is_named(made_text_pairs: MadeDataset, card: str | None) -> None:
    path = Path(made_text_pairs.root) / "text/README.md"
    if card is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(card)
    with pytest.raises(WrongUse, match=r"text/README.md: no card with metadata .* build again"):
        part_of(made_text_pairs.store, "text")


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
    recipe = load_recipe("eqben", [f"subsets.eq-sd.filters=[{{kind: true-of-both, model: {tmp_path}}}]"])
    stage = Stage(name="eq-sd", facts={}, content="", plan="", planned=7, shards=1, excluded={})
    pasted = recipe_of(recipe, stage)
    assert pasted["subsets"]["eq-sd"]["filters"][0]["model"] == "path/to/model"
    assert str(tmp_path) not in yaml.safe_dump(pasted)
