"""The score files of a run: which models answered which benchmarks, and what is known about each answer."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pydantic

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import (
    GROUNDING_ERRORS,
    MATCHING_CHOICES,
    MATCHING_OUTCOMES,
    MATCHING_SCORES,
    QUERY_RANKS,
    STATEMENT_MARGINS,
    TOP,
)

LONGEST = 120  # characters of a file's name without its ending
Asked = Literal["matching", "query", "statement", "grounding"]
#: Columns of score files, what they answer, and whether they are scores and not outcomes alone.
KINDS: tuple[tuple[pa.Schema, Asked, bool], ...] = (
    (MATCHING_SCORES, "matching", True),
    (QUERY_RANKS, "query", True),
    (STATEMENT_MARGINS, "statement", True),
    (GROUNDING_ERRORS, "grounding", True),
    (MATCHING_OUTCOMES, "matching", False),
    (MATCHING_CHOICES, "matching", False),
)
OPTIONAL = {"tied_targets", "best_wrong", TOP}  # columns
KEY = b"twinset"  # in the metadata of a score file's schema


class About(pydantic.BaseModel):
    """What a score file says of itself.

    left_out: examples that were not asked, by reason. unanswered: questions that the model did not answer, likewise.
    note: what to know of the model.
    """

    benchmark: str
    title: str
    model: str
    model_digest: str
    data_digest: str
    left_out: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """A score file: what one model answers to one benchmark. scores: whether it has scores, not outcomes alone.

    schema: what of its columns is read.
    """

    path: Path
    asked: Asked
    about: About
    scores: bool = True
    schema: pa.Schema = MATCHING_SCORES

    def rows(self) -> pl.DataFrame:
        """All answers, a row an example; without optional columns that the file lacks."""
        try:
            table = pq.ParquetFile(self.path).read(columns=self.schema.names)
            table.validate(full=True)  # polars panics at text that is not UTF-8, in metadata too
        except (pa.ArrowException, OSError) as error:
            raise WrongUse(f"{self.path}: is damaged ({error}); score again, or copy it again") from error
        return pl.DataFrame({name: pl.Series(table[name]) for name in table.column_names})


def scores_path(out: Path, benchmark: str, model: str) -> Path:
    """Where the scores of a model on a benchmark lie: its name with ``-`` for what a file's name cannot have."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", model).strip("-.")
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
    return out / "scores" / benchmark / f"{name}.parquet"


def score_files(out: Path) -> list[ModelAnswers]:
    """The score files of a run, by benchmark and model.

    Args:
        out: folder of the run, with ``scores/BENCHMARK/MODEL.parquet``.

    Raises:
        WrongUse: there are none, one is not a score file, or two contradict each other.
    """
    files = [_opened(path) for path in sorted(out.glob("scores/*/*.parquet"))]
    if not files:
        raise WrongUse(f"{out}/scores: no score files; twinset eval run --out {out} writes them")
    answers = dict[tuple[str, str], Path]()
    for file in files:
        benchmark, model = file.about.benchmark, file.about.model
        if (first := answers.setdefault((benchmark, model), file.path)) is not file.path:
            raise WrongUse(f"{file.path}: scores of {model} on {benchmark}, as in {first}; remove one of them")
        if file.path.parent.name != benchmark:
            raise WrongUse(f"{file.path}: scores on {benchmark}; move it to {out}/scores/{benchmark}")
    return sorted(files, key=lambda file: (file.about.benchmark, file.about.model))


def _opened(path: Path) -> ModelAnswers:
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WrongUse(f"{path}: not a Parquet file ({error}); remove it or score again") from error
    try:
        about = About.model_validate_json((schema.metadata or {}).get(KEY, b""))
    except pydantic.ValidationError as error:
        raise WrongUse(
            f"{path}: its schema has no metadata 'twinset', which names benchmark and model ({error}); read scores "
            "from elsewhere with twinset eval scores"
        ) from error
    for expected, asked, scores in KINDS:
        if {*expected.names} - OPTIONAL <= {*schema.names}:
            for column in expected:
                types = [field.type for field in schema if field.name == column.name]
                if types not in ([], [column.type], [pa.float64()] * pa.types.is_floating(column.type)):
                    raise WrongUse(f"{path}: column {column.name} is not one column of {column.type}; write it so")
            return ModelAnswers(path, asked, about, scores, expected)
    raise WrongUse(f"{path}: columns {', '.join(schema.names)} are not those of matchings, queries or groundings")
