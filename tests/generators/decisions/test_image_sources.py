"""Decisions about generated images: what is asked, what people say to it, and what becomes of that."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.generators.decisions.made_stages import KINDS, Caption, context, write_stages
from tests.generators.decisions.tasks import answer, insert, say
from tests.generators.decisions.test_answers import opened
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.generated_images.choice import ImageAmbiguity, ImageChoice
from twinset.generators.decisions.question import TaskCandidate, planned_tasks, tasks_of
from twinset.generators.decisions.source import Decisions
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


def decide(generator: Decisions[Any], out: Path, *values: str, by: str = "ann") -> None:
    """An annotator gives each task of a stage its value, in plan order."""
    tasks = generator.plan()
    say(
        out / FILE,
        [answer(one, by, value, stage=generator.stage.name) for one, value in zip(tasks, values, strict=True)],
    )


def made_of(generator: Decisions[Any]) -> tuple[list[TaskCandidate], list[TableRows | Rejected]]:
    generator.plan_inputs()
    planned = list(generator.plan())
    return planned, list(generator.make(planned))


def test_the_image_that_people_choose_is_kept(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, Caption((), ()), ADDED])
    source = choice(overlap=1.0)
    generator = source.open(context(tmp_path, "chosen"))
    for name in ("ann", "ben"):
        decide(generator, tmp_path, "1", "none", "0", by=name)
    planned, made = made_of(generator)
    assert [(one.priority, one.kind_name) for one in planned] == [
        (1.0, "replace_obj"),
        (0.5, "replace_obj"),
        (1.0, "add_obj"),
    ]
    first, dropped, _ = made
    assert isinstance(first, TableRows) and isinstance(dropped, Rejected)
    (row,) = first.rows
    assert (row["image_key"], row["image_sha256"]) == (planned[0].images[1], planned[0].image_sha256s[1])
    assert (row["votes"], row["agreement"], row["right"]) == (2, 1.0, None)
    assert json.loads(str(row["annotators"])) == ["ann", "ben"]
    assert (dropped.reason, dropped.detail) == ("none-fits", "none")


def test_what_verification_drops_is_not_asked(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS] * 3 + [LOW] * 5)
    planned, _ = made_of(generator := choice(least=0.5).open(context(tmp_path, "chosen")))
    assert len(planned) == 3 and generator.excluded["not-verified"] == 5


def recipe_of(folder: Path, stages: dict[str, dict[str, Any]]) -> Recipe:
    """A recipe of stages of decisions, planned from what `write_stages` wrote."""
    lying = {name: str(folder / name) for name in STAGES}
    return parse_recipe(
        {
            "name": "people",
            "stages": {name: {"source": {**lying, **source}, "shard_size": 4} for name, source in stages.items()},
        }
    )


def counts(out: Path, *names: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """By stage: planned, kept and rejected."""
    stages = twinset.status(str(out))["stages"]
    found = {name: stages[name] for name in names}
    return {name: (one["planned"], one["kept"], one["rejected"]) for name, one in found.items()}


def test_ambiguity_is_asked_of_the_image_that_was_chosen(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, ADDED, FAILS])
    out = tmp_path / "out"
    asked = {"kind": "image-ambiguity", "photos": str(tmp_path), "choices": "best"}
    recipe = recipe_of(tmp_path, {"best": {"kind": "image-choice"}, "fits": asked})
    for stage, values in (("best", ("1", "0", "none")), ("fits", ("photo", "generated"))):
        with pytest.raises(DecisionsMissing, match=f"{stage}: {len(values)} of {len(values)} decisions are missing"):
            build_here(recipe, str(out))
        generator: Any = Job(recipe, Store(str(out))).worker(stage).generator
        decide(generator, out, *values)
    build_here(recipe, str(out))
    assert counts(out, "best", "fits") == {
        "best": (3, 2, {"none-fits": 1}),
        "fits": (2, 1, {"ambiguous": 1}),
    }
    stage = FinishedStage(Store(str(out)), "_stages/fits")
    assert stage.stage.excluded == {"not-chosen": 1}
    first = tasks_of(stage)[0]
    assert first.images[0] == "photo.png" and first.image_tars == ("", "test/00000.tar")
    assert first.images[1] == tasks_of(FinishedStage(Store(str(out)), "_stages/best"))[0].images[1]


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
    columns = ["task_key", "choice", "image_key", "image_sha256", "binding", "annotators", "votes"]
    return {row["task_key"]: row for row in FinishedStage(Store(str(out)), "_stages/best").read(columns).to_pylist()}


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="least needs the scores"):
        choice(verified=None, least=0.5)
    with pytest.raises(ValueError, match="there is no kind 'add_rel'"):
        choice(kinds=["add_rel"])
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
    report = json.loads(generator.report_files()["decisions.json"])
    assert (report["gold"]["a"]["count"], report["gold"]["a"]["of"]) == (1, 2)
    assert "was asked in 2 tasks; 1 person gave 2 answers" in source.how_made({"decisions.json": report})
    (tmp_path / "gold.csv").write_text("task,answer\n")
    with pytest.raises(WrongUse, match=r"gold\.csv: not a CSV file with columns key and answer"):
        source.open(context(tmp_path, "chosen")).reports()
