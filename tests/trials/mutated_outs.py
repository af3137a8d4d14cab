"""Kinds of what twinset writes itself: built datasets, answers of people, runs of evaluation, stores of features."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.made_datasets import MadeDataset, _pairs, _templates, _text_pairs, _triplets
from tests.trials.mutated_data import Act, Kind, command, copied, noise_pairs, of_source, recipe
from twinset.cli.main import main
from twinset.shards.storage.store import Store

OUT = ["out/**/*.parquet", "out/**/*.json*", "out/**/*.tar", "out/**/*.md", "out/**/*.txt"]
TO_OUT = ("build", "recipe.yaml", "--out", "out", "--workers", "1")


def inputs(folder: Path) -> None:
    """A recipe of tables, of pairs that people screen, and of text pairs; with all that it reads."""
    copied("small_world/negatives.csv")
    records = noise_pairs(["png"] * 4)
    records[0]["caption1"] = "Left 0"
    Path("pairs.json").write_text(json.dumps(records))
    mine = of_source("image-pairs", annotations="pairs.json", media=".")
    recipe(
        negatives={**of_source("replayed-negatives", captions=["negatives.csv"]), "below": True, "shard_size": 4},
        prompts={**of_source("negative-prompts", negatives="negatives"), "below": True, "shard_size": 4},
        mine={**mine, "shard_size": 2, "filters": [{"kind": "equal-captions"}]},
        text={**of_source("text-pairs", negatives="prompts"), "shard_size": 4},
    )


def built(folder: Path) -> None:
    inputs(folder)
    assert main(TO_OUT) == 0


BUILT: dict[str, Act] = {
    "build again": command(*TO_OUT),
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
    dataset = MadeDataset(Store(str(folder / "out")), folder / "out")
    fill(dataset)
    dataset.describe()


def load(subset: str, folder: Path) -> None:
    import twinset

    for sample in twinset.load(folder / "out", subset):
        assert sample.json


def made_kind(name: str, fill: Any, weight: int, subset: str, *formats: str) -> Kind:
    """Finished subsets that are read, shown and exported."""
    look = command("look", "out", "--count", "3", "--only", subset)
    acts: dict[str, Act] = {"load": partial(load, subset), "look": look}
    for form in formats:
        acts[f"export {form}"] = command("export", "out", "--format", form, "--out", "export", "--only", subset)
    return Kind(name, partial(made, fill), acts, OUT, weight)


def screened(folder: Path) -> None:
    """Pairs that two people screened, and their answers exported in every form."""
    from twinset.generators.decisions.answers import FILE, Answer
    from twinset.generators.decisions.question import planned_tasks
    from twinset.review.store import AnswerStore

    inputs(folder)
    text = Path("recipe.yaml").read_text().replace("  mine:\n", "  mine:\n    screening: true\n")
    Path("recipe.yaml").write_text(text)
    assert main((*TO_OUT, "--only", "mine")) == 3
    answers = AnswerStore(Path("out", FILE))
    for task in planned_tasks(Store("out"), "_stages/mine-decisions"):
        about = {"stage": "mine-decisions", "task": task.key, "binding": task.binding}
        for name in ("ann", "ben"):
            answers.save(Answer(**about, annotator=name, answer="keep"))
    answers.close()
    for path in ("answers.parquet", "answers.csv", "out/_review/copy.parquet"):
        assert main(("review", "out", "--out", path)) == 0
    archived = "screening: {answers: out/_review/copy.parquet}"
    Path("archived.yaml").write_text(text.replace("screening: true", archived))


SCREENED: dict[str, Act] = {
    "build": command(*TO_OUT, "--only", "mine"),
    "review --out": command("review", "out", "--out", "more.parquet"),
}
ARCHIVED: dict[str, Act] = {"build": command("build", "archived.yaml", *TO_OUT[2:], "--only", "mine")}
IMPORTED: dict[str, Act] = {
    form: command("review", "out", "--import", f"answers.{form}") for form in ("parquet", "csv")
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
    """Score with features of a model that counts letters, which a store keeps."""
    from tests.evaluation.features.small_benchmark import Shelf, by_features, matchings, scored

    scored(lambda: matchings(Shelf(), 8), by_features(folder), folder / "scores.parquet")


KINDS = (
    Kind("built dataset", built, BUILT, OUT, 14),
    made_kind("made pairs", _pairs, 3, "eq-ag", "openclip", "eqben"),
    made_kind("made triplets", _triplets, 3, "triplets"),
    made_kind("made text pairs", _text_pairs, 2, "text"),
    made_kind("made templates", _templates, 2, "change-object", "genecis"),
    Kind("answers of people", screened, SCREENED, ["out/_review/*.sqlite"]),
    Kind("answers as Parquet", screened, ARCHIVED, ["out/_review/*.parquet"]),
    *(
        Kind(f"answers to import, {form}", screened, {"review --import": act}, [f"answers.{form}"])
        for form, act in IMPORTED.items()
    ),
    Kind("run of evaluation", evaluated, {"eval report": command("eval", "report", "run")}, ["run/**/*.parquet"]),
    Kind("features", features, {"score": features}, ["cache/**/*.arrow"]),
)
