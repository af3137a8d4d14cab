"""What people answered as a score file beside those of models, so that one report shows both and compares them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import IDENTITY, MATCHING_OUTCOMES
from twinset.evaluation.people.answered import Answered, outcome_table
from twinset.evaluation.report.model_answers import ModelAnswers, score_files, scores_path
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import whole_file

PEOPLE, SIMULATED = "people", "people (simulated)"
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
            _check_state(model, root, names["subset"].unique().to_pylist())
            written.append(_write(answered, model, run, names.num_rows, asked))
    if not written:
        raise WrongUse(
            f"{run}/scores: no scores of any model on the pairs that people were asked about; first run "
            f"twinset eval run --benchmark twinset={root} --model MODEL --out {run}"
        )
    return written


def _check_state(model: ModelAnswers, root: str, subsets: Sequence[str]) -> None:
    """Raise `WrongUse` unless the model was scored on the dataset as it is."""
    if BuiltDataset(root, sorted(subsets)).digest() != model.about.data_digest:
        raise WrongUse(
            f"{model.path}: scores of another state of {root} than people saw; score again with twinset eval run"
        )


def _write(answered: Answered, model: ModelAnswers, run: Path, rows: int, asked: pa.Table) -> Written:
    name = SIMULATED if answered.simulated else PEOPLE
    outcomes = outcome_table(answered.pooled, answered.stage).drop_columns(["subset", "category", "group"])
    joined = asked.join(outcomes, "key", join_type="inner").sort_by("key").select(MATCHING_OUTCOMES.names)
    left_out = {NOT_ASKED: rows - answered.sampled, UNDECIDED: answered.sampled - joined.num_rows}
    about = {
        "benchmark": model.about.benchmark,
        "title": model.about.title,
        "model": name,
        "model_digest": digest([[one.pair, one.right] for one in answered.pooled]),
        "data_digest": model.about.data_digest,
        "left_out": {reason: count for reason, count in left_out.items() if count > 0},
    }
    told = joined.replace_schema_metadata({"twinset": json.dumps(about, sort_keys=True)})
    path = scores_path(run, model.folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as beside:
        pq.write_table(told, beside)
    return Written(path, joined.num_rows)
