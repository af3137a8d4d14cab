"""A recipe is a DAG: stages that are not published, and what reads them by name or by folder."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, content_of, load_recipe

GRAPHS = {"source": {"kind": "scene-graphs", "captions": "captions.json"}, "shard_size": 100}
TRIPLETS = {
    "source": {"kind": "genecis-triplets", "graphs": "graphs", "concreteness": "ratings.txt", "licence": "MIT"},
    "count": 10,
}
TEMPLATES = {"source": {"kind": "genecis-objects", "task": "focus", "annotations": "a.json", "media": "m"}}


def load(folder: Path, stages: dict[str, Any], subsets: dict[str, Any], *settings: str) -> Recipe:
    (folder / "r.yaml").write_text(json.dumps({"name": "r", "stages": stages, "subsets": subsets}))
    return load_recipe(str(folder / "r.yaml"), settings)


def test_each_stage_comes_after_those_that_it_reads(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS, "a": TEMPLATES})
    assert list(recipe.all).index("graphs") < list(recipe.all).index("b")
    assert (recipe.reads("b"), recipe.reads("a"), recipe.reads("graphs")) == (["graphs"], [], [])
    assert (recipe.home("graphs"), recipe.home("b")) == ("_stages/graphs", "b")
    assert (recipe.key("graphs"), recipe.key("b")) == ("stages.graphs", "subsets.b")


def test_only_what_the_chosen_subsets_need_is_built(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS, "a": TEMPLATES})
    assert list(recipe.only(["a"]).all) == ["a"]
    assert sorted(recipe.only(["b"]).all) == ["b", "graphs"]
    with pytest.raises(WrongUse, match="recipe r has no subset 'none'; name one of b, a, graphs"):
        recipe.only(["none"])
    assert list(recipe.only(["graphs"]).all) == ["graphs"]


def test_settings_of_stages_can_be_overridden_and_paths_count_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    settings = ["stages.graphs.source.captions=[a.json, b.json]", "stages.graphs.source.pipeline=./pipeline"]
    source: Any = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS}, *settings)["graphs"].source
    assert source.captions == (tmp_path / "here/a.json", tmp_path / "here/b.json")
    assert source.pipeline == str(tmp_path / "here/pipeline") and source.locations == ("captions", "pipeline")
    source = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS})["graphs"].source
    assert source.captions == (tmp_path / "captions.json",) and source.locations == ("captions",)


def test_a_finished_stage_is_read_by_its_folder_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given, read in (
        ("out/_stages/graphs", str(tmp_path / "out/_stages/graphs")),
        ("/out/_stages/graphs", "/out/_stages/graphs"),
        ("s3://bucket/out/_stages/graphs", "s3://bucket/out/_stages/graphs"),
    ):
        recipe = load(tmp_path, {}, {"b": TRIPLETS}, f"subsets.b.source.graphs={given}")
        assert recipe["b"].source.reads == (read,) and recipe.reads("b") == []


def test_which_stage_is_read_is_not_content_but_its_settings_are(tmp_path: Path) -> None:
    recipe = load(tmp_path, {"graphs": GRAPHS, "others": GRAPHS}, {"b": TRIPLETS})
    other = load(tmp_path, {"graphs": GRAPHS, "others": GRAPHS}, {"b": TRIPLETS}, "subsets.b.source.graphs=others")
    assert digest(content_of(recipe["b"], 0)) == digest(content_of(other["b"], 0))
    pipeline = load(tmp_path, {"graphs": GRAPHS}, {"b": TRIPLETS}, "stages.graphs.source.pipeline=en_core_web_sm")
    assert content_of(recipe["graphs"], 0) != content_of(pipeline["graphs"], 0)


@pytest.mark.parametrize(
    ("stages", "settings", "problem"),
    [
        ({}, [], "b reads 'graphs', which is not among the recipe's stages (none); correct it, or write the folder"),
        ({"b": GRAPHS, "graphs": GRAPHS}, [], "b is a stage and a subset; rename one"),
        (
            {"graphs": {**TRIPLETS, "source": {**TRIPLETS["source"], "graphs": "other"}}, "other": TRIPLETS},
            [],
            "circle",
        ),
        (
            {"graphs": {**GRAPHS, "filters": [{"kind": "blank"}]}},
            [],
            "filter blank judges images, and a table has none",
        ),
        ({"graphs": GRAPHS}, ["subsets.b.filters=[{kind: near-identical}]"], "judges pairs, and these are triplets"),
        ({"graphs": GRAPHS}, ["subsets.b.count=null"], "set count, the number of triplets to sample"),
        ({"graphs": GRAPHS}, ["stages.grafs.shard_size=1"], "no stage 'grafs'; the recipe has: graphs"),
        ({"graphs": GRAPHS}, ["stages.graphs.source.captions="], "write KEY.PATH=VALUE"),
        ({"graphs": GRAPHS}, ["stages.graphs.source.captions=[]"], "stages.graphs.source.captions: "),
        ({"graphs": GRAPHS}, ["stages={Graphs: {}}"], "subset name 'Graphs' must be lowercase"),
    ],
)
def test_stages_that_do_not_fit_are_refused(
    tmp_path: Path, stages: dict[str, Any], settings: list[str], problem: str
) -> None:
    with pytest.raises(WrongUse, match=re.escape(problem)):
        load(tmp_path, stages, {"b": TRIPLETS}, *settings)
