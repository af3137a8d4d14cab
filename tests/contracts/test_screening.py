"""``screening`` of a subset in a recipe: the stages that it is short for, and what is said where it is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, content_of, load_recipe, parse_recipe, recipe_from_json

FILTERS = [{"kind": "motion-words"}]
GEBC = {"source": {"kind": "gebc", "annotations": "a.json", "media": "videos"}, "filters": FILTERS, "shard_size": 7}


def recipe(tmp_path: Path, *settings: str, stages: Any = None, **more: Any) -> Recipe:
    path = tmp_path / "mine.yaml"
    raw = {"name": "mine", "subsets": {"eq-gebc": {**GEBC, **more}}, **({"stages": stages} if stages else {})}
    path.write_text(json.dumps(raw))
    return load_recipe(str(path), settings)


def test_it_is_short_for_candidates_decisions_and_what_is_kept(tmp_path: Path) -> None:
    plain = recipe(tmp_path, screening=False)
    assert plain == recipe(tmp_path) and set(plain.all) == {"eq-gebc"}
    screened = recipe(tmp_path, screening={"overlap": 0.5, "gold": "gold.csv"}, count=9, split="train", pool="gpu")
    assert list(screened.all) == ["eq-gebc-candidates", "eq-gebc-decisions", "eq-gebc"]
    assert list(screened.subsets) == ["eq-gebc"]
    candidates, decisions, kept = screened.all.values()
    assert (candidates.known_as, candidates.count, candidates.pool) == ("eq-gebc", 9, "gpu")
    assert [one.kind for one in candidates.filters] == ["motion-words"] and not kept.filters
    assert {(one.shard_size, one.split) for one in (candidates, decisions, kept)} == {(7, "train")}
    asks = decisions.source.model_dump()
    assert (asks["overlap"], asks["gold"]) == (0.5, str(tmp_path / "gold.csv"))
    assert screened.origin("eq-gebc") == candidates.source
    assert recipe(tmp_path, "subsets.eq-gebc.screening.overlap=0.5", screening=True) == recipe(
        tmp_path, screening={"overlap": 0.5}
    )
    assert recipe_from_json(screened.model_dump_json().encode()) == screened
    # Where answers lie is not part of what is made, also where nothing is said.
    elsewhere = recipe(tmp_path, screening={"overlap": 0.5, "gold": "gold.csv", "answers": "a"}, split="train")
    assert content_of(elsewhere["eq-gebc-decisions"], 0) == content_of(decisions, 0)
    # The name of its samples decides bytes; that of a subset without one leaves digests as they were.
    assert "known_as" in content_of(candidates, 0) and "known_as" not in content_of(kept, 0)


@pytest.mark.parametrize("name", ["eq-gebc", "eq-sd"])
def test_the_shipped_recipe_offers_it(name: str) -> None:
    screened = load_recipe("eqben", [f"subsets.{name}.screening=true", "subsets.eq-ag.source.skip=2"])
    assert set(load_recipe("eqben").all) | {f"{name}-candidates", f"{name}-decisions"} == set(screened.all)
    more = load_recipe(
        "eqben", [f"subsets.{name}.screening.overlap=0.25", f"subsets.{name}.screening.answers=a.sqlite"]
    )
    asks = more[f"{name}-decisions"].source.model_dump()
    assert (asks["overlap"], asks["answers"]) == (0.25, str(Path.cwd() / "a.sqlite"))


@pytest.mark.parametrize(
    ("settings", "more", "said"),
    [
        ([], {"screening": 3}, "subsets.eq-gebc.screening: write true, false, or settings of pair-screening"),
        ([], {"screening": {"overlap": 2}}, "subsets.eq-gebc.screening.overlap: Input should be less than or equal"),
        ([], {"screening": {"overlp": 1}}, "screening.overlp: unknown key; did you mean 'overlap'?"),
        (
            [],
            {"screening": {"pairs": "/out/b"}},
            "'pairs' cannot be set: people are asked about the pairs of this subset",
        ),
        ([], {"screening": {"answers": "https://a.example/x"}}, "screening.answers: Value error, is a URL, and SQLite"),
        ([], {"screenin": True}, "subsets.eq-gebc.screenin: unknown key; did you mean 'screening'?"),
        ([], {"screening": True, "stages": {"eq-gebc-decisions": GEBC}}, "adds a stage 'eq-gebc-decisions', and the"),
        ([], {"screening": True, "shard_size": 0}, "subsets.eq-gebc.shard_size: Input should be greater"),
        ([], {"screening": True, "source": {"kind": "gbc"}}, "subsets.eq-gebc.source.kind: there is no source 'gbc'"),
        (["subsets.eq-gebc.screening.overlap=x"], {}, "--set subsets.eq-gebc.screening.overlap: Input should be"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_recipe(
    settings: list[str], more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse) as wrong:
        recipe(tmp_path, *settings, **more)
    assert said in str(wrong.value)


def test_only_pairs_can_be_screened_and_copies_are_not_filtered() -> None:
    stills = {"kind": "scene-graphs", "captions": "captions.json", "licence": "other: mine"}
    with pytest.raises(WrongUse, match="people are asked about pairs, and scene-graphs makes tables"):
        parse_recipe({"name": "x", "subsets": {"a": {"source": stills, "screening": True}}})
    copies = {"kind": "screened-pairs", "pairs": "/out/a", "decisions": "/out/b"}
    with pytest.raises(WrongUse, match="filter motion-words would judge what is copied"):
        parse_recipe({"name": "x", "subsets": {"a": {"source": copies, "filters": FILTERS}}})
