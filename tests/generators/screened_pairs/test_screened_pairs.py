"""Pairs that people screen: what they are asked, what is copied, and what becomes of it when a decision changes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

import twinset
from tests.generators.decisions.tasks import answer as answer_to
from tests.generators.decisions.tasks import say
from tests.generators.human_baseline.asked_pairs import write_pairs
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.pairs import PairScreening
from twinset.generators.screened_pairs import ScreenedPairs
from twinset.shards.contracts import Context
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


def asking(recipe: Recipe, out: Path) -> Any:
    return Job(recipe, Store(str(out))).worker("mine-decisions").generator


def answer(recipe: Recipe, out: Path, dropped: Mapping[str, str], *settled: str) -> None:
    """People drop some pairs, by id in the annotation, and keep the others; or an admin settles some alone."""
    asked = asking(recipe, out)
    ids = {row["key"]: json.loads(row["identity"])[0] for row in asked.pictured.read(["key", "identity"]).to_pylist()}
    about: dict[str, Any] = {"stage": "mine-decisions", "adjudicated": bool(settled)}
    given = {ids[task.subject]: task for task in asked.gathered.tasks}
    for name in settled or given:
        value, reason = ("drop", dropped[name]) if name in dropped else ("keep", "")
        say(out / FILE, [answer_to(given[name], "admin" if settled else "ann", value, reason=reason, **about)])


def samples(out: Path) -> dict[str, Mapping[str, bytes]]:
    stored = read_samples(Store(str(out)), "mine")
    return {sample.json.provenance["id"]: {"key": sample.key.encode(), **sample.fields} for sample in stored}


def test_what_people_kept_has_the_keys_and_bytes_that_it_has_without_them(pairs: Path, tmp_path: Path) -> None:
    plain, out, screened = tmp_path / "plain", tmp_path / "out", recipe_of(pairs, screening=True)
    twinset.build(recipe_of(pairs), str(plain))
    with pytest.raises(DecisionsMissing, match="mine-decisions: 6 of 6 decisions are missing; ask people with"):
        twinset.build(screened, str(out))
    task, first = asking(screened, out).gathered.tasks[0], next(iter(read_samples(Store(str(plain)), "mine")))
    assert (task.texts, task.subject) == (("left 0", "right 0"), first.key)
    shown = [asking(screened, out).picture(task, number).content for number in (0, 1)]
    assert shown == [first.images["image0"], first.images["image1"]]

    answer(screened, out, DROPPED)
    found = twinset.build(screened, str(out))["subsets"]
    assert found == {"mine": {"planned": 6, "kept": 4, "rejected": {"screened-out": 2}, "shards": 3, "excluded": {}}}
    assert samples(out) == {name: sample for name, sample in samples(plain).items() if name not in DROPPED}
    whole = "mine/test/00001.tar"  # of p2 and p3
    assert (out / whole).read_bytes() == (plain / whole).read_bytes()
    checked = twinset.verify(str(out))
    assert not any(stage["problems"] for part in checked.values() for stage in part.values())
    card = " ".join((out / "mine/README.md").read_text().split())
    assert "People judged 6 of them and kept 4; 2 were dropped and 0 left undecided." in card
    assert "| a caption is true of both images | 1 | 16.7% |" in card


def test_a_changed_decision_makes_its_shards_again_and_a_changed_pair_is_asked_about_again(
    pairs: Path, tmp_path: Path
) -> None:
    out, recipe = tmp_path / "out", recipe_of(pairs, screening=True)
    with pytest.raises(DecisionsMissing):
        twinset.build(recipe, str(out))
    answer(recipe, out, DROPPED)
    twinset.build(recipe, str(out))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("rows/*.parquet")}
    answer(recipe, out, {}, "p4")
    assert twinset.build(recipe, str(out))["subsets"]["mine"]["kept"] == 5
    changed = {path.relative_to(out).as_posix() for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert changed == {f"{home}/_meta/rows/00002.parquet" for home in ("mine", "_stages/mine-decisions")}

    pairs.write_text(pairs.read_text().replace("right 3", "changed"))
    with pytest.raises(DecisionsMissing, match="1 of 6 decisions is missing"):
        twinset.build(recipe, str(out))
    answer(recipe, out, {"p3": "other"}, "p3")
    assert twinset.build(recipe, str(out))["subsets"]["mine"]["kept"] == 4
    assert "changed" not in {sample["caption1.txt"].decode() for sample in samples(out).values()}


def test_of_equal_pairs_one_is_asked_about_and_none_of_the_others_is_kept(pairs: Path, tmp_path: Path) -> None:
    first, *others = json.loads(pairs.read_bytes())
    sides = {"id": "a-swapped", "image0": "0-1.png", "image1": "0-0.png", "caption0": "right 0", "caption1": "left 0"}
    pairs.write_text(json.dumps([first, *others, {**first, "id": "p9"}, sides]))
    out, recipe = tmp_path / "out", recipe_of(pairs, screening=True)
    with pytest.raises(DecisionsMissing, match="6 of 6 decisions are missing"):
        twinset.build(recipe, str(out))
    answer(recipe, out, {"p1": "other"})
    found = twinset.build(recipe, str(out))["subsets"]["mine"]
    assert (found["planned"], found["kept"], found["rejected"]) == (8, 5, {"duplicate": 2, "screened-out": 1})
    assert set(samples(out)) == {"a-swapped", "p2", "p3", "p4", "p5"}
    report = json.loads((out / "mine/_meta/screening.json").read_bytes())
    assert (report["made"], report["duplicates"], report["shown"], report["kept"]) == (8, 2, 6, 5)


def planned_after(threshold: float | None, seen: str, subject: str = "p0") -> list[str]:
    """The keys that are planned of the pair p0, where a model kept a pair of this subject and image."""
    shown = {"image0_sha256": "zero", "image1_sha256": "one"}
    about = {"key": "p0", "identity": "[]", "tar": "t", "split": "test", "group": "p0", "content": "c", **shown}
    terms = {"licence": "", "credit": "", "source_url": "", "caption0": "a", "caption1": "b", "sources": []}
    asked = {"distinguishing_score": 1.0, "subject": subject, **shown, "image1_sha256": seen}
    stages = {"pairs": pa.Table.from_pylist([{**about, **terms}]), "verified": pa.Table.from_pylist([asked])}

    def earlier(name: str) -> Any:
        table, none = (
            stages[name],
            pa.table({name: pa.array([], pa.string()) for name in ("identity", "reason", "detail")}),
        )
        found = Mock(where=name, rejected=none.select, read=table.select, columns=lambda: table.column_names)
        found.batches = lambda columns: table.select(columns).to_batches()
        found.stage.facts = {"settings": {"source": {"threshold": threshold}}}
        return found

    source = ScreenedPairs(kind="screened-pairs", pairs="pairs", decisions="verified")
    return [candidate.key for candidate in source.open(Context("screened", earlier=earlier)).plan()]


def test_answers_without_a_threshold_or_about_other_images_or_pairs_keep_no_pair() -> None:
    assert planned_after(0.5, "one") == ["p0"]
    with pytest.raises(WrongUse, match=r"^verified: has no threshold, so that it drops no pair"):
        planned_after(None, "one")
    with pytest.raises(WrongUse, match=r"^verified: asked about other images of p0 than pairs has; build"):
        planned_after(0.5, "another")
    with pytest.raises(WrongUse, match=r"^verified: nobody was asked about p0 of pairs; name the stage"):
        planned_after(0.5, "one", "p1")
    with pytest.raises(ValueError, match="match does not drop pairs as screened-out"):
        PairScreening(kind="pair-screening", pairs="made", question="match")
