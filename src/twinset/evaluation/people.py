"""What people answered, as a stage of `human-baseline` reports it: figures, and a score file beside those of models."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import STAGES
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import IDENTITY, MATCHING_OUTCOMES
from twinset.evaluation.metrics.figures import Figure, Measured, Results
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.model_answers import ModelAnswers, score_files, scores_path
from twinset.evaluation.report.published import Published, published
from twinset.generators.decisions.source import read_report
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import whole_file

OUTCOMES = MATCHING_OUTCOMES.names[len(IDENTITY) :]  # in the order in which the report has the four answers


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who was right about one pair.

    kind: of the pair, such as ``replace_obj``. annotator: None for what the answers of all came to. right: of both
    images and both captions as questions, in the order of `OUTCOMES`; None for a question without an answer.
    """

    pair: str
    kind: str
    annotator: str | None
    right: tuple[bool | None, bool | None, bool | None, bool | None]

    @property
    def whole(self) -> bool:
        """Whether all four questions were answered."""
        return None not in self.right


@dataclass(frozen=True, slots=True)
class Answered:
    """A stage in which people were asked.

    where: for messages. root: the dataset that it lies in. stage: name of the stage or subset of the pairs; digest: of
    its index when they were asked. sampled: pairs that were asked about. agreement: as the
    stage's ``decisions.json`` has it.
    """

    where: str
    root: str
    stage: str
    digest: str
    sampled: int
    outcomes: Sequence[Outcome]
    agreement: Mapping[str, Any]

    @property
    def pooled(self) -> list[Outcome]:
        """What the answers came to, of pairs whose four questions are all decided."""
        return [one for one in self.outcomes if one.annotator is None and one.whole]

    @property
    def annotators(self) -> dict[str, list[Outcome]]:
        """The outcomes of each annotator, by name."""
        found: dict[str, list[Outcome]] = {}
        for one in self.outcomes:
            if one.annotator is not None:
                found.setdefault(one.annotator, []).append(one)
        return dict(sorted(found.items()))


def read_answered(place: str) -> Answered:
    """What people answered in a finished stage.

    Args:
        place: its folder or URL, such as ``out/bivlc/_stages/human-baseline``.

    Raises:
        WrongUse: there is no finished stage, or one that asks something else.
    """
    root, _, name = place.rstrip("/").rpartition("/")
    store = Store(root or ("/" if place.startswith("/") else "."))
    stage = FinishedStage(store, name)
    try:
        report = read_report(stage)
    except FileNotFoundError:
        report = {}
    if "outcomes" not in report:
        raise WrongUse(
            f"{stage.where}: not a stage of human-baseline; name the folder of one, such as OUT/_stages/human-baseline"
        )
    return answered_of(report, stage.where, store.root.removesuffix(f"/{STAGES}"))


def answered_of(report: Mapping[str, Any], where: str, root: str) -> Answered:
    """What people answered, of a ``decisions.json`` of `human-baseline`; the other arguments as in `Answered`."""
    rows = [Outcome(one["pair"], one["kind"], one["annotator"], tuple(one["right"])) for one in report["outcomes"]]
    pairs = report["pairs"]
    return Answered(
        where=where,
        root=root,
        stage=pairs["stage"],
        digest=pairs["digest"],
        sampled=pairs["sampled"],
        outcomes=rows,
        agreement=report["agreement"],
    )


def outcome_table(outcomes: Iterable[Outcome], subset: str) -> pa.Table:
    """Whole outcomes as a table of `MATCHING_OUTCOMES`, for `evaluation.metrics.measure`.

    Four answers are outcomes and no scores: of the 16 ways to be right or wrong, two (right from both captions and
    wrong from both images, or the reverse) are a circle that no four scores can have.
    """
    rows = [
        {"key": one.pair, "subset": subset, "category": one.kind, "group": one.pair}
        | dict(zip(OUTCOMES, one.right, strict=True))
        for one in outcomes
        if one.whole
    ]
    return pa.Table.from_pylist(rows, MATCHING_OUTCOMES)


#: What four independent guesses get. (A scorer at random gets 16.67 % of groups: its answers come from four scores.)
GUESSING = {"text": Figure(25.0), "image": Figure(25.0), "group": Figure(6.25)}


@dataclass(frozen=True, slots=True)
class OneAnnotator:
    """right: of the answers. whole: of the pairs whose four questions this annotator answered; None without."""

    right: int
    answers: int
    whole: Measured | None


