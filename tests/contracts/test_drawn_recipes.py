"""Recipes of drawn pairs: which model, what goes with it, and what of it decides the bytes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import content_of, load_recipe


def drawn(*settings: str) -> Any:
    return load_recipe("eqben", settings).subsets["eq-sd"].source


def test_the_model_can_be_set_in_short_and_brings_what_goes_with_it(tmp_path: Path) -> None:
    assert drawn().model == "CompVis/stable-diffusion-v1-4" and drawn().licence == "creativeml-openrail-m"
    small = drawn("subsets.eq-sd.model=small")
    assert (small.model, small.vocabulary, small.licence[:7]) == ("small", "small-world", "CC0-1.0")
    settings = ["subsets.eq-sd.model=somebody/model", "subsets.eq-sd.source.licence=MIT"]
    assert (drawn(*settings).model, drawn(*settings).vocabulary) == ("somebody/model", "figure-15")
    assert drawn(*settings) == drawn("subsets.eq-sd.source.model=somebody/model", settings[1])
    with pytest.raises(WrongUse, match=r"subsets\.eq-sd\.source\.licence: missing; add it"):
        load_recipe("eqben", settings[:1])
    with pytest.raises(WrongUse, match=r"--set subsets\.eq-ag\.source\.model: unknown key; known keys: annotations"):
        load_recipe("eqben", ["subsets.eq-ag.model=small"])
    with pytest.raises(WrongUse, match=r"subsets\.eq-sd\.source: .*only the words of vocabulary small-world; leave"):
        load_recipe("demo", ["subsets.eq-sd.source.vocabulary=figure-15"])


def test_a_model_is_a_folder_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models/sd").mkdir(parents=True)
    (tmp_path / "small").mkdir()
    licence = "subsets.eq-sd.source.licence=MIT"
    for name in ("models/sd", "./models/sd", str(tmp_path / "models/sd")):
        assert drawn(f"subsets.eq-sd.model={name}", licence).model == str(tmp_path / "models/sd")
    assert drawn("subsets.eq-sd.model=models/xl", licence).model == "models/xl"
    assert drawn("subsets.eq-sd.model=./xl", licence).model == str(tmp_path / "xl")
    assert drawn("subsets.eq-sd.model=small").model == "small"
    source = {"kind": "stable-diffusion", "model": "../models/sd", "licence": "MIT"}
    recipe = tmp_path / "recipes" / "drawn.yaml"
    recipe.parent.mkdir()
    recipe.write_text(yaml.safe_dump({"name": "drawn", "subsets": {"eq-sd": {"source": source, "count": 3}}}))
    assert load_recipe(str(recipe)).subsets["eq-sd"].source.model == str(tmp_path / "models/sd")


def test_drawn_pairs_need_a_count() -> None:
    with pytest.raises(WrongUse, match=r"subsets\.eq-sd: .*set count, the number of pairs to sample"):
        load_recipe("eqben", ["subsets.eq-sd.count=null"])


def test_how_a_network_is_run_is_no_part_of_what_is_made_but_which_one_is() -> None:
    def content(*settings: str) -> str:
        loaded = load_recipe("eqben", settings)
        return digest(content_of(loaded.subsets["eq-sd"], loaded.seed))

    source = "subsets.eq-sd.source"
    assert content() == content(f"{source}.device=cpu", f"{source}.threads=4", f"{source}.micro_batch=1")
    licence = f"{source}.licence=MIT"
    folders = [content(f"subsets.eq-sd.model=/{name}", licence) for name in ("here", "there")]
    assert folders[0] == folders[1] != content(licence)
    changed = [f"{source}.steps=20", f"{source}.precision=float32"]
    changed += [f"subsets.eq-sd.filters=[{{kind: directional-similarity, model: openai/{name}}}]" for name in "ab"]
    assert len({content(), *map(content, changed)}) == len(changed) + 1
