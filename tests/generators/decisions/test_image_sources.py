"""Decisions about generated images: what is asked, what simulated people say to it, and what becomes of that."""

import json
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twinset
from tests.generators.decisions.made_stages import KINDS, Caption, context, write_stages
from tests.generators.decisions.predicted import expected_drop_rate, expected_kappa
from tests.generators.decisions.tasks import answer, insert
from tests.generators.decisions.test_answers import opened
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.agreement import share
from twinset.generators.decisions.generated_images.choice import ImageAmbiguity, ImageChoice
from twinset.generators.decisions.generator import DecisionGenerator
from twinset.generators.decisions.question import TaskCandidate, planned_tasks, tasks_of
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import build_here

STAGES = {"negatives": "negatives", "images": "images", "verified": "verified"}
FITS, FAILS = Caption((0.5, 1.0, 1.0), (0.0, 0.0, 0.0)), Caption((0.5, 0.5, 0.0), (0.0, 0.0, 0.0))
LOW = Caption((0.2, 0.1, 0.0), (0.0, 0.0, 0.0))
ADDED = Caption((1.0, 0.5, 0.5), (1.0, 0.0, 0.0), KINDS[1])


def choice(**settings: Any) -> ImageChoice:
    return ImageChoice.model_validate({"kind": "image-choice", **STAGES, **settings})


def ambiguity(**settings: Any) -> ImageAmbiguity:
    return ImageAmbiguity.model_validate({"kind": "image-ambiguity", **STAGES, "photos": "/photos", **settings})


def simulated(error_rate: float, number: int = 2, **settings: Any) -> dict[str, Any]:
    made = {"kind": "simulated", "number": number, "error_rate": error_rate}
    return {"annotators": made, "truth": "verified", **settings}


def made_of(generator: DecisionGenerator[Any]) -> tuple[list[TaskCandidate], list[TableRows | Rejected]]:
    generator.plan_inputs()
    planned = list(generator.plan())
    return planned, list(generator.make(planned))


def test_the_truth_is_chosen_where_nobody_errs(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, Caption((), ()), ADDED])
    source = choice(**simulated(0, overlap=1.0))
    planned, made = made_of(source.open(context(tmp_path, "chosen")))
    assert [(one.truth, one.priority, one.kind_name) for one in planned] == [
        ("1", 1.0, "replace_obj"),
        ("none", 0.5, "replace_obj"),
        ("0", 1.0, "add_obj"),
    ]
    first, dropped, _ = made
    assert isinstance(first, TableRows) and isinstance(dropped, Rejected)
    (row,) = first.rows
    assert (row["image_key"], row["image_sha256"]) == (planned[0].images[1], planned[0].image_sha256s[1])
    assert (row["votes"], row["agreement"], row["simulated"], row["right"]) == (2, 1.0, True, True)
    assert json.loads(str(row["annotators"])) == ["simulated-0", "simulated-1"]
    assert (dropped.reason, dropped.detail) == ("none-fits", "none")


def test_what_verification_drops_is_asked_in_a_share(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS] * 30 + [LOW] * 300)
    generator = choice(least=0.5, audit=0.2, **simulated(0.1)).open(context(tmp_path, "chosen"))
    planned, made = made_of(generator)
    audited = sum(one.audit for one in planned)
    assert 40 < audited < 80 and len(planned) - audited == 30
    assert generator.excluded["not-verified"] == 300 - audited
    found = json.loads(generator.reports()["decisions.json"])["verification"]
    kept = Counter(one.audit for one, row in zip(planned, made, strict=True) if isinstance(row, TableRows))
    rate = share(kept[True], audited)
    assert kept[True] > 0, "an error of an annotator lets one through"
    assert (found["dropped"], found["audited"], found["audited_fitting"]) == (300, audited, kept[True])
    assert found["recall"] == pytest.approx(kept[False] / (kept[False] + 300 * kept[True] / audited))
    assert found["low"] == pytest.approx(kept[False] / (kept[False] + 300 * rate.high))
    assert found["low"] < found["recall"] < found["high"]
    words = choice().how_made({"decisions.json": json.loads(generator.reports()["decisions.json"])})
    assert "2 simulated annotators" in words and "Its recall is" in words


def recipe_of(folder: Path, stages: dict[str, dict[str, Any]]) -> Recipe:
    """A recipe of stages of decisions, planned from what `write_stages` wrote."""
    lying = {name: str(folder / name) for name in STAGES}
    return parse_recipe(
        {
            "name": "people",
            "stages": {name: {"source": {**lying, **source}, "shard_size": 4} for name, source in stages.items()},
        }
    )


def rounds(folder: Path, **settings: Any) -> Recipe:
    """Rounds as in bivlc.yaml: ambiguity of added things first, the best image, then ambiguity of what was chosen."""
    asked = {"kind": "image-ambiguity", "photos": str(folder), **settings}
    return recipe_of(
        folder,
        {
            "first": {**asked, "kinds": ["add_obj"]},
            "second": {"kind": "image-choice", "after": "first", **settings},
            "third": {**asked, "choices": "second", "asked": "first"},
        },
    )


