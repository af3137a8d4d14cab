"""Settings within those of a source, such as an engine's: paths, digests and messages as of the source's own."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from twinset import generators
from twinset.cards.rebuilding import recipe_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import content_of, load_recipe, recipe_from_json
from twinset.contracts.source import Place, PlacedSettings, SourceSettings
from twinset.contracts.stage import Stage


class Painter(PlacedSettings):
    kind: Literal["painter"]
    model: Annotated[str, Place("model", "models")] = "owner/model"
    steps: int = 50
    device: str = "cpu"

    execution = ("device",)


class Ruler(PlacedSettings):
    kind: Literal["ruler"]
    length: int = 1


Engine = Annotated[Painter | Ruler, Field(discriminator="kind")]


class Painted(SourceSettings):
    """A source with an engine, and with several judges."""

    kind: Literal["test-painted"]
    engine: Engine
    judges: tuple[Engine, ...] = ()
    words: tuple[Literal["red", "blue"], ...] = ()
    licence: str = "other: mine"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(generators.KINDS, "test-painted", f"{__name__}:Painted")
    path = tmp_path / "recipes" / "painted.yaml"
    path.parent.mkdir()
    engine = {"kind": "painter", "model": "./weights"}
    source = {"kind": "test-painted", "engine": engine, "judges": [{"kind": "ruler"}, dict(engine)]}
    path.write_text(yaml.safe_dump({"name": "painted", "subsets": {"one": {"source": source}}}))
    return path


def test_places_within_settings_are_made_absolute_and_travel(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_recipe(str(recipe))
    source: Any = loaded["one"].source
    weights = str(tmp_path / "recipes" / "weights")
    assert (source.engine.model, source.judges[1].model) == (weights, weights)
    assert recipe_from_json(loaded.model_dump_json().encode()) == loaded
    keys = "subsets.one.source"
    changed: Any = load_recipe(str(recipe), [f"{keys}.engine.model=./mine", f"{keys}.judges.1.model=../its"])
    source = changed["one"].source
    assert source.engine.model == str(tmp_path / "mine") and source.judges[1].model == str(tmp_path.parent / "its")
    hub: Any = load_recipe(str(recipe), [f"{keys}.engine.model=owner/other"])["one"].source
    assert hub.engine.model == "owner/other"


def test_where_an_engine_finds_its_model_and_runs_is_no_part_of_what_is_made(recipe: Path) -> None:
    def content(*settings: str) -> dict[str, Any]:
        loaded = load_recipe(str(recipe), [f"subsets.one.source.{one}" for one in settings])
        return content_of(loaded["one"], loaded.seed)

    first = content()
    assert first == content("engine.model=./elsewhere", "engine.device=gpu", "judges.1.model=./elsewhere")
    for changed in ("engine.steps=20", "engine.model=owner/other", "judges.0.length=2", "judges.1.steps=3"):
        assert content(changed) != first


def test_the_card_says_where_a_path_must_be_filled_in(recipe: Path) -> None:
    loaded = load_recipe(str(recipe))
    stage = Stage(name="one", facts={}, content="0", plan="0", planned=1, shards=1, excluded={})
    source = recipe_of(loaded, stage)["subsets"]["one"]["source"]
    assert source["engine"] == {"kind": "painter", "model": "path/to/model", "steps": 50}
    assert source["judges"][1]["model"] == "path/to/model" and str(recipe.parent) not in json.dumps(source)


def test_the_card_says_how_an_engine_ran_where_that_is_not_its_default(recipe: Path) -> None:
    loaded = load_recipe(str(recipe), ["subsets.one.source.engine.device=gpu"])
    stage = Stage(name="one", facts={}, content="0", plan="0", planned=1, shards=1, excluded={})
    source = recipe_of(loaded, stage)["subsets"]["one"]["source"]
    assert source["engine"]["device"] == "gpu" and "device" not in source["judges"][1]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("engine.stepps=3", "--set subsets.one.source.engine.stepps: unknown key; did you mean 'steps'?"),
        ("engine.steps=many", "--set subsets.one.source.engine.steps: Input should be a valid integer"),
        ("judges.1.stepps=3", "--set subsets.one.source.judges.1.stepps: unknown key; did you mean 'steps'?"),
        ("words=[red, blue, red]", "words: 'red' stands twice; leave one out"),
        ("engine.kind=magic", "subsets.one.source.engine: Input tag 'magic'"),
    ],
)
def test_problems_within_settings_are_named_by_their_key(recipe: Path, setting: str, problem: str) -> None:
    with pytest.raises(WrongUse) as caught:
        load_recipe(str(recipe), [f"subsets.one.source.{setting}"])
    assert problem in str(caught.value)