@dataclass(frozen=True, slots=True)
class People:
    """What people get.

    pooled: one decision a question; by kind of pair where there are several. undecided: pairs without all four.
    """

    answered: Answered
    pooled: Results
    undecided: int
    annotators: Mapping[str, OneAnnotator]

    def as_json(self) -> dict[str, Any]:
        """As `Results.as_json`, with ``undecided``, ``annotators``, ``agreement``, ``references``."""
        annotators = {
            name: {"right": one.right, "answers": one.answers, "whole": one.whole and one.whole.as_json()}
            for name, one in self.annotators.items()
        }
        return {
            **self.pooled.as_json(),
            "stage": self.answered.stage,
            "undecided": self.undecided,
            "annotators": annotators,
            "agreement": dict(self.answered.agreement),
            "references": [
                {"name": one.name, "source": one.source, "figures": one.figures[""]} for one in references()
            ],
        }


def people(answered: Answered, seed: int = 0, resamples: int = 2000) -> People:
    """Measure what people answered, as models are measured (`evaluation.metrics.matching`).

    The pairs are resampled for the intervals. Raises `WrongUse`: no pair has all four answers.
    """
    if not answered.pooled:
        raise WrongUse(f"{answered.where}: no pair has all four answers; have people answer")
    pooled = measure(outcome_table(answered.pooled, answered.stage), ["category"], seed, resamples)
    annotators = {}
    for name, outcomes in answered.annotators.items():
        given = [right for one in outcomes for right in one.right if right is not None]
        whole = outcome_table(outcomes, answered.stage)
        figures = measure(whole, (), seed, resamples).all if whole.num_rows else None
        annotators[name] = OneAnnotator(sum(given), len(given), figures)
    return People(answered, pooled, answered.sampled - pooled.all.n, annotators)


def references() -> list[Published]:
    """What papers report of people on BiVLC."""
    return [row for row in published() if row.benchmark == "bivlc" and row.kind == "human"]


PEOPLE = "people"
NOT_ASKED, UNDECIDED = "people were not asked", "not all four questions are decided"


@dataclass(frozen=True, slots=True)
class Written:
    """A score file that was written; rows: pairs in it."""

    path: Path
    rows: int


def write_people(answered: Answered, run: Path, data: str | None = None) -> list[Written]:
    """Write people's outcomes beside the scores of models on the same pairs, with these pairs' names and groups.

    Args:
        run: folder of a run, as ``--out`` of ``twinset eval run``.
        data: the dataset that people and models were asked about; None: the one in which the stage lies.

    Returns:
        A file for each benchmark of the run that has the pairs.

    Raises:
        WrongUse: no model was asked about these pairs, or models or people saw them in another state.
    """
    root = data or answered.root
    try:
        now = FinishedStage(Store(root), answered.stage)
    except WrongUse as error:
        where = "name the dataset that holds these pairs with --data DIR" if data is None else "--data names another"
        raise WrongUse(
            f"{answered.where}: people were asked about the pairs of {answered.stage}, which {root} does not hold "
            f"({error}); {where}"
        ) from error
    if now.digest != answered.digest:
        raise WrongUse(
            f"{now.where}: is not what people in {answered.where} were asked about; name the dataset with --data, or "
            "run its build again, which asks about what changed"
        )
    pairs = {one.pair: one for one in answered.pooled}
    benchmarks: dict[str, ModelAnswers] = {}
    for one in score_files(run):
        if one.asked == "matching" and one.scores:
            benchmarks.setdefault(one.about.benchmark, one)
    written = []
    for model in benchmarks.values():
        names = pq.read_table(model.path, columns=[name for name, _ in IDENTITY])
        asked = names.filter(pc.is_in(names["key"], value_set=pa.array([*pairs], pa.string())))
        if asked.num_rows:
            if BuiltDataset(root, sorted(names["subset"].unique().to_pylist())).digest() != model.about.data_digest:
                raise WrongUse(
                    f"{model.path}: scores of another state of {root} than people saw; score again: twinset eval run"
                )
            written.append(_write(answered, model, run, names.num_rows, asked))
    if not written:
        raise WrongUse(
            f"{run}/scores: no scores of any model on the pairs that people were asked about; first run "
            f"twinset eval run --benchmark twinset={root} --model MODEL --out {run}"
        )
    return written


def _write(answered: Answered, model: ModelAnswers, run: Path, rows: int, asked: pa.Table) -> Written:
    outcomes = outcome_table(answered.pooled, answered.stage).drop_columns(["subset", "category", "group"])
    joined = asked.join(outcomes, "key", join_type="inner").sort_by("key").select(MATCHING_OUTCOMES.names)
    left_out = {NOT_ASKED: rows - answered.sampled, UNDECIDED: answered.sampled - joined.num_rows}
    about = {
        "benchmark": model.about.benchmark,
        "title": model.about.title,
        "model": PEOPLE,
        "model_digest": digest([[one.pair, one.right] for one in answered.pooled]),
        "data_digest": model.about.data_digest,
        "left_out": {reason: count for reason, count in left_out.items() if count > 0},
    }
    told = joined.replace_schema_metadata({"twinset": json.dumps(about, sort_keys=True)})
    path = scores_path(run, model.folder, PEOPLE)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as beside:
        pq.write_table(told, beside)
    return Written(path, joined.num_rows)
