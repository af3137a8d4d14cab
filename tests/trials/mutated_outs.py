"""Kinds of what twinset writes itself: built datasets, answers of people, runs of evaluation, stores of features."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tests.made_datasets import MadeDataset, _pairs, _templates, _text_pairs, _triplets
from tests.trials.mutated_data import Act, command, copied, noise, of_source, recipe
from twinset.cli.main import main
from twinset.shards.storage.store import Store

OUT = ["out/**/*.parquet", "out/**/*.json*", "out/**/*.tar", "out/**/*.md", "out/**/*.txt"]


def inputs(folder: Path) -> None:
    """A recipe of tables, of pairs that people screen, and of text pairs; with all that it reads."""
    copied("small_world/negatives.csv")
    records = []
    for n in range(4):
        for side in (0, 1):
            noise(f"{n}-{side}.png", 2 * n + side)
        names = {f"image{side}": f"{n}-{side}.png" for side in (0, 1)}
        records.append({"id": f"p{n}", **names, "caption0": f"left {n}", "caption1": f"right {n}" if n else "Left 0"})
    Path("pairs.json").write_text(json.dumps(records))
    recipe(
        negatives={**of_source("replayed-negatives", captions=["negatives.csv"]), "below": True, "shard_size": 4},
        prompts={**of_source("negative-prompts", negatives="negatives"), "below": True, "shard_size": 4},
        mine={
            **of_source("image-pairs", annotations="pairs.json", media="."), "shard_size": 2,
            "filters": [{"kind": "equal-captions"}],
        },
        text={**of_source("text-pairs", negatives="prompts"), "shard_size": 4},
    )  # fmt: skip


def built(folder: Path) -> None:
    """A finished dataset."""
    inputs(folder)
    assert main(("build", "recipe.yaml", "--out", "out", "--workers", "1")) == 0


BUILT: dict[str, Act] = {
    "build again": command("build", "recipe.yaml", "--out", "out", "--workers", "1"),
    "plan --out": command("plan", "recipe.yaml", "--out", "out"),
    "status": command("status", "out"),
    "status --json": command("status", "out", "--json"),
    "verify": command("verify", "out", "--media"),
    "look": command("look", "out", "--count", "3"),
    "export openclip": command("export", "out", "--format", "openclip", "--out", "export", "--only", "mine"),
    "export sugarcrepe": command("export", "out", "--format", "sugarcrepe", "--out", "export", "--only", "text"),
    "eval blind": command("eval", "blind", "twinset=out", "--only", "mine"),
}


def made(fill: Any, folder: Path) -> None:
    """Finished subsets of a kind, written without an engine."""
    of = MadeDataset(Store(str(folder / "out")), folder / "out")
    fill(of)
    of.describe()


def load(*subsets: str) -> Act:
    """Read all samples."""

    def act(folder: Path) -> None:
        import twinset

        for subset in subsets:
            for sample in twinset.load(folder / "out", subset):
                assert sample.json

    return act


def made_acts(subset: str, *formats: str) -> dict[str, Act]:
    """Read, show and export a subset."""
    found = {"load": load(subset), "look": command("look", "out", "--count", "3", "--only", subset)}
    for name in formats:
        found[f"export {name}"] = command("export", "out", "--format", name, "--out", "export", "--only", subset)
    return found


def screened(folder: Path) -> None:
    """Pairs that two people screened, and their answers exported in every form."""
    from tests.generators.decisions.tasks import insert
    from twinset.contracts.recipe import load_recipe
    from twinset.generators.decisions.answers import FILE, Answer, create_tables
    from twinset.generators.decisions.source import Decisions
    from twinset.stages.job import Job

    inputs(folder)
    text = Path("recipe.yaml").read_text().replace("  mine:\n", "  mine:\n    screening: true\n")
    Path("recipe.yaml").write_text(text)
    assert main(("build", "recipe.yaml", "--out", "out", "--workers", "1", "--only", "mine")) == 3
    asking = Job(load_recipe("recipe.yaml"), Store("out")).worker("mine-decisions").source
    assert isinstance(asking, Decisions)
    Path("out", FILE).parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(Path("out", FILE))) as connection:
        create_tables(connection)
        insert(connection, [
            Answer(stage="mine-decisions", task=task.key, binding=task.binding, annotator=name, answer="keep")
            for task in asking.gathered.tasks for name in ("ann", "ben")
        ])  # fmt: skip
    for path in ("answers.parquet", "answers.csv", "out/_review/copy.parquet"):
        assert main(("review", "out", "--out", path)) == 0
    asked = "screening: {answers: out/_review/copy.parquet}"
    Path("archived.yaml").write_text(text.replace("screening: true", asked))


SCREENED: dict[str, Act] = {
    "build": command("build", "recipe.yaml", "--out", "out", "--workers", "1", "--only", "mine"),
    "review --out": command("review", "out", "--out", "more.parquet"),
}
ARCHIVED: dict[str, Act] = {
    "build": command("build", "archived.yaml", "--out", "out", "--workers", "1", "--only", "mine")
}
IMPORTS: dict[str, Act] = {
    f"review --import {form}": command("review", "out", "--import", f"answers.{form}") for form in ("parquet", "csv")
}


def evaluated(folder: Path) -> None:
    """A run of two models on a drawn benchmark, as `evaluation.run` leaves it."""
    from tests.evaluation.report.made_scores import errors, matchings, ranks, save
    from twinset.evaluation.examples import GROUNDING_ERRORS, MATCHING_SCORES, QUERY_RANKS

    for number, model in enumerate(("a", "b")):
        save(folder / "run", "pairs", model, matchings(8, number, 0.1), MATCHING_SCORES)
        save(folder / "run", "queries", model, ranks(6), QUERY_RANKS)
        save(folder / "run", "moments", model, errors(6), GROUNDING_ERRORS)


def features(folder: Path) -> None:
    """Features of a model that counts letters, kept in a store."""
    from tests.evaluation.features.small_benchmark import Shelf, by_features, matchings, scored

    scored(lambda: matchings(Shelf(), 8), by_features(folder), folder / "scores.parquet")


def score_again(folder: Path) -> None:
    """Score the same with the features that are kept."""
    features(folder)


KINDS: tuple[tuple[Any, ...], ...] = (
    ("built dataset", built, BUILT, OUT, 14),
    ("made pairs", partial(made, _pairs), made_acts("eq-ag", "openclip", "eqben"), OUT, 3),
    ("made triplets", partial(made, _triplets), made_acts("triplets"), OUT, 3),
    ("made text pairs", partial(made, _text_pairs), made_acts("text"), OUT, 2),
    ("made templates", partial(made, _templates), made_acts("change-object", "genecis"), OUT, 2),
    ("answers of people", screened, SCREENED, ["out/_review/*.sqlite"], 2),
    ("answers as Parquet", screened, ARCHIVED, ["out/_review/*.parquet"], 2),
    *(
        (
            f"answers to import, {act.rpartition(' ')[2]}",
            screened,
            {act: does},
            [f"answers.{act.rpartition(' ')[2]}"],
            2,
        )
        for act, does in IMPORTS.items()
    ),
    ("run of evaluation", evaluated, {"eval report": command("eval", "report", "run")}, ["run/**/*.parquet"], 2),
    ("features", features, {"score": score_again}, ["cache/**/*.arrow"], 2),
)