def counts(out: Path, *names: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """By stage: planned, kept and rejected."""
    stages = twinset.status(str(out))["stages"]
    found = {name: stages[name] for name in names}
    return {name: (one["planned"], one["kept"], one["rejected"]) for name, one in found.items()}


def test_ambiguity_is_asked_first_and_not_again(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, ADDED, Caption((1.0, 0.5), (0.0, 0.0), KINDS[1]), FAILS])
    out, people = tmp_path / "out", {**simulated(0), "truth": str(tmp_path / "verified")}
    build_here(rounds(tmp_path, **people), str(out))
    assert counts(out, "first", "second", "third") == {
        "first": (2, 1, {"ambiguous": 1}),
        "second": (3, 2, {"none-fits": 1}),
        "third": (2, 2, {}),
    }
    stage = FinishedStage(Store(str(out)), "_stages/third")
    assert stage.stage.excluded == {"not-chosen": 2}
    assert FinishedStage(Store(str(out)), "_stages/second").stage.excluded == {"ambiguous": 1}
    report = json.loads(stage.store.read("_stages/third/_meta/decisions.json"))
    assert (report["tasks"], report["carried"], sum(report["answers"].values())) == (2, 1, 1)
    planned = {one.texts[0]: one for one in tasks_of(stage)}
    assert planned["caption 2"].images[0] == "photo.png" and planned["caption 2"].image_tars == ("", "test/00000.tar")
    assert planned["caption 0"].images[1] == tasks_of(FinishedStage(Store(str(out)), "_stages/second"))[0].images[1]


def test_people_are_waited_for_and_a_new_image_asks_for_one_new_decision(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, ADDED])
    out, answers = tmp_path / "out", tmp_path / "answers.sqlite"
    recipe = recipe_of(tmp_path, {"best": {"kind": "image-choice", "answers": str(answers)}})
    with pytest.raises(DecisionsMissing, match="best: 3 of 3 decisions are missing"):
        build_here(recipe, str(out))
    generator: Any = Job(recipe, Store(str(out))).worker("best").generator
    with closing(opened(answers)) as connection:
        insert(connection, [answer(one, "a", "1", stage="best") for one in list(generator.plan())[:2]])
        with pytest.raises(DecisionsMissing, match="1 of 3 decisions is missing"):
            build_here(recipe, str(out))
        insert(connection, [answer(list(generator.plan())[2], "a", "none", stage="best")])
        build_here(recipe, str(out))
        assert counts(out, "best") == {"best": (3, 2, {"none-fits": 1})}
        before = tables(out)
        write_stages(tmp_path, [FITS, FAILS, ADDED], rebuilt={(1, 2): "f" * 64})
        with pytest.raises(DecisionsMissing, match="1 of 3 decisions is missing"):
            build_here(recipe, str(out))
        (stale,) = (one for one in tasks_of_plan(out) if "f" * 64 in one.image_sha256s)
        insert(connection, [answer(stale, "b", "0", stage="best")])
    build_here(recipe, str(out))
    changed = [task for task, row in tables(out).items() if before.get(task) != row]
    assert changed == [stale.key], "the other decisions are the same rows"
    report = json.loads((out / "_stages/best/_meta/decisions.json").read_bytes())
    assert report["answers"] == {"a": 2, "b": 1}, "the answer to the image before is not counted"
    assert "2 people gave 3 answers" in choice().how_made({"decisions.json": report})


