"""The files of a run: which models answered which benchmarks, what is known about each answer, and what blind probes
found (``probes/BENCHMARK.json``, as the probes write it).
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
from numpy.typing import NDArray

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

RUN = ".run.json"  # beside a score file: what the run that wrote it computed
LONGEST = 120  # characters of a file's name without its ending
Asked = Literal["matching", "query", "statement", "grounding"]
SCHEMAS: dict[Asked, pa.Schema] = {
    "matching": MATCHING_SCORES, "query": QUERY_RANKS, "statement": STATEMENT_MARGINS, "grounding": GROUNDING_ERRORS
}  # fmt: skip
OPTIONAL = {"tied_targets", "best_wrong", TOP}  # columns
COUNTED = ("images", "texts", "pairs")  # what a model is asked for, each once
KEY = b"twinset"  # in the metadata of a score file's schema


class _Run(pydantic.BaseModel):
    """What the last run computed, of all that was needed."""

    computed: int


class About(pydantic.BaseModel):
    """What a score file says of itself.

    left_out: examples that were not asked, by reason. unanswered: questions that the model did not answer, likewise.
    seconds: of scoring. threshold: score above which the model says that an image and a text match, where there is one.
    note: what to know of the model.

    Whatever else it holds is what scoring cost, such as how many images were encoded.
    """

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)

    benchmark: str
    title: str
    model: str
    model_digest: str
    data_digest: str
    left_out: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    seconds: float | None = None
    device: str | None = None
    threshold: float | None = None
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

    @property
    def folder(self) -> str:
        """Name of the benchmark's folder, for names of files; what the file says of itself may hold anything."""
        return self.path.parent.name

    @property
    def cost(self) -> dict[str, Any]:
        """Seconds, device and counts that were recorded; of a run of ours also how much of it came from the cache."""
        known = {"seconds": self.about.seconds, "device": self.about.device, **(self.about.model_extra or {})}
        beside = self.path.with_suffix(RUN)
        if beside.is_file():
            try:
                computed = _Run.model_validate_json(beside.read_bytes()).computed
            except pydantic.ValidationError as error:
                raise WrongUse(f"{beside}: does not tell what a run computed; remove it") from error
            needed = sum(count for name in COUNTED if isinstance(count := known.get(name), int))
            known |= {"computed": computed, "from_cache": max(needed - computed, 0)}
        return known


def floats(rows: pa.Table | pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """A column of numbers with NaN for null."""
    return np.asarray(rows.column(name).to_numpy(zero_copy_only=False), np.float64)


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
        WrongUse: there are none, or one is not a score file.
    """
    found = [_opened(path) for path in sorted(out.glob("scores/*/*.parquet"))]
    if not found:
        raise WrongUse(f"{out}/scores: no score files; twinset eval run --out {out} writes them")
    names = [(one.about.benchmark, one.about.model) for one in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            first = found[names.index(name)].path
            raise WrongUse(f"{found[place].path}: scores of {name[1]} on {name[0]}, as in {first}; remove one of them")
    for one in found:
        neighbour = next(other for other in found if other.folder == one.folder)
        if neighbour.about.benchmark != one.about.benchmark:
            raise WrongUse(
                f"{one.path}: scores on {one.about.benchmark}, beside those on {neighbour.about.benchmark}; tables are "
                "named by folder: move it to a folder of its own"
            )
    return sorted(found, key=lambda one: (one.about.benchmark, one.about.model))


def _opened(path: Path) -> ModelAnswers:
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WrongUse(f"{path}: not a Parquet file ({error}); remove it or score again") from error
    try:
        about = About.model_validate_json((schema.metadata or {})[KEY])
    except KeyError as error:
        raise WrongUse(
            f"{path}: its schema has no metadata 'twinset', which names benchmark and model; "
            "read scores from elsewhere with twinset eval scores"
        ) from error
    except (pydantic.ValidationError, json.JSONDecodeError) as error:
        raise WrongUse(f"{path}: metadata 'twinset': {error}") from error
    kinds = [(asked, expected, True) for asked, expected in SCHEMAS.items()]
    kinds += [("matching", one, False) for one in (MATCHING_OUTCOMES, MATCHING_CHOICES)]
    for asked, expected, scores in kinds:
        if set(expected.names) - OPTIONAL <= set(schema.names):
            for one in expected:
                held = [field.type for field in schema if field.name == one.name]
                if len(held) > 1 or not all(_fits(type_, one.type) for type_ in held):
                    raise WrongUse(f"{path}: column {one.name} is not one column of {one.type}; write it so")
            return ModelAnswers(path, asked, about, scores, expected)
    raise WrongUse(f"{path}: columns {', '.join(schema.names)} are not those of matchings, queries or groundings")


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of a type is read as that of another: text as text, any plain number as a number."""
    if pa.types.is_list(wanted):
        return bool(pa.types.is_list(found)) and _fits(found.value_type, wanted.value_type)
    if wanted == pa.string():
        return found in (wanted, pa.large_string())
    return any(is_one(found) for is_one in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))
