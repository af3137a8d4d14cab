"""Cards and Croissant metadata say what is true of the data; without a network."""

import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests import made_samples
from tests.generators.words_alone.test_probe import captions
from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET
from twinset.cards.describe import describe
from twinset.cards.kinds.kind import IndexSummary
from twinset.cards.lineage import rejections
from twinset.cards.publication import dataset_card, part_of, write_overview
from twinset.cards.rebuilding import ON_SERVER, models, recipe_of
from twinset.contracts.recipe import content_of, load_recipe, parse_recipe, shipped_recipes
from twinset.contracts.stage import Stage
from twinset.shards.read import DamagedIndex, read_samples

Described = Callable[[str], MadeDataset]


def card_of(dataset: MadeDataset, name: str) -> str:
    return dataset.text(f"{name}/README.md")


def front_of(text: str) -> dict[str, Any]:
    front: dict[str, Any] = yaml.safe_load(text.split("---")[1])
    return front


def test_the_card_counts_what_is_there(described: Described) -> None:
    text = card_of(described("eq-youcook2"), "eq-youcook2")
    rejected = "`missing-media` 3 (25.0 %), `equal-captions` 1 (8.3 %) by test-alike"
    assert f"| `unsaid` 2 | 12 | {rejected} | 8 (66.7 %) |\n" in text
    assert f"`eq-youcook2`: left out `unsaid` 2 besides the 12 planned, rejected of 12 {rejected} |\n" in text
    assert "* `missing-media`: the video is not in the media folder\n" in text
    assert "* `equal-captions`: both captions say the same\n" in text
    assert "* **Length: too few videos to say.** Taking the caption that " in text
    assert re.search(r"Tars: \d, 0\.\d MB together, of \d to \d pairs each; no video is split\nbetween two\.", text)


