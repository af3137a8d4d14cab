"""Every source that twinset brings keeps the contract, on the recipe of the demo."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from tests.generators.finished_stage import finish, finished
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, load_recipe
from twinset.contracts.source import SOURCES
from twinset.generators import KINDS
from twinset.generators.contract import check_source
from twinset.shards.contracts import Context, Source
from twinset.shards.finished_stage import FinishedStage

DEMO = load_recipe("demo")
SLOW_TO_MAKE = ("kubric", "stable-diffusion")  # rendered and drawn: tests/generators/kubric_scenes, edited_pairs


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FinishedStage]:
    folder = tmp_path_factory.mktemp("graphs")
    source: Any = DEMO["scene-graphs"].source
    finish(source, folder)
    return finished(folder)


def test_the_demo_has_all_kinds_but_those_with_tests_of_their_own() -> None:
    assert set(KINDS) - {stage.source.kind for stage in DEMO.all.values()} == {
        "caption-scores",
        "caption-words",
        "exchanged-negatives",
        "human-baseline",
        "image-ambiguity",
        "image-captions",
        "image-choice",
        "image-features",
        "image-neighbours",
        "image-pairs",
        "pair-screening",
        "refined-negatives",
        "screened-pairs",
        "selected-negatives",
    }


# Those that read other stages keep it in tests of their own.
@pytest.mark.parametrize("name", [name for name in DEMO.all if set(DEMO.reads(name)) <= {"scene-graphs"}])
def test_sources_of_the_demo_keep_the_contract(name: str, graphs: Callable[[str], FinishedStage]) -> None:
    stage: Any = DEMO[name]
    stage.source.check_inputs(f"{DEMO.key(name)}.source", ("annotations", "media", "models"))
    make = 0 if stage.source.kind in SLOW_TO_MAKE else 8
    check_source(stage.source, Context(name, stage.split, DEMO.seed, graphs), most=100, make=make)


@pytest.mark.parametrize("kind", SOURCES.kinds())
def test_every_source_says_what_it_is(kind: str) -> None:
    settings = SOURCES.find(kind)
    assert issubclass(settings, Source)
    reads = any(settings.leads_to(name) == "stage" for name in settings.model_fields)
    told = settings.reference.title or settings.made_from is not Source.made_from  # settings decide it
    assert told or reads, "a card names the data set that all comes from"
    assert settings.group and settings.__doc__
    rejects_nothing = kind in ("negative-prompts", "negative-images", "image-neighbours")
    assert bool(settings.reasons) != rejects_nothing
    assert all(meaning == meaning.strip() and meaning[-1] != "." for meaning in settings.reasons.values())


def test_a_source_that_names_no_generator_cannot_be_opened() -> None:
    class Unnamed(Source):
        kind: Literal["unnamed"] = "unnamed"
        licence: str = "CC0-1.0"

    with pytest.raises(WrongUse, match=r"source 'unnamed': its class names no generator; set generator"):
        Unnamed().open(Context("s"))


def test_words_of_the_demo_are_markdown(graphs: Callable[[str], FinishedStage]) -> None:
    for stage in Recipe.model_validate(DEMO).all.values():
        for text in (stage.source.notes(), stage.source.how_made({}), stage.source.introduction()):
            assert "{" not in text and (not text or text.endswith(("\n", ".", "?")))
