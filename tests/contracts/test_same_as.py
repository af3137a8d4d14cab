"""Settings that take the value of another one."""

from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe


def test_a_setting_can_be_the_same_as_another_one_also_where_that_is_changed(tmp_path: Path) -> None:
    photos = "subsets.bivlc.source.photos"

    def of(*settings: str) -> set[str]:
        recipe = load_recipe("bivlc", settings)
        return {str(recipe[name].source.photos) for name in ("bivlc", "unambiguous")}  # type: ignore[attr-defined]

    assert of(f"{photos}={tmp_path}") == {str(tmp_path)}
    assert of(f"{photos}={tmp_path}", "stages.unambiguous.source.photos=/other") == {str(tmp_path), "/other"}
    for setting, words in (
        (f"{photos}={{same_as: stages.unambiguous.source.photos}}", "leads back to itself"),
        (f"{photos}={{same_as: subsets.bivlc.source.photo}}", "which the recipe does not set; correct the key path"),
        (f"{photos}={{same_as: subsets.bivlc.source}}", "names one setting"),
        (f"{photos}=[{{same_as: {photos}}}]", "leads back to itself"),
        (f"{photos}={{same_as: stages.unambiguous.source.photos.same_as}}", "which the recipe does not set"),
    ):
        with pytest.raises(WrongUse, match=words):
            of(setting)


def test_what_a_reference_names_can_stand_in_a_list_or_be_one_with_references() -> None:
    recipe = load_recipe(
        "eqben",
        [
            "subsets.eq-ag.filters=[{kind: true-of-both, model: {same_as: subsets.eq-gebc.filters.0.model}}]",
            "subsets.eq-gebc.filters=[{kind: true-of-both, model: small-clip}]",
            "subsets.eq-youcook2.filters={same_as: subsets.eq-ag.filters}",
        ],
    )
    for name in ("eq-ag", "eq-youcook2"):
        (only,) = recipe[name].filters
        assert only.model_dump()["model"] == "small-clip"
