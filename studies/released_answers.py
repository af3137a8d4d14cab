"""The released files of the Davidsonian Scene Graph (Cho et al. 2023): answers of models and ratings by people."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from studies.calibration import Floats
from twinset.generators.image_verification.scoring import counted
from twinset.manifests.errors import WrongUse

ANSWERS = ("t2i_model", "item_id", "question_id", "dependency_id", "answer")
RATINGS = ("t2i_model", "item_id", "answer")
TUPLES = ("item_id", "text", "proposition_id", "dependency", "category_broad", "tuple", "question_natural_language")
_NUMBER = re.compile(r"\d+")


def read_scores(path: Path) -> dict[tuple[str, str], float]:
    """The score of each image, (text-to-image model, item), by the answers of one model.

    path: a file such as ``pali17b_dsg.csv``; only "yes" is a yes. Raises `WrongUse` for another file.
    """
    table = read_columns(path, ANSWERS)
    names = list(zip(table["t2i_model"].to_pylist(), table["item_id"].to_pylist(), strict=True))
    try:
        ids = pc.cast(table["question_id"], pa.int64()).to_pylist()
    except pa.ArrowInvalid as error:
        raise WrongUse(f"{path}: question_id is not a number in every row ({error}); fetch the file again") from error
    parents = [parents_of(text) for text in table["dependency_id"].to_pylist()]
    said = pc.utf8_trim_whitespace(pc.utf8_lower(table["answer"]))
    answers: dict[tuple[str, str], list[tuple[int, tuple[int, ...], bool]]] = {}
    for name, *answer in zip(names, ids, parents, pc.equal(said, "yes").to_pylist(), strict=True):
        answers.setdefault(name, []).append((answer[0], answer[1], answer[2]))
    counts = {name: counted(*zip(*own, strict=True)) for name, own in answers.items()}
    return {name: sum(found) / len(found) for name, found in counts.items()}


def read_ratings(path: Path) -> dict[tuple[str, str], float]:
    """Mean rating, 1 to 5, of each image in a file such as ``tifa160-likert-anns.csv``."""
    table = read_columns(path, RATINGS)
    rated = table.append_column("rating", pc.cast(table["answer"], pa.float64()))
    means = rated.group_by(["t2i_model", "item_id"]).aggregate([("rating", "mean")])
    names = zip(means["t2i_model"].to_pylist(), means["item_id"].to_pylist(), strict=True)
    return dict(zip(names, means["rating_mean"].to_pylist(), strict=True))


def both(scores: dict[tuple[str, str], float], ratings: dict[tuple[str, str], float]) -> tuple[Floats, Floats]:
    """Scores and mean ratings of the images that have both."""
    found = {name: score for name, score in scores.items() if name in ratings}
    return np.array(list(found.values())), np.array([ratings[name] for name in found])


def parents_of(text: str) -> tuple[int, ...]:
    """Parents in a released list such as ``1,2``; 0 is none. What is not a number is ignored."""
    return tuple(int(one) for one in _NUMBER.findall(text) if int(one))


def read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """Columns of a CSV file as text. Raises `WrongUse` when it lacks one."""
    try:
        return csv.read_csv(
            path,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=False,
            ),
        )
    except (OSError, KeyError, pa.ArrowException) as error:
        raise WrongUse(f"{path}: not a file with columns {', '.join(columns)} ({error}); fetch it again") from error
