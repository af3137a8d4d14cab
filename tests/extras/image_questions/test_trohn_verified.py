"""The recipe `trohn-verified` on the images of a small TROHN."""

from pathlib import Path

import pytest

import twinset
from tests.generators.generated_pairs.test_generated_pairs import make_recipe, stages, world  # noqa: F401 - a fixture
from twinset_extras.image_questions.asking import KINDS


@pytest.mark.slow
def test_images_of_a_finished_trohn_are_verified_and_the_card_counts_refusals_by_question(
    world: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    given, drawn, out = stages(world, ["negative_caption"], 4, 1), str(tmp_path / "trohn"), str(tmp_path / "verified")
    del given["verified"]
    twinset.build(make_recipe(given, {}), drawn)
    source = "subsets.trohn-img.source"
    settings = [
        f"stages.verified.source.images={drawn}/_stages/images",
        "stages.verified.source.engine={kind: mylab-nothing-red}",
        f"{source}.images={drawn}/_stages/images",
        f"{source}.negatives={drawn}/_stages/prompts",
        f"{source}.photos={world / 'photos'}",
        "max_missing=1",
    ]
    twinset.build("trohn-verified", out, settings=settings)
    rejected = twinset.status(out)["stages"]["verified"]["rejected"]
    assert rejected and {*rejected} <= {f"wrong-{kind}" for kind in KINDS}
    card = (Path(out) / "trohn-img/README.md").read_text()
    for reason, count in rejected.items():
        assert f"`{reason}` {count} ({100 * count / 28:.1f} %)" in card