KINDS = {
    "eq-ag": ("8 minimal pairs, made from [Drawn videos]", "image0.jpg, image1.jpg", ("test", "test/*.tar")),
    "triplets": ("8 triplets, mined from Captions", "reference.jpg, target.jpg, distractor", ("train", "train/*.tar")),
    "two-images": ("8 triplets, mined from Captions", "target.jpg, condition.txt", ("train", "train/*.tar")),
    "index-only": ("8 triplets, mined from Captions", "", ("train", "_meta/index.parquet")),
    "text": ("8 text pairs, made from test-negatives", "image.jpg, caption.txt", ("test", "test/*.tar")),
    "text-index": ("8 text pairs, made from test-negatives", "", ("test", "_meta/index.parquet")),
    "focus-attribute": ("8 templates, ", "gallery00.jpg … gallery08.jpg", ("test", "test/*.tar")),
    "focus-object": ("8 templates, ", "gallery00.jpg … gallery13.jpg", ("test", "test/*.tar")),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_card_of_each_kind_says_what_it_is(described: Described, name: str) -> None:
    title, fields, (split, path) = KINDS[name]
    dataset = described(name)
    text = card_of(dataset, name)
    front = front_of(text)
    assert [config["data_files"] for config in front["configs"]] == [[{"split": split, "path": path}]]
    assert ("webdataset" in front["tags"]) == bool(fields) and fields in text
    assert title in text and "<script" not in text and made_samples.LONG[:200] not in text
    assert text.count("![") == 1 + bool(fields)
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert dataset.store.size(f"{name}/{picture}")


def test_the_card_says_of_its_source_what_the_source_says(described: Described, made: MadeDataset) -> None:
    licence = "other: CC0\n# Gotcha ![x](http://e/x.png) <img src=y> `a`"
    source = {"kind": "test-folder", "media": "/data", "licence": licence}
    made.add("plain", {"source": source}, made_samples.pair_shards("plain"))
    made.describe("plain")
    video, plain = card_of(described("eq-ag"), "eq-ag"), card_of(made, "plain")
    assert "made from [Drawn videos](https://videos.example) following [A Paper](https://paper.example):" in video
    assert "@inproceedings{paper2020" in video and "@misc{videos2021" in video
    assert "8 minimal pairs, made from test-folder: two images" in plain
    assert r"All pairs: CC0 # Gotcha `![x](http://e/x.png)` &lt;img src=y> \`a\`." in plain, "hostile text stays text"
    assert not re.search(r"A Paper|[Vv]ideo|EqBen|bibtex", plain)
    croissant = json.loads(made.text("plain/_meta/croissant.json"))
    assert croissant["citeAs"] == "" and croissant["description"].startswith("8 minimal pairs, made from test-folder: ")
    assert croissant["license"].startswith("CC0 # Gotcha") and "The group that" in json.dumps(croissant)


EMPTY: dict[str, dict[str, Any]] = {
    "pair": made_samples.VIDEO_SUBSET,
    "triplet": made_samples.MINED_SUBSET,
    "template": made_samples.gallery_subset("focus-object"),
    "text pair": NEGATIVE_SUBSET,
}


@pytest.mark.parametrize("noun", EMPTY)
def test_a_subset_that_keeps_nothing_is_described_too(made: MadeDataset, mlcroissant: Any, noun: str) -> None:
    made.add("empty", EMPTY[noun], [])
    made.describe("empty")
    text = card_of(made, "empty")
    assert "| 0 | none | 0 (–) |" in text and f"No {noun} is kept of the 0 planned" in text
    assert "load_dataset" not in text and "![" not in text and "configs" not in front_of(text)
    metadata = mlcroissant.Dataset(jsonld=str(made.root / "empty/_meta/croissant.json")).metadata
    assert not metadata.ctx.issues.errors


def test_a_table_has_a_card_and_no_pictures(made: MadeDataset) -> None:
    made.add("negatives", {"source": {"kind": "test-scores"}}, [])
    texts = dict(zip(("caption", "negative_caption"), map(list, zip(*captions(150, 0), strict=True)), strict=True))
    terms = {"key": ["a"] * 150, "licence": ["MIT"] * 150, "credit": [""] * 150}
    kinds = {"type": ["replace"] * 150, "subtype": ["att"] * 150}
    index = io.BytesIO()
    pq.write_table(pa.table({**texts, **terms, "split": ["test"] * 150, **kinds}), index)
    made.store.write("negatives/_meta/index.parquet", index.getvalue())
    describe(made.store, "negatives", IndexSummary(159, 150, {"generator": {"odd": 9}}, {"test": 150}, {}, 0))
    text = made.text("negatives/README.md")
    assert front_of(text)["configs"][0]["data_files"] == [{"split": "test", "path": "_meta/index.parquet"}]
    assert "A table, made from Somebody's scores." in text and "| `odd` 9 (5.7 %) | 150 (94.3 %) |" in text
    assert "for each of the 150 candidates" in text and "![" not in text and "biases" not in text
    assert not [name for name in made.store.names("negatives/_meta") if name.endswith((".png", "croissant.json"))]
    row = re.search(r"\| replace att \| 150 \| (0\.\d\d) \| (\d+)% \|", text)
    assert row is not None and 0.3 < float(row[1]) < 0.7 and 35 < int(row[2]) < 65
    assert f"a model of the words is right in {row[2]} % of the pairs" in text


def test_the_card_flags_what_is_solved_blind(made: MadeDataset) -> None:
    pair: Any = made_samples.text_pair_shards("text", images=False)[0][0]
    plan = []
    for number in range(60):
        type_ = ("add", "swap")[number % 2]
        captions = {"caption": "a red disc", "negative_caption": "a red disc, big" if type_ == "add" else "disc red a"}
        about = {"key": f"text-{number:016d}", "group": f"{number // 3}.jpg", "type": type_, "subtype": "obj"}
        plan.append(replace(pair, made=replace(pair.made, **captions, **about), group=about["group"]))
    made.add("text", NEGATIVE_SUBSET, [plan])
    made.describe("text")
    text = card_of(made, "text")
    guessed = "* **Length: the true caption can be guessed (chance: 50 %).** The caption that is shorter is it in 75.0%"
    assert guessed in text and "| shorter | **75.0%** | 70.8 to 78.8 % | 50.0% |" in text
    assert "* **Order of words: 30 pairs (50.0 %) ask for it.**" in text
    assert "* **All words together: not measured.**" in text


def test_a_card_of_all_subsets_loads_each_by_its_name(described: Described, made: MadeDataset) -> None:
    described("eq-ag")
    made.take(described("eq-youcook2"))
    write_overview(made.store, ["eq-ag", "eq-youcook2"])
    text = made.text("README.md")
    assert {config["config_name"]: config["data_files"] for config in front_of(text)["configs"]} == {
        name: [{"split": "test", "path": f"{name}/test/*.tar"}] for name in ("eq-ag", "eq-youcook2")
    }
    assert "# made\n\nBuilt with twinset" in text and "| [`eq-ag`](eq-ag/README.md) | 8 pairs | test (8) |" in text
    place = Path(made.root) / "README.md"
    for edited in (f"{text}\nA note.\n", text.replace("Built", "Made"), "# My project\n"):
        place.write_text(edited)
        write_overview(made.store, ["eq-ag"])
        assert place.read_text() == edited
    place.write_text(text)
    made.store.write("eq-ag/README.md", b"---\nconfigs: [{data_files: /etc/*.tar}]\n---\nmine")
    write_overview(made.store, ["eq-ag"])
    again = made.text("README.md")
    assert "youcook2" not in again and "/etc" not in again, "what twinset wrote is written again, of the data alone"


def test_damaged_rejections_are_named_with_the_remedy(made: MadeDataset) -> None:
    made.store.write("negatives/_meta/rejections.parquet", b"PAR1 damaged PAR1")
    with pytest.raises(DamagedIndex, match=r"/rejections\.parquet: .* remove negatives/_meta/index\.json"):
        rejections(made.store, "negatives")


def planned(name: str, count: int | None = None) -> Stage:
    return Stage(name=name, facts={}, content="", plan="", count=count, planned=7, shards=1, excluded={})


@pytest.mark.parametrize(
    ("name", "record"),
    [
        *(("eq-ag", "pairs"), ("text", "text-pairs"), ("focus-attribute", "templates")),
        *(("triplets", "triplets"), ("index-only", "triplets")),
    ],
)
def test_mlcroissant_reads_every_kind(described: Described, mlcroissant: Any, name: str, record: str) -> None:
    dataset = described(name)
    path = dataset.root / name / "_meta/croissant.json"
    croissant = mlcroissant.Dataset(jsonld=str(path))
    assert not croissant.metadata.ctx.issues.errors
    rows = {row[f"{record}/key"].decode(): row for row in croissant.records(record)}
    assert [*rows] == dataset.kept[name]
    for sample in read_samples(dataset.store, name):
        row = {field.partition("/")[2]: value.decode() for field, value in rows[sample.key].items()}
        assert {column: row[column] for column in sample.texts} == sample.texts
        hashes = {f"{role}_sha256": hashlib.sha256(image).hexdigest() for role, image in sample.images.items()}
        assert {column: row[column] for column in hashes} == hashes
    for file in json.loads(path.read_bytes())["distribution"]:
        content = (path.parent / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest() and file["contentSize"] == f"{len(content)} B"


def test_subsets_without_tars_are_no_configuration_beside_those_with(described: Described) -> None:
    """`load_dataset` takes the first configuration's format for that of all, and would read Parquet as a tar."""
    parts = [part_of(described(name).store, name) for name in ("triplets", "two-images", "index-only")]
    card = dataset_card(parts, [], "lab/made", None, "")
    configs = yaml.safe_load(card.split("---\n")[1])["configs"]
    assert [config["config_name"] for config in configs] == ["triplets", "two-images"]
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
        for stage, settings in needed.items():
            assert content_of(pasted[stage], pasted.seed) == content_of(settings, whole.seed)


def test_a_card_names_models_and_nothing_of_the_machine_or_of_how_a_server_is_paid(tmp_path: Path) -> None:
    engine = {"kind": "openai", "model": "some-llm", "base_url": "http://127.0.0.1:1/v1", "max_cost": 4000}
    engine |= {"api_key_variable": "LAB_KEY", "price_in": 1, "price_out": 2}
    source = {"kind": "negative-captions", "captions": "c.json", "kinds": ["replace_obj"], "engine": engine}
    recipe = parse_recipe({"name": "one", "subsets": {"one": {"source": source | {"licence": "CC0-1.0"}}}})
    shown = yaml.safe_dump(recipe_of(recipe, planned("one")))
    assert "some-llm" in shown and not re.search(r"LAB_KEY|4000|price_in|127\.0\.0\.1", shown)
    assert models(recipe)["some-llm"] == ON_SERVER and ON_SERVER not in models(load_recipe("triplet-clip")).values()
    filtered = load_recipe("eqben", [f"subsets.eq-sd.filters=[{{kind: true-of-both, model: {tmp_path}}}]"])
    pasted = recipe_of(filtered, planned("eq-sd"))
    assert pasted["subsets"]["eq-sd"]["filters"][0]["model"] == "path/to/model"
    assert str(tmp_path) not in yaml.safe_dump(pasted)
