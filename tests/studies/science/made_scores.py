"""Score files of made arms, for studies that were not trained."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from studies.science.design import DESIGN, Design
from twinset.evaluation.examples import MATCHING_SCORES, QUERY_RANKS

CATEGORIES = ("swap_att", "swap_obj", "replace_rel", "replace_att")


def small_design(**changes: Any) -> Design:
    """The shipped design with two seeds and few resamples."""
    found = yaml.safe_load(DESIGN.read_text("utf-8"))
    return Design.model_validate({**found, "seeds": [1, 2], "resamples": 400, **changes})


def write_matchings(path: Path, rng: np.random.Generator, right: float, rows: int = 80, first: int = 0) -> None:
    """Scores of pairs whose images and captions are matched with a chance of about ``right`` each; two a group."""
    noise = rng.normal(size=(rows, 4))
    gap = np.where(rng.random((rows, 1)) < right, 9.0, -9.0)
    scores = noise + gap * np.array([0.5, -0.5, -0.5, 0.5])
    columns = {f"s{i}{j}": scores[:, 2 * i + j].astype(np.float32) for i in (0, 1) for j in (0, 1)}
    _write(path, columns, MATCHING_SCORES, rows, first)


def write_queries(path: Path, rng: np.random.Generator, right: float, rows: int = 80) -> None:
    """Ranks of queries of which a share of about ``right`` finds its target first."""
    higher = np.where(rng.random(rows) < right, 0, rng.integers(1, 6, rows)).astype(np.int32)
    fixed = {"tied": 0, "entries": 7, "targets": 1, "tied_targets": 1, "best_wrong": 1}
    columns = {"higher": higher, **{name: np.full(rows, value, np.int32) for name, value in fixed.items()}}
    _write(path, columns, pa.schema([one for one in QUERY_RANKS if one.name != "top"]), rows, 0)


def _write(path: Path, columns: dict[str, Any], schema: pa.Schema, rows: int, first: int) -> None:
    names = [f"key-{first + row}" for row in range(rows)]
    identity = {
        "key": names,
        "subset": ["made"] * rows,
        "category": [CATEGORIES[row % len(CATEGORIES)] for row in range(rows)],
        "group": [f"group-{(first + row) // 2}" for row in range(rows)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({**identity, **columns}, schema=schema)
    pq.write_table(table.replace_schema_metadata({"twinset": json.dumps({"model": "made"})}), path)
