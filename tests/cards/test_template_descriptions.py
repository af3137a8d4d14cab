"""Card, Croissant metadata and loaders of templates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cards.describe import describe
from manifests.canonical import digest
from manifests.recipe import content_of, load_recipe
from manifests.stage import parse_stage
from shards.kinds.reading import StoredTemplate
from shards.read import read_samples
from shards.storage.store import Store
from tests import small_genecis


def _described(store: Store, subset: str) -> str:
    describe(store, [subset])
    return store.read(f"{subset}/README.md").decode()


@pytest.mark.parametrize("task", small_genecis.TASKS)
def test_the_card_of_templates_says_what_they_are(small_templates: Store, task: str) -> None:
    text = _described(small_templates, task)
    about, kind = task.split("-")
    assert f"8 templates of GeneCIS's task \"{about.capitalize()} on an" in text or f'"{about.capitalize()} an' in text
    front = yaml.safe_load(text.split("---")[1])
    assert front["configs"][0]["data_files"] == [{"split": "test", "path": "test/*.tar"}]
    assert "EqBen" not in text and "pair" not in text.replace("Pairs", "")
    size, last = (10, "gallery08.jpg") if task == "focus-attribute" else (15, "gallery13.jpg")
    assert f"a gallery of {size} images" in text and last in text and f"{1 / size:.1%} with {size} images" in text
    assert "| rejected by generator | missing-media | −1 | 11.1 % |" in text and "| templates in test | 8 |" in text
    assert "vaze2023genecis" in text and "wang2023eqben" not in text
    for cited in ("pham2021vaw", "krishna2017visual"):
        assert (cited in text) == (kind == "attribute")
    for cited in ("lin2014coco", "kirillov2019panoptic"):
        assert (cited in text) == (kind == "object")
    assert ("cannot be swapped" in text) == (about == "change")
    assert ("`crops: corrected`" in text) == (kind == "attribute")
    assert "<script" not in text and small_genecis.LONG[:200] not in text
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert small_templates.size(f"{task}/{picture}")


def test_published_crops_are_told_apart(small_templates: Store, tmp_path: Path) -> None:
    settings = small_genecis.template_sources(tmp_path)["focus-attribute"]
    small_genecis.build(small_templates, "published", {**settings, "crops": "published"}, count=2)
    text = _described(small_templates, "published")
    assert "`crops: published`: each object is cut out as the released evaluation does it" in text


def test_the_recipe_in_the_card_makes_the_same_stage(small_templates: Store, tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", _described(small_templates, "change-attribute"), re.DOTALL)
    assert block is not None
    (tmp_path / "recipe.yaml").write_text(block[1], "utf-8")
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    stage = parse_stage("stage", small_templates.read("change-attribute/_meta/stage.json"))
    settings = content_of(recipe.subsets["change-attribute"], recipe.seed)
    assert digest({**stage.facts, "settings": settings}) == stage.content


def test_mlcroissant_validates_and_reads_templates(small_templates: Store, mlcroissant: Any) -> None:
    describe(small_templates, ["focus-attribute"])
    path = Path(small_templates.root) / "focus-attribute" / "_meta" / "croissant.json"
    dataset = mlcroissant.Dataset(jsonld=str(path))
    assert not dataset.metadata.ctx.issues.errors
    assert "gallery09" not in path.read_text("utf-8"), "images that no template has are named nowhere"
    stored = {one.key: one for one in read_samples(small_templates, "focus-attribute")}
    rows = {row["templates/key"].decode(): row for row in dataset.records("templates")}
    assert rows.keys() == stored.keys()
    words = {row["condition/key"].decode(): row["condition/content"].decode() for row in dataset.records("condition")}
    for key, one in stored.items():
        assert isinstance(one, StoredTemplate)
        assert words[key] == rows[key]["templates/condition"].decode() == one.condition
        assert rows[key]["templates/gallery08_sha256"].decode() == one.json.images["gallery08"].sha256
    sizes = {row["gallery08/key"].decode(): row["gallery08/content"].size for row in dataset.records("gallery08")}
    assert sizes == {key: one.json.images["gallery08"].size for key, one in stored.items()}  # type: ignore[union-attr]


def test_load_dataset_reads_what_the_card_says(small_templates: Store, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    describe(small_templates, ["change-object"])
    folder = str(Path(small_templates.root) / "change-object")
    found = datasets.load_dataset(folder, split="test", cache_dir=str(tmp_path / "cache"))
    stored = list(read_samples(small_templates, "change-object"))
    assert [row["__key__"] for row in found] == [one.key for one in stored]
    for row, one in zip(found, stored, strict=True):
        assert isinstance(one, StoredTemplate)
        assert row["condition.txt"] == one.condition and row["gallery13.jpg"].size == one.json.images["gallery13"].size
        assert row["json"]["entry"] == one.json.entry


def test_webdataset_reads_every_image(small_templates: Store) -> None:
    webdataset = pytest.importorskip("webdataset")
    tars = sorted(map(str, (Path(small_templates.root) / "focus-object" / "test").glob("*.tar")))
    rows = list(webdataset.WebDataset(tars, shardshuffle=False).decode("pil"))
    assert len(rows) == 8
    for row, one in zip(rows, read_samples(small_templates, "focus-object"), strict=True):
        assert isinstance(one, StoredTemplate)
        assert {role: row[f"{role}.jpg"].size for role in one.images} == {
            role: image.size for role, image in one.json.images.items()
        }
