"""What people answered, as a stage of `human-baseline` reports it: figures, and a score file beside those of models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import STAGES
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import IDENTITY, MATCHING_OUTCOMES
from twinset.evaluation.metrics.figures import Figure, Results
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.model_answers import score_files, scores_path
from twinset.evaluation.report.published import Published, published
from twinset.evaluation.score_files.opening import open_scores, save_scores
from twinset.generators.decisions.source import read_report
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

OUTCOMES = MATCHING_OUTCOMES.names[len(IDENTITY) :]  # in the order in which the report has the four answers
#: What four independent guesses get. (A scorer at random gets 16.67 % of groups: its answers come from four scores.)
GUESSING = {"text": Figure(25.0), "image": Figure(25.0), "group": Figure(6.25)}
PEOPLE = "people"
_ANSWERS: dict[str, Any] = {"pair": pl.String, "kind": pl.String, "annotator": pl.String, "right": pl.List(pl.Boolean)}


@dataclass(frozen=True, slots=True)
class People:
    """What people get.

    report: the stage's ``decisions.json``. decided: pairs with all four answers, of `MATCHING_OUTCOMES`. pooled: their
    figures, and by kind. annotators: of each how many ``answers`` are ``right``.
    where: for messages. root: the dataset.
    """

    report: Mapping[str, Any]
    where: str
    root: str
    decided: pa.Table
    pooled: Results
    annotators: Mapping[str, Mapping[str, int]]

    def as_json(self) -> dict[str, Any]:
        """As `Results.as_json`, with ``undecided`` (pairs without all four answers), ``annotators``, ``agreement``."""
        pairs = self.report["pairs"]
        return {
            **self.pooled.as_json(),
            "stage": pairs["stage"],
            "undecided": pairs["sampled"] - len(self.decided),
            "annotators": self.annotators,
            "agreement": self.report["agreement"],
        }


def references() -> list[Published]:
    """What papers report of people on BiVLC."""
    return [row for row in published() if row.benchmark == "bivlc" and row.kind == "human"]


def read_people(place: str, seed: int = 0, resamples: int = 2000) -> People:
    """Measure what people answered in a finished stage, as models are measured; pairs are resampled.

    place: its folder or URL, such as ``out/bivlc/_stages/human-baseline``. Raises `WrongUse`: there is no finished
    stage, or one that asks something else; or no pair has all four answers.
    """
    root, _, name = place.rstrip("/").rpartition("/")
    store = Store(root or ("/" if place.startswith("/") else "."))
    stage = FinishedStage(store, name)
    try:
        report = read_report(stage)
    except FileNotFoundError:
        report = {}
    if "outcomes" not in report:
        raise WrongUse(f"{stage.where}: not a stage of human-baseline; name one, such as OUT/_stages/human-baseline")
    return people(report, stage.where, store.root.removesuffix(f"/{STAGES}"), seed, resamples)


def people(report: Mapping[str, Any], where: str, root: str, seed: int = 0, resamples: int = 2000) -> People:
    """Measure what a ``decisions.json`` has; the other arguments as in `People`, errors as of `read_people`."""
    answers = pl.DataFrame(report["outcomes"], _ANSWERS)
    complete = pl.col("annotator").is_null() & (pl.col("right").list.drop_nulls().list.len() == len(OUTCOMES))
    # These are outcomes and no scores: of the 16 ways to be right or wrong, two (right from both captions and wrong
    # from both images, or the reverse) are a circle that no four scores can have.
    columns = {name: pl.col("right").list.get(place, null_on_oob=True) for place, name in enumerate(OUTCOMES)}
    subset = pl.lit(report["pairs"]["stage"])
    rows = answers.filter(complete).select(key="pair", subset=subset, category="kind", group="pair", **columns)
    decided = rows.to_arrow().cast(MATCHING_OUTCOMES)
    if not len(decided):
        raise WrongUse(f"{where}: no pair has all four answers; have people answer")
    given = answers.drop_nulls("annotator").explode("right").drop_nulls("right").group_by("annotator")
    counts = given.agg(right=pl.col("right").sum(), answers=pl.len()).sort("annotator")
    annotators = {row.pop("annotator"): row for row in counts.to_dicts()}
    pooled = measure(decided, ["category"], seed, resamples)
    return People(report, where, root, decided, pooled, annotators)


def write_people(people: People, run: Path, data: str | None = None) -> list[Path]:
    """Write people's outcomes beside the scores of models on the same pairs, with these pairs' names and groups: a file
    for each benchmark of a run that has the pairs.

    data: the dataset that people and models were asked about; None: the one in which the stage lies. Raises `WrongUse`:
    no model was asked about these pairs, or models or people saw them in another state.
    """
    root, pairs = data or people.root, people.report["pairs"]
    try:
        same = FinishedStage(Store(root), pairs["stage"]).digest == pairs["digest"]
    except WrongUse:
        same = False
    if not same:
        raise WrongUse(
            f"{people.where}: people were asked about the pairs of {pairs['stage']}, which {root} does not hold as "
            "they were; name their dataset with --data DIR, or run its build again, which asks about what changed"
        )
    sampled = {row["pair"] for row in people.report["outcomes"]}
    outcomes = people.decided.select(["key", *OUTCOMES])
    written: dict[str, Path] = {}
    for model in score_files(run):
        if model.asked != "matching" or not model.scores or model.about.benchmark in written:
            continue
        names = pq.read_table(model.path, columns=[name for name, _ in IDENTITY])
        table = names.join(outcomes, "key", join_type="inner").sort_by("key").select(MATCHING_OUTCOMES.names)
        if not len(table):
            continue
        state = BuiltDataset(root, names["subset"].unique().to_pylist())
        state.limit = open_scores(model.path).about.get("limit")
        if state.digest() != model.about.data_digest:
            raise WrongUse(
                f"{model.path}: scores of another state of {root} than people saw; score again: twinset eval run"
            )
        asked = len(sampled.intersection(names["key"].to_pylist()))
        counts = {"people were not asked": len(names) - asked, "not all four questions are decided": asked - len(table)}
        about = model.about.model_dump(include={"benchmark", "title", "data_digest"})
        about |= {"model": PEOPLE, "model_digest": digest([people.decided.to_pylist()])}
        about["left_out"] = {reason: count for reason, count in counts.items() if count}
        path = scores_path(run, model.about.benchmark, PEOPLE)
        save_scores(table, about, path)
        written[model.about.benchmark] = path
    if not written:
        raise WrongUse(
            f"{run}/scores: no scores of any model on the pairs that people were asked about; first run "
            f"twinset eval run --benchmark twinset={root} --model MODEL --out {run}"
        )
    return [*written.values()]
