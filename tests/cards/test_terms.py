"""What a subset was made from is cited; card, index, Croissant and page agree on licences and credits."""

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

import twinset
from tests.made_datasets import MadeDataset
from tests.made_samples import NEGATIVE_SUBSET, text_pair_shards
from twinset.cards import terms
from twinset.cards.lineage import DATA, citations_of, described_origin, works_cited
from twinset.cards.rendering import TEMPLATES
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.contracts.recipe import Recipe, content_of, load_recipe, parse_recipe
from twinset.contracts.references import Reference, checked_cite, entries_in, key_of
from twinset.generators.markdown import templates
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store


@pytest.mark.parametrize(
    ("recipe", "subset", "keys"),
    [
        ("eqben", "eq-ag", ["wang2023eqben", "ji2020actiongenome", "sigurdsson2016hollywood"]),
        ("eqben", "eq-kubric-counting", ["wang2023eqben", "greff2022kubric"]),
        ("eqben", "eq-sd", ["wang2023eqben", "hertz2023prompt"]),
        ("genecis", "focus-attribute", ["vaze2023genecis", "pham2021vaw", "krishna2017visual"]),
        ("genecis", "triplets", ["vaze2023genecis", "brysbaert2014concreteness", "sharma2018conceptual"]),
        ("trohn", "trohn-img", ["miranda2024bivlc", "lin2014coco", "warstadt2019cola"]),
        ("bivlc", "bivlc", ["miranda2024bivlc", "hsieh2023sugarcrepe", "lin2014coco"]),
        ("coco-counterfactuals", "coco-counterfactuals", ["le2023cococounterfactuals", "miranda2024bivlc"]),
    ],
)
def test_data_of_all_stages_are_cited(recipe: str, subset: str, keys: list[str]) -> None:
    citations = citations_of(load_recipe(recipe), subset)
    assert [key for key in keys if f"{{{key}," not in citations] == []


#: Of shipped recipes: settings that name a user's own files, the subset, and the works that it cites then. They are of
#: methods, models and procedures alone.
OWN = {
    "eq-gebc": ("eqben", ["subsets.eq-gebc.source.annotations=[/my/a.json,/my/b.json]"], {"wang2023eqben"}),
    "photos": ("photos", ["subsets.photos.source.captions=/my/captions.csv"], set[str]()),
    "trohn-text": (
        "trohn",
        ["stages.negatives.source.captions=/my/captions.csv", "subsets.trohn-text.source.images=/my/photos"],
        {"miranda2024bivlc"},
    ),
}
NAMES = ("YouCook2", "Kinetics", "Charades", "Action Genome", "VAW", "Visual Genome", "COCO", "Flickr", "SugarCrepe")


@pytest.mark.parametrize("subset", OWN)
def test_a_users_own_files_are_never_called_a_published_data_set(subset: str) -> None:
    recipe, settings, works = OWN[subset]
    own = load_recipe(recipe, settings)
    assert {key_of(entry) for entry in entries_in(citations_of(own, subset))} <= works
    assert DATA not in works_cited(own, subset)
    described = described_origin(own, subset).partition(" in the file format of ")
    assert not [name for name in (*NAMES, "Conceptual Captions") if name in described[0]]
    for stage in own.only([subset]).all.values():
        stated = stage.source.licence + stage.source.credit
        assert not [name for name in (*NAMES, "Conceptual", "YouTube") if name in stated], stated


def test_who_has_the_published_files_says_so_with_cites() -> None:
    own = "subsets.eq-youcook2.source.annotations=/data/youcookii_annotations_trainval.json"
    shipped = load_recipe("eqben")["eq-youcook2"].source
    citing = load_recipe("eqben", [own, "subsets.eq-youcook2.cites=[zhou2018youcook2]"])
    assert "{zhou2018youcook2," in citations_of(citing, "eq-youcook2")
    assert citing["eq-youcook2"].source.terms == shipped.terms
    assert described_origin(citing, "eq-youcook2") == "made from YouCook2 following EqBen"
    licensed = load_recipe("eqben", [own, "subsets.eq-youcook2.source.licence=CC-BY-4.0"])["eq-youcook2"]
    assert (licensed.source.licence, licensed.cites) == ("CC-BY-4.0", ())


def read_captions(cites: list[str]) -> Recipe:
    source = {"kind": "image-captions", "captions": "/c.jsonl", "licence": "CC0-1.0"}
    return parse_recipe({"name": "mine", "subsets": {"mine": {"source": source, "cites": cites}}})


def test_a_recipe_cites_by_key_or_in_bibtex() -> None:
    own, none = read_captions(["lin2014coco", "@misc{me, title = {Mine}}"]), read_captions([])
    assert citations_of(own, "mine").startswith("@inproceedings{lin2014coco,")
    assert citations_of(own, "mine").endswith("\n\n@misc{me, title = {Mine}}") and citations_of(none, "mine") == ""
    assert content_of(own["mine"], 0) == content_of(none["mine"], 0), "what is cited decides no byte"
    with pytest.raises(WrongUse, match=r"subsets\.mine\.cites.*'nobody2020' is neither BibTeX nor one of the keys"):
        read_captions(["nobody2020"])


def test_a_recipe_names_the_paper_that_it_follows() -> None:
    recipe = load_recipe("coco-counterfactuals")
    assert described_origin(recipe, "coco-counterfactuals").endswith(" following COCO-Counterfactuals")
    follows = "subsets.eq-ag.follows='@misc{me, title={{Twins}: Mine}, url={https://a.org}}'"
    mine = load_recipe("eqben", [follows]).paper("eq-ag")
    assert mine and (mine.title, mine.address) == ("Twins", "https://a.org")


