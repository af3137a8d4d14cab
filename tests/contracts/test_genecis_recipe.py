"""The shipped recipe of GeneCIS asks for what the paper made, and says what it needs."""

from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe


def test_the_recipe_has_the_papers_sizes() -> None:
    recipe = load_recipe("genecis")
    assert {name: subset.count for name, subset in recipe.subsets.items()} == {
        "triplets": 1_600_000,
        "focus-attribute": 2000,
        "change-attribute": 2112,
        "focus-object": 1960,
        "change-object": 1960,
    }
    assert {subset.split for name, subset in recipe.subsets.items() if name != "triplets"} == {"test"}
    assert recipe.subsets["triplets"].split == "train"
    assert all(not subset.filters for subset in recipe.subsets.values())
    assert recipe.stages["scene-graphs"].shard_size == 2048


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("scene-graphs", "captions"),
        ("triplets", "concreteness"),
        ("focus-attribute", "annotations"),
        ("change-object", "annotations"),
    ],
)
def test_what_it_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, setting: str) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe("genecis")
    source: Any = recipe[name].source
    key = f"{recipe.key(name)}.source"
    noun = "file or folder" if setting == "captions" else "file"
    with pytest.raises(
        WrongUse, match=rf"{key}\.{setting}: there is no {noun} .*; name it with --set {key}\.{setting}="
    ):
        source.check_inputs(key, ("annotations",))


def test_a_taxonomy_and_the_media_are_looked_for_too(tmp_path: Path) -> None:
    (tmp_path / "vaw.json").write_text("[]")
    key = "subsets.focus-attribute.source"
    recipe = load_recipe(
        "genecis", [f"{key}.{setting}={tmp_path / 'vaw.json'}" for setting in ("annotations", "media")]
    )
    source: Any = recipe["focus-attribute"].source
    with pytest.raises(WrongUse, match=r"taxonomy: there is no file .*attribute_types.json"):
        source.check_inputs(key, ("annotations",))
    with pytest.raises(WrongUse, match=r"media: there is no folder .*vaw.json; name it with --set .*media=FOLDER"):
        source.check_inputs(key, ("media",))
