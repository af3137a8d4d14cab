"""Pairs that people screen: what they are asked, and what is copied."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.generators.decisions.tasks import answer as answer_to
from tests.generators.decisions.tasks import say
from tests.generators.human_baseline.asked_pairs import write_pairs
from twinset.contracts.errors import DecisionsMissing
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.contracts.source import SOURCES
from twinset.generators.decisions.answers import FILE
from twinset.generators.screened_pairs import ScreenedPairs
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

DROPPED = {"p1": "not-visible", "p4": "fits-both"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path, 6)


def recipe_of(pairs: Path, **more: Any) -> Recipe:
    source = {"kind": "image-pairs", "annotations": str(pairs), "media": str(pairs.parent), "licence": "CC0"}
    return parse_recipe({"name": "screened", "subsets": {"mine": {"source": source, "shard_size": 2, **more}}})


def waiting(pairs: Path, out: Path) -> Recipe:
    """The recipe with a screening, whose build waits for people."""
    recipe = recipe_of(pairs, screening=True)
    with pytest.raises(DecisionsMissing, match="mine-decisions: 6 of 6 decisions are missing; ask people with"):
        twinset.build(recipe, str(out))
    return recipe


def asking(recipe: Recipe, out: Path) -> Any:
    return Job(recipe, Store(str(out))).worker("mine-decisions").source


def answer(recipe: Recipe, out: Path, dropped: Mapping[str, str]) -> None:
    """Somebody drops some pairs, by id in the annotation, and keeps the others."""
    asked = asking(recipe, out)
    ids = {row["key"]: json.loads(row["identity"])[0] for row in asked.pictured.read(["key", "identity"]).to_pylist()}
    for task in asked.gathered.tasks:
        reason = dropped.get(ids[task.subject], "")
        value = "drop" if reason else "keep"
        say(out / FILE, [answer_to(task, "ann", value, stage="mine-decisions", reason=reason)])


def samples(out: Path) -> dict[str, Mapping[str, bytes]]:
    stored = read_samples(Store(str(out)), "mine")
    return {sample.json.provenance["id"]: {"key": sample.key.encode(), **sample.fields} for sample in stored}


def test_what_people_kept_has_the_keys_and_bytes_that_it_has_without_them(pairs: Path, tmp_path: Path) -> None:
    plain, out = tmp_path / "plain", tmp_path / "out"
    twinset.build(recipe_of(pairs), str(plain))
    screened = waiting(pairs, out)
    task, first = asking(screened, out).gathered.tasks[0], next(iter(read_samples(Store(str(plain)), "mine")))
    assert (task.texts, task.subject) == (("left 0", "right 0"), first.key)
    shown = [asking(screened, out).picture(task, number) for number in (0, 1)]
    assert shown == [first.images["image0"], first.images["image1"]]

    answer(screened, out, DROPPED)
    counts = twinset.build(screened, str(out))["subsets"]
    assert counts == {"mine": {"planned": 6, "kept": 4, "rejected": {"screened-out": 2}, "shards": 3, "excluded": {}}}
    assert samples(out) == {name: sample for name, sample in samples(plain).items() if name not in DROPPED}
    whole = "mine/test/00001.tar"  # of p2 and p3
    assert (out / whole).read_bytes() == (plain / whole).read_bytes()
    card = " ".join((out / "mine/README.md").read_text().split())
    assert "People judged 6 pairs and kept 4; 2 were dropped." in card
    assert "| a caption is true of both images | 1 | 16.7% |" in card


def test_of_equal_pairs_one_is_asked_about_and_none_of_the_others_is_kept(pairs: Path, tmp_path: Path) -> None:
    first, *others = json.loads(pairs.read_bytes())
    sides = {"id": "a-swapped", "image0": "0-1.png", "image1": "0-0.png", "caption0": "right 0", "caption1": "left 0"}
    pairs.write_text(json.dumps([first, *others, {**first, "id": "p9"}, sides]))
    out = tmp_path / "out"
    recipe = waiting(pairs, out)
    answer(recipe, out, {"p1": "other"})
    counts = twinset.build(recipe, str(out))["subsets"]["mine"]
    assert (counts["planned"], counts["kept"], counts["rejected"]) == (8, 5, {"duplicate": 2, "screened-out": 1})
    assert set(samples(out)) == {"a-swapped", "p2", "p3", "p4", "p5"}
    report = json.loads((out / "mine/_meta/screening.json").read_bytes())
    assert report == {"kept": 5, "duplicates": 2, "dropped": {"other": 1}, "model": False}


def test_a_model_without_a_threshold_keeps_no_pair() -> None:
    source = ScreenedPairs(kind="screened-pairs", pairs="pairs", decisions="asked")
    engine = {"kind": "vqa", "model": "m"}
    unsure = SOURCES.find("image-verification")(kind="image-verification", images="pairs", engine=engine)
    assert "without a threshold drops no pair" in source.misfit(unsure)
    assert source.misfit(unsure.model_copy(update={"threshold": 1.0})) == ""