def test_what_somebody_names_as_a_paper_is_shown_as_it_stands() -> None:
    """... in the first line of a card: no mark-up, and addresses of the web alone."""
    for address in ("javascript:alert(1)", "https://a.org/)<b>", "http://a.org\n# b"):
        paper = Reference.of_entry(f"@misc{{k, title = {{<img src=x> *b*}}, url = {{{address}}}}}")
        assert (paper.title, paper.address) == ("<img src=x> *b*", "")
    linked = templates(TEMPLATES, TEMPLATES).from_string("{% from 'linked.md.j2' import linked %}{{ linked(paper) }}")
    shown = linked.render(paper=Reference("<img src=x> ](b)", "https://a.org"))
    assert shown == "[&lt;img src=x> \\](b)](https://a.org)"
    for character in "\0\x1b\u202e\u2067":
        with pytest.raises(ValueError, match="which nobody sees; remove it"):
            checked_cite(f"@misc{{me, title = {{a{character}}}}}")


LICENCES = {
    "CC0-1.0": "CC0",
    "CC-BY-2.0": "http://creativecommons.org/licenses/by/2.0/",
    "CC-BY-NC-SA-2.0": "cc-by-nc-sa-2.0",
    "CC-BY-ND-2.0": "CC BY-ND 2.0",
    "other: Flickr Commons": "other: Flickr Commons",
}
CREDIT = "<b>Ada</b> *of* [x](http://e.example)|"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 pairs, 4 a licence, of 40 images; of CC-BY-2.0 one has no credit."""
    folder = tmp_path_factory.mktemp("five")
    records = []
    for number in range(20):
        images = {f"image{side}": f"{2 * number + side}.png" for side in (0, 1)}
        for side, name in enumerate(images.values()):
            Image.new("RGB", (32, 32), (6 * (2 * number + side),) * 3).save(folder / name)
        licence, credit = [*LICENCES.values()][number % 5], CREDIT if number % 5 == 3 else f"author {number}"
        records.append({
            "id": number, **images, "caption0": f"a disc {number}", "caption1": f"a square {number}",
            "licence": licence, "credit": "" if number == 1 else credit, "category": "replace_obj",
            "source_url": f"https://photos.example/{number}", "split": "train" if number < 10 else "test",
        })  # fmt: skip
    (folder / "pairs.json").write_text(json.dumps(records))
    source = "{kind: image-pairs, annotations: pairs.json, media: ., licence: unknown, fields: {change: category}}"
    recipe = f"{{name: five, subsets: {{five: {{source: {source}, cites: ['@misc{{five, title = {{Five}}}}']}}}}}}"
    (folder / "five.yaml").write_text(recipe)
    twinset.build(folder / "five.yaml", folder / "out", workers=1)
    return folder / "out"


def test_sample_index_card_croissant_and_page_agree(out: Path) -> None:
    expected = Counter({name: 4 for name in LICENCES})
    samples = [sample.json for sample in read_samples(Store(str(out)), "five")]
    assert Counter(sample.licence for sample in samples) == expected
    index = pq.read_table(out / "five/_meta/index.parquet")
    stated = {(sample.licence, sample.credit, sample.source_url) for sample in samples}
    assert set(zip(*(index[name].to_pylist() for name in ("licence", "credit", "source_url")), strict=True)) == stated
    assert len(stated) == 20
    card = (out / "five/README.md").read_text()
    rows = re.findall(r"^\| (?:\[([^]]+)\]\([^)]*\)|(Flickr Commons)) \| (\d+) \| 20\.0 % \|$", card, re.MULTILINE)
    assert {name or f"other: {words}": int(count) for name, words, count in rows} == expected
    assert "**1 pairs have no credit, though their licence asks for one:**" in card
    assert "4 pairs may not be changed and passed on (NoDerivatives)" in card
    assert "| &lt;b>Ada&lt;/b> \\*of\\* `[x](http://e.example)\\|` | [CC-BY-ND-2.0]" in card
    front = yaml.safe_load(card.split("---")[1])
    assert front["license"] == ["cc-by-2.0", "cc-by-nc-sa-2.0", "cc0-1.0", "other"]
    pages = {f"https://spdx.org/licenses/{name}" for name in LICENCES if not name.startswith("other")}
    described = json.loads((out / "five/_meta/croissant.json").read_text())
    assert {*described["license"]} == pages | {"Flickr Commons"}
    page = (out / "look.html").read_text()
    assert all(f"{name}: 4" in page for name in LICENCES) and "https://photos.example/0" in page
    assert "&lt;b&gt;Ada" in page and "<b>Ada" not in page


def test_many_credits_are_a_file_and_few_a_table(made: MadeDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.cards.describe.histograms", lambda panels: b"plots")
    plans = [
        [replace(pair, terms=Terms("MIT", f"=author {pair.identity}")) for pair in shard]
        for shard in text_pair_shards("text", images=False)
    ]
    made.add("text", NEGATIVE_SUBSET, plans)
    made.describe("text")
    assert made.text("text/README.md").count("| =author") == 8
    assert made.store.size("text/_meta/credits.csv") is None
    monkeypatch.setattr(terms, "SHOWN", 7)
    made.describe("text")
    assert "`_meta/credits.csv` lists 8 credits." in made.text("text/README.md")
    rows = list(csv.reader(made.text("text/_meta/credits.csv").splitlines()))
    assert rows[0] == ["credit", "licence", "samples"] and len(rows) == 9 and rows[1][0].startswith("'=author")
