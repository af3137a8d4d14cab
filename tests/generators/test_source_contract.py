"""What sources say of themselves; tests/guard/contracts holds them to the contract."""

from typing import Literal

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, load_recipe
from twinset.contracts.source import SOURCES
from twinset.shards.contracts import Context, Source

DEMO = load_recipe("demo")


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


def test_words_of_the_demo_are_markdown() -> None:
    for stage in Recipe.model_validate(DEMO).all.values():
        for text in (stage.source.notes(), stage.source.how_made({}), stage.source.introduction()):
            assert "{" not in text and (not text or text.endswith(("\n", ".", "?")))
