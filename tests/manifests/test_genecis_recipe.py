"""The shipped recipe of GeneCIS asks for what the paper made, and says what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.in_process import all_of_genecis
from manifests.errors import WrongUse
from manifests.recipe import load_recipe
from stages.inputs import check_inputs


def test_the_recipe_has_the_papers_sizes() -> None:
    subsets = load_recipe("genecis").subsets
    assert {name: subset.count for name, subset in subsets.items()} == {
        "triplets": 1_600_000,
        "focus-attribute": 2000,
        "change-attribute": 2112,
        "focus-object": 1960,
        "change-object": 1960,
    }
    assert {subset.split for name, subset in subsets.items() if name != "triplets"} == {"test"}
    assert subsets["triplets"].split == "train"
    assert all(not subset.filters for subset in subsets.values())


def test_recipes_of_genecis_alone_are_told_from_others() -> None:
    assert all_of_genecis(load_recipe("genecis"))
    assert not all_of_genecis(load_recipe("eqben"))


@pytest.mark.parametrize(
    ("subset", "missing"),
    [
        ("triplets", "triplets.source.concreteness: there is no file .*; name the ratings"),
        ("focus-attribute", "focus-attribute.source.annotations: there is no file"),
        ("change-object", "change-object.source.annotations: there is no file"),
    ],
)
def test_what_it_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subset: str, missing: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongUse, match=missing):
        check_inputs(load_recipe("genecis").only([subset]))


def test_a_taxonomy_is_looked_for_too(tmp_path: Path) -> None:
    (tmp_path / "vaw.json").write_text("[]")
    settings = [f"subsets.focus-attribute.source.{key}={tmp_path / 'vaw.json'}" for key in ("annotations", "media")]
    recipe = load_recipe("genecis", settings).only(["focus-attribute"])
    with pytest.raises(WrongUse, match=r"taxonomy: there is no file .*attribute_types.json"):
        check_inputs(recipe)
