"""The card says what is true of the data and of its source."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests import made_samples
from tests.cards.made_cards import FOLDER_SUBSET, NUMBERS, described, small_card
from tests.made_datasets import MadeDataset
from tests.made_samples import MINED_SUBSET, TASKS
from twinset.cards.describe import card, describe
from twinset.cards.kinds.kind import IndexSummary, ScoreSpread
from twinset.cards.lineage import Step
from twinset.cards.publication import write_overview
from twinset.cards.rebuilding import Rebuilding, packages
from twinset.contracts.errors import WrongUse
from twinset.shards.read import read_settings
from twinset.shards.storage import layout


def test_flags_are_counted_and_explained(made_pairs: MadeDataset) -> None:
    text = small_card(made_pairs, 8, {"missing-media": 3})
    assert "| missing-media | 3 | 37.5 % |\n\n* `missing-media`: " in text and "_meta/flagged.parquet" in text
    assert "Flagged" not in small_card(made_pairs)


def test_the_card_counts_what_is_there(made_pairs: MadeDataset) -> None:
    text = described(made_pairs, "eq-youcook2")
    front = yaml.safe_load(text.split("---")[1])
    assert front["configs"][0]["data_files"] == [{"split": "test", "path": "test/*.tar"}]
    assert front["size_categories"] == ["n<1K"] and "webdataset" in front["tags"]
    rejected = "`missing-media` 3 (25.0 %), `equal-captions` 1 (8.3 %) by test-alike"
    assert f"| `unsaid` 2 | 12 | {rejected} | 8 (66.7 %) |\n" in text
    assert f"`eq-youcook2`: left out `unsaid` 2 besides the 12 planned, rejected of 12 {rejected} |\n" in text
    assert "| images in all, equal ones once | 9 |" in text and "96 × 72 (8)" in text
    assert "| videos that pairs come from | 3 |" in text
    assert "Image 0 comes first in time in 100.0%" in text
    assert "# image0.jpg, image1.jpg, caption0.txt, caption1.txt, json" in text
    assert "| guessed caption 0: the caption that is or has |" not in text, "three videos show nothing"
    assert (
        "* **Length: too few videos to say.** Taking the caption that " in text and "They come from 3 videos; " in text
    )
    assert re.search(r"Tars: \d, 0\.\d MB together, of \d to \d pairs each; no video is split\nbetween two\.", text)
    assert "<script>" not in text
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert made_pairs.store.size(f"eq-youcook2/{picture}")


def test_the_card_says_of_its_source_what_the_source_says(made_pairs: MadeDataset) -> None:
    made_pairs.add("plain", FOLDER_SUBSET, made_samples.pair_shards("plain"))
    video, plain = described(made_pairs, "eq-ag"), described(made_pairs, "plain")
    assert "made from [Drawn videos](https://videos.example) following [A Paper](https://paper.example):" in video
    assert "* Frames are taken by the rule of docs/frames.md.\n" in video
    assert "@inproceedings{paper2020" in video and "@misc{videos2021" in video
    assert (
        "8 minimal pairs, made from test-folder: two images" in plain and "| groups that pairs come from | 3 |" in plain
    )
    assert not re.search(r"A Paper|[Vv]ideo|EqBen|bibtex", plain)
    assert "The recipe names no publication for what stage `plain` reads." in plain and "names no pub" not in video
    croissant = json.loads(made_pairs.text("plain/_meta/croissant.json"))
    assert croissant["citeAs"] == "" and croissant["description"].startswith("8 minimal pairs, made from test-folder: ")
    assert (
        croissant["license"] == "mine" and "All pairs: mine.\n" in plain and "The group that" in json.dumps(croissant)
    )


def test_reasons_are_explained_by_source_and_filters(made_pairs: MadeDataset) -> None:
    text = described(made_pairs, "eq-ag")
    assert "* `missing-media`: the video is not in the media folder\n" in text
    assert "* `equal-captions`: both captions say the same\n" in text
    places = [("unsaid", "a.json line 7"), ("unsaid", "a|b <i>")]
    text = small_card(made_pairs, excluded={"unsaid": 3, "brand-new": 1}, examples=places)
    assert "| `brand-new` 1, `unsaid` 3 | " in text and "* `unsaid`: pairs without words\n" in text
    assert "| unsaid | a.json line 7 |\n| unsaid | a\\|b &lt;i> |\n" in text


def test_the_hundredth_of_few_conditions_is_not_counted(made_triplets: MadeDataset, made: MadeDataset) -> None:
    assert "hundredth" not in described(made_triplets, "triplets")
    first = next(one for one in made_samples.triplet_shards("many")[0] if hasattr(one.made, "condition"))
    many = [
        replace(first, made=replace(first.made, key=f"many-{number:016d}", condition=f"on {number}"))
        for number in range(100)
    ]
    made.add("many", MINED_SUBSET, [many])
    assert "* The hundredth of the conditions with most triplets has 1.0% of them.\n" in described(made, "many")


def test_hostile_text_stays_text(made_pairs: MadeDataset) -> None:
    assert "| a\\|b &lt;b> | 1 | 1 | 0 |" in small_card(made_pairs, 12)
    settings = {
        "source": {**FOLDER_SUBSET["source"], "licence": "other: CC0\n# Gotcha ![x](http://e/x.png) <img src=y> `a`"}
    }
    made_pairs.add("hostile", settings, made_samples.pair_shards("hostile"))
    text = described(made_pairs, "hostile")
    assert r"All pairs: CC0 # Gotcha `![x](http://e/x.png)` &lt;img src=y> \`a\`." in text


@pytest.mark.slow
def test_descriptions_have_the_same_bytes_every_time(
    made_pairs: MadeDataset, made_triplets: MadeDataset, made_templates: MadeDataset, made_text_pairs: MadeDataset
) -> None:
    def snapshot() -> dict[str, bytes]:
        made_pairs.describe("eq-gebc", "triplets", "focus-object", "text")  # one of each kind
        return {str(path): path.read_bytes() for path in made_pairs.root.rglob("*") if path.is_file()}

    assert snapshot() == snapshot()


@pytest.mark.parametrize("name, noun", [("eq-ag", "pair"), ("two-images", "triplet"), ("focus-object", "template")])
def test_a_subset_that_keeps_nothing_is_described_too(
    made_pairs: MadeDataset, made_triplets: MadeDataset, made_templates: MadeDataset, name: str, noun: str
) -> None:
    for file in made_pairs.store.names(layout.meta(name, "receipts")):
        made_pairs.store.remove(layout.meta(name, f"receipts/{file}"))
    text = described(made_pairs, name)
    assert "| 0 | none | 0 (–) |" in text and f"No {noun} is kept of the 0 planned" in text
    assert "load_dataset" not in text and "![" not in text and "configs" not in yaml.safe_load(text.split("---")[1])


@pytest.mark.parametrize("kept, name", [(999, "n<1K"), (1000, "1K<n<10K"), (195_872, "100K<n<1M"), (10**6, "1M<n<10M")])
def test_the_size_category_is_hugging_faces(made_pairs: MadeDataset, kept: int, name: str) -> None:
    assert yaml.safe_load(small_card(made_pairs, kept).split("---")[1])["size_categories"] == [name]


@pytest.mark.parametrize("name", ["triplets", "two-images", "index-only"])
def test_the_card_of_triplets_says_what_they_are(made_triplets: MadeDataset, name: str) -> None:
    text = described(made_triplets, name)
    front = yaml.safe_load(text.split("---")[1])
    path = "_meta/index.parquet" if name == "index-only" else "train/*.tar"
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": path}]
    assert ("webdataset" in front["tags"]) == (name != "index-only")
    assert (
        "8 triplets, mined from Captions following [A Paper]" in text and "| conditions, equal ones once | 7 |" in text
    )
    assert ("reference.jpg, target.jpg" in text) == (name != "index-only")
    assert ("distractor.jpg" in text) == ("not both: a hard negative" in text) == (name == "triplets")
    assert "<script" not in text and made_samples.LONG[:200] not in text
    assert "| beside blue disc | 2 | 25.0 % |" in text
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(pictures) == (1 if name == "index-only" else 2)
    assert all(made_triplets.store.size(f"{name}/{picture}") for picture in pictures)


def test_reports_of_planning_reach_the_source(made_triplets: MadeDataset) -> None:
    assert "## How it was made\n\nMined somehow.\n" in described(made_triplets, "triplets")
    made_triplets.store.write("triplets/_meta/mining.json", b'{"mined": 1000}')
    assert "Mined 1,000 relations." in described(made_triplets, "triplets")
    made_triplets.store.write("triplets/_meta/mining.json", b"{")
    with pytest.raises(WrongUse, match=r"mining\.json: not JSON .*remove it"):
        described(made_triplets, "triplets")


def test_triplets_of_one_image_are_counted(made: MadeDataset) -> None:
    def alike(number: int) -> dict[str, str]:
        return {"reference": "5", "target": "5" if number < 2 else "6", "distractor": "6" if number < 4 else "7"}

    made.add("alike", MINED_SUBSET, made_samples.triplet_shards("alike", count=6, ids=alike))
    text = described(made, "alike")
    assert "* 2 triplets (40.0 %) have one image as reference\n  and target." in text
    assert "* 1 triplets (20.0 %) have the image\n  of their reference or target as distractor." in text


@pytest.mark.parametrize("name", ["text", "text-index"])
def test_the_card_of_text_pairs_says_what_they_are(made_text_pairs: MadeDataset, name: str) -> None:
    text = described(made_text_pairs, name)
    front = yaml.safe_load(text.split("---")[1])
    path = "_meta/index.parquet" if name == "text-index" else "test/*.tar"
    assert front["configs"][0]["data_files"] == [{"split": "test", "path": path}]
    assert (
        "8 text pairs, made from test-negatives following [A Paper]" in text
        and "| images that pairs come from | 3 |" in text
    )
    assert ("image.jpg, caption.txt, negative_caption.txt" in text) == (name == "text")
    assert "Which caption is the true one, told without the image:" in text and "right in\n  100.0% of these" in text
    assert "<script" not in text and made_samples.LONG[:200] not in text
    assert made_text_pairs.store.size(f"{name}/_meta/words.png"), "the source's own picture"
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(pictures) == (1 if name == "text-index" else 2)
    assert all(made_text_pairs.store.size(f"{name}/{picture}") for picture in pictures)


@pytest.mark.parametrize("task", TASKS)
def test_the_card_of_templates_says_what_they_are(made_templates: MadeDataset, task: str) -> None:
    text = described(made_templates, task)
    assert f'They ask the task "{task}".' in text and "pair" not in text.lower()
    size, last = (10, "gallery08.jpg") if task == "focus-attribute" else (15, "gallery13.jpg")
    assert f"Galleries have {size} images" in text and f"… {last}" in text
    assert f"Chance is a Recall at 1 of {1 / size:.1%} with {size} images." in text
    assert "| `missing-media` 1 (11.1 %) |" in text and "| templates in test | 8 |" in text
    assert ("types of attributes" in text) == task.endswith("attribute")
    assert "<script" not in text and made_samples.LONG[:200] not in text


def test_a_table_has_a_card_and_no_pictures(made: MadeDataset) -> None:
    made.add("scores", {"source": {"kind": "test-scores"}}, [])
    index = io.BytesIO()
    pq.write_table(pa.table({"key": ["scores-a"]}), index)
    made.store.write("scores/_meta/index.parquet", index.getvalue())
    from twinset.cards.describe import show

    summary = IndexSummary(9, 8, {"odd": 1}, {"generator": {"odd": 1}}, {"test": 8}, 1, {}, 0)
    describe(made.store, "scores", summary)
    show(made.store, ["scores"])
    text = made.text("scores/README.md")
    assert "A table, made from Somebody's scores." in text and "| `odd` 1 (11.1 %) | 8 (88.9 %) |" in text
    assert "for each of the 8 candidates" in text and "![" not in text and "biases" not in text
    path = {"split": "test", "path": "_meta/index.parquet"}
    assert yaml.safe_load(text.split("---")[1])["configs"][0]["data_files"] == [path]
    assert not [name for name in made.store.names("scores/_meta") if name.endswith((".png", "croissant.json"))]
    assert "look.html" not in made.store.names("")


def test_the_card_counts_what_earlier_stages_left_out(made_pairs: MadeDataset) -> None:
    stage = made_pairs.stages["eq-ag"].model_copy(update={"name": "before", "planned": 9, "excluded": {"unsaid": 2}})
    brought = stage.model_copy(update={"facts": {**stage.facts, "filters": [{"kind": "dark", "distribution": "d 1"}]}})
    earlier = [
        Step(
            brought,
            "Things | seen",
            9,
            7,
            {"dark": {"too-dark": 2}},
            {"too-dark": "nothing is seen", "unsaid": "no words"},
        )
    ]
    recipe, _ = read_settings(made_pairs.store, "eq-ag")
    text = card(
        made_pairs.stages["eq-ag"], recipe, IndexSummary(1, 1, {}, {}, {"test": 1}, 1, {}, 0), NUMBERS,
        earlier=earlier, scores=[ScoreSpread("direction", "a cosine", 8, -0.25, 0.5, 1.0, 4, -2)],
        again=Rebuilding(packages([brought], recipe)),
    )  # fmt: skip
    rejected = "`too-dark` 2 (22.2 %) by dark"
    assert f"| `before` | Things \\| seen | `unsaid` 2 | 9 | {rejected} | 7 (77.8 %) |\n" in text
    assert (
        f"| left out, rejected | `before`: left out `unsaid` 2 besides the 9 planned, rejected of 9 {rejected}" in text
    )
    assert "* `too-dark`: nothing is seen\n" in text and "* `unsaid`: no words\n" in text
    assert "* `d 1`, for filter dark\n" in text
    assert "| a cosine |\n\n* Left out of these figures: 4 pairs in which `direction` is -2.\n" in text


def test_a_card_of_all_subsets_loads_each_by_its_name(made_pairs: MadeDataset) -> None:
    made_pairs.describe("eq-ag", "eq-gebc")
    made_pairs.store.write("eq-gebc/README.md", b"mine\n")
    write_overview(made_pairs.store, ["eq-ag", "eq-gebc"])
    text = made_pairs.text("README.md")
    configs = yaml.safe_load(text.split("---")[1])["configs"]
    files = [{"split": "test", "path": "eq-ag/test/*.tar"}]
    assert [(one["config_name"], one["data_files"]) for one in configs] == [("eq-ag", files)]
    place = Path(made_pairs.root) / "README.md"
    for edited in (f"{text}\nA note.\n", "# My project\n"):
        place.write_text(edited)
        write_overview(made_pairs.store, ["eq-ag", "eq-gebc"])
        assert place.read_text() == edited
    place.unlink()
    for _ in range(2):
        write_overview(made_pairs.store, ["eq-ag"])
        assert made_pairs.text("README.md") == text
    made_pairs.store.write("eq-gebc/README.md", made_pairs.store.read("eq-ag/README.md"))
    write_overview(made_pairs.store, ["eq-ag", "eq-gebc"])
    assert "eq-gebc" in made_pairs.text("README.md"), "one that twinset wrote is written again"
    assert "# made\n\nBuilt with twinset" in text and "| [`eq-ag`](eq-ag/README.md) | 8 pairs | test (8) |" in text
