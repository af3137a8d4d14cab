"""Pairs of the images that people chose: planned from their decisions, and from the captions that these left."""

from pathlib import Path
from typing import Any

import pytest

from tests.generators.decisions.made_stages import Caption, write_stages
from tests.generators.decisions.test_image_sources import ADDED, FAILS, FITS, STAGES, decide, recipe_of
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.generators.generated_pairs.source import GeneratedPairs
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import build_here

PAIRS = {"kind": "generated-pairs", **STAGES, "photos": "/photos", "licence": "CC0-1.0"}


def pairs(**settings: Any) -> GeneratedPairs:
    return GeneratedPairs.model_validate({**PAIRS, **settings})


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Of pairs of four captions, for which people chose images."""
    write_stages(tmp_path, [FITS, FAILS, ADDED, Caption((0.5, 0.5, 1.0), (0.0, 0.0, 0.0))])
    recipe, out = recipe_of(tmp_path, {"best": {"kind": "image-choice"}}), tmp_path / "out"
    with pytest.raises(DecisionsMissing):
        build_here(recipe, str(out))
    generator: Any = Job(recipe, Store(str(out))).worker("best").generator
    decide(generator, out, "1", "none", "0", "2")
    build_here(recipe, str(out))
    folders = {**dict.fromkeys(STAGES, str(tmp_path)), "best": str(tmp_path / "out" / "_stages")}
    return Context("bivlc", earlier=lambda stage: FinishedStage(Store(folders[stage]), stage))


def test_pairs_are_planned_from_what_people_chose(context: Context) -> None:
    source = pairs(choice="people", decisions="best")
    assert source.reads == ("negatives", "images", "verified", "best")
    generator = source.open(context)
    planned = list(generator.plan())
    assert [(one.captions0[0], one.number, one.choice) for one in planned] == [
        ("caption 0", 1, "people"),
        ("caption 2", 0, "people"),
        ("caption 3", 2, "people"),
    ]
    assert [one.score for one in planned] == [1.0, 1.0, 1.0]
    assert generator.excluded == {"not-chosen": 1}
    assert "People chose the image of each negative caption" in source.how_made({})


def test_an_unused_choice_reads_no_decisions(context: Context) -> None:
    source = pairs(decisions="best")
    assert source.reads == ("negatives", "images", "verified") and source.chosen_by == "score"
    generator = source.open(context)
    assert {one.choice for one in generator.plan()} == {"score"}
    assert pairs(choice="first").reads == ("negatives", "images")


def test_decisions_about_other_images_are_refused(context: Context, tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, ADDED, FAILS], rebuilt={(2, 0): "f" * 64})
    generator = pairs(choice="people", decisions="best").open(context)
    with pytest.raises(WrongUse, match=r"decides about the image 'images-[a-z0-9]+', which is not among these images"):
        list(generator.plan())


def test_a_choice_without_what_chooses_is_refused() -> None:
    with pytest.raises(ValueError, match="name it with decisions"):
        pairs(choice="people")
    with pytest.raises(ValueError, match="name it with verified"):
        pairs(choice="score", verified=None)
