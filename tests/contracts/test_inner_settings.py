"""Settings within settings: their places, what of them decides bytes, how a recipe and --set reach them."""

import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from twinset import generators
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.recipe import content_of, load_recipe
from twinset.contracts.source import Place, PlacedSettings, SourceSettings


class Local(PlacedSettings):
    kind: Literal["local"]
    model: Annotated[str, Place("model", "models")]
    cache: Annotated[Location, Place("cache", "models")] | None = None
    threads: int = 1

    execution = ("threads",)


class Remote(PlacedSettings):
    kind: Literal["remote"]
    model: str
    url: Annotated[str, Place("server", "models")]


Engine = Annotated[Local | Remote, Field(discriminator="kind")]


class Made(SourceSettings):
    kind: Literal["made"]
    engine: Engine
    others: tuple[Engine, ...] = ()
    licence: str = "MIT"

    execution: ClassVar[tuple[str, ...]] = ()


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(generators.KINDS, "made", f"{__name__}:Made")
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda point: Made if point.name == "made" else load(point))
    folder = tmp_path / "recipes"
    (folder / "here").mkdir(parents=True)
    path = folder / "r.yaml"
    path.write_text(
        textwrap.dedent("""
        name: r
        subsets:
          a:
            source:
              kind: made
              engine: {kind: local, model: here, cache: kept, threads: 3}
              others:
              - {kind: remote, model: here, url: "http://h/v1"}
              - {kind: local, model: OWNER/NAME}
        """)
    )
    monkeypatch.chdir(tmp_path)
    return path


def test_paths_count_from_the_recipe_and_decide_nothing(recipe: Path) -> None:
    loaded = load_recipe(str(recipe))["a"]
    source: Any = loaded.source
    assert source.engine.model == str(recipe.parent / "here") and source.engine.cache == recipe.parent / "kept"
    assert (source.others[0].model, source.others[1].model) == ("here", "OWNER/NAME"), "names, not paths"
    assert source.locations == ("engine.model", "engine.cache", "others.0.url")
    assert content_of(loaded, 0)["source"] == {
        "kind": "made",
        "engine": {"kind": "local"},
        "others": [
            {"kind": "remote", "model": "here"},
            {"kind": "local", "model": "OWNER/NAME", "cache": None},
        ],
        "licence": "MIT",
        "credit": "",
        "source_url": "",
    }


def test_paths_that_are_set_count_from_the_current_folder(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    settings = ["subsets.a.source.engine.model=./there", "subsets.a.source.others.1.model=other"]
    source: Any = load_recipe(str(recipe), settings)["a"].source
    assert source.engine.model == str(tmp_path / "there") and source.others[1].model == str(tmp_path / "other")
    source = load_recipe(str(recipe), ["subsets.a.source.others.0.model=other"])["a"].source
    assert source.others[0].model == "other", "an engine of another kind has a name there"
    with pytest.raises(WrongUse, match=r"write KEY\.PATH=VALUE"):
        load_recipe(str(recipe), ["subsets.a.source.engine.model="])