def test_undecided_captions_count_in_the_recall_as_the_decided_ones_do(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS] * 4 + [LOW] * 4)
    people = {"answers": str(tmp_path / "answers.sqlite"), "least": 0.5, "audit": 1.0, "enough": 0.5}
    generator = choice(**people).open(context(tmp_path, "best"))
    planned = list(generator.plan())
    said = {True: ("none", "2"), False: ("1", "none")}  # two answers a side: half of each fits, half is undecided
    given = [
        answer(one, "a", value, stage="best")
        for audit, values in said.items()
        for one, value in zip([one for one in planned if one.audit == audit], values, strict=False)
    ]
    with closing(opened(tmp_path / "answers.sqlite")) as connection:
        insert(connection, given)
    made_of(generator)
    found = json.loads(generator.reports()["decisions.json"])["verification"]
    assert (found["passed_fitting"], found["passed"]) == (1, 2)
    assert (found["audited_fitting"], found["audited"], found["dropped"]) == (1, 2, 4)
    assert found["recall"] == 0.5, "two of four on either side"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["key,right"], "not a CSV file with columns key and answer"),
        (["elsewhere,0"], "'elsewhere' and the other keys are not tasks of this stage"),
        (["{key},0", "{key},none"], r"gold\.csv, line 3: .* has an answer in a line above"),
        (["elsewhere,0", "{key},first"], "the answer 'first' to .* is none of 0, 1, 2, none"),
    ],
)
def test_gold_tasks_that_cannot_be_right_are_refused_before_people_are_asked(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    write_stages(tmp_path, [FITS])
    gold = tmp_path / "gold.csv"
    settings = {"answers": str(tmp_path / "answers.sqlite"), "gold": str(gold)}
    [task] = choice(answers=settings["answers"]).open(context(tmp_path, "best")).gathered.tasks
    head = [] if "right" in lines[0] else ["key,answer"]
    gold.write_text("\n".join([*head, *(line.format(key=task.key) for line in lines), "last,0"]))
    with pytest.raises(WrongUse, match=words):
        choice(**settings).open(context(tmp_path, "best")).waiting()


def tasks_of_plan(out: Path) -> list[TaskCandidate]:
    return planned_tasks(Store(str(out)), "_stages/best")


def tables(out: Path) -> dict[str, Any]:
    """Rows of the stage of decisions, by task."""
    columns = ["task_key", "choice", "image_key", "image_sha256", "binding", "annotators", "votes", "simulated"]
    return {row["task_key"]: row for row in FinishedStage(Store(str(out)), "_stages/best").read(columns).to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("error_rate", [0.05, 0.2])
def test_kappa_and_drop_rates_are_those_that_the_error_rate_predicts(error_rate: float, tmp_path: Path) -> None:
    """Over seeds, 95 % intervals must hold what is expected about as often as they promise."""
    some = np.random.default_rng(0).random((300, 4))
    write_stages(tmp_path, [Caption(tuple(np.where(row > 0.75, 1.0, 0.5)), tuple(row > 0.6)) for row in some])
    held = Counter[str]()
    for seed in range(20):
        for source in (choice, ambiguity):
            generator = source(**simulated(error_rate, overlap=0.5)).open(context(tmp_path, "people", seed))
            planned, made = made_of(generator)
            dropped = sum(isinstance(one, Rejected) for one in made)
            assert len(planned) == 300 == dropped + sum(isinstance(one, TableRows) for one in made)
            several = [generator.needed(one) == 2 for one in planned]
            rate, found = expected_drop_rate(planned, several, error_rate), share(dropped, len(planned))
            held[f"{source.__name__}: drops"] += found.low <= rate <= found.high
            (pair,) = json.loads(generator.reports()["decisions.json"])["agreement"]["pairs"]
            kappa = expected_kappa([one for one, twice in zip(planned, several, strict=True) if twice], error_rate)
            held[f"{source.__name__}: kappa"] += pair["low"] <= kappa <= pair["high"]
    # At 95 % fewer than 16 of 20 happens once in 400 times.
    assert len(held) == 4 and min(held.values()) >= 16


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="least needs the scores"):
        choice(verified=None, least=0.5)
    with pytest.raises(ValueError, match="name a stage of verification with truth"):
        choice(annotators={"kind": "simulated"})
    with pytest.raises(ValueError, match="there is no kind 'add_rel'"):
        choice(kinds=["add_rel"])
    with pytest.raises(ValueError, match="overlap_answers asks for 2 answers"):
        choice(**simulated(0.1, number=1, overlap=0.5))
    assert choice(truth="verified", verified=None).reads == ("negatives", "images"), "people need no truth"
    with pytest.raises(ValueError, match="image-choice plans all that it reads; set count on the stage that it reads"):
        parse_recipe({"name": "x", "stages": {"chosen": {"source": choice().model_dump(mode="json"), "count": 3}}})
    write_stages(tmp_path, [FITS])
    with pytest.raises(WrongUse, match="not in a local folder; name their file with --set"):
        choice().open(replace(context(tmp_path, "chosen"), out=None)).waiting()
    write_stages(tmp_path, [Caption((1.0,) * 10, (0.0,) * 10)])
    with pytest.raises(WrongUse, match="10 images of a caption"):
        choice().open(context(tmp_path, "chosen")).waiting()


def test_answers_lie_beside_the_dataset_and_gold_tasks_tell_how_careful_people_are(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS])
    source = choice(gold=tmp_path / "gold.csv")
    (tmp_path / "_review").mkdir()
    planned = list(choice().open(context(tmp_path, "chosen")).plan())
    (tmp_path / "gold.csv").write_text(f"key,answer\n{planned[0].key},1\n{planned[1].key},none\n")
    with closing(opened(tmp_path / "_review" / "answers.sqlite")) as connection:
        insert(connection, [answer(one, "a", "1", stage="chosen") for one in planned])
    generator = source.open(context(tmp_path, "chosen"))
    assert generator.waiting() is None
    report = json.loads(generator.reports()["decisions.json"])
    assert (report["gold"]["a"]["count"], report["gold"]["a"]["of"], report["simulated"]) == (1, 2, None)
    assert "was asked in 2 tasks; 1 person gave 2 answers" in source.how_made({"decisions.json": report})
    (tmp_path / "gold.csv").write_text("task,answer\n")
    with pytest.raises(WrongUse, match=r"gold\.csv: not a CSV file with columns key and answer"):
        source.open(context(tmp_path, "chosen")).reports()
