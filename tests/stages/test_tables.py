"""Stages of tables: made shard by shard or at once from earlier ones, read by later stages, and made again."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.canonical import sample_key
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.job import Job

LINES = ["a word here", "  ", "words are here", "no", ""]


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    """words -> longest, which is made at once -> again."""
    lines = tmp_path / "lines.json"
    lines.write_text(json.dumps(LINES))
    words = {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 2}
    longest = {"source": {"kind": "test-longest", "words": "words"}}
    again = {"source": {"kind": "test-longer", "words": "longest", "least": 5}}
    return recipe_of({}, {"words": words, "longest": longest, "again": again})


def test_the_index_holds_the_rows_in_plan_order_and_later_stages_read_it(
    recipe: Any, tmp_path: Path, files_below: Any
) -> None:
    out = tmp_path / "out"
    made = build_here(recipe, str(out))["stages"]
    counts = {"planned": 5, "kept": 3, "rejected": {"no-words": 2}, "shards": 3, "excluded": {}}
    assert made["words"] == counts
    counts = {"planned": 3, "kept": 3, "rejected": {}, "shards": 0, "excluded": {"short": 3}}
    assert made["longest"] == counts and made["again"]["kept"] == 1
    words = Job(recipe, Store(str(out))).earlier("words")
    assert words.read(["key", "word", "length"]).to_pylist() == [
        {"key": sample_key("words", number), "word": word, "length": len(word)}
        for number, line in enumerate(LINES)
        for word in line.split()
    ]
    rows = pq.read_table(out / "_stages/longest/_meta/index.parquet").to_pylist()
    assert [(row["word"], row["length"], row["key"]) for row in rows] == [
        (word, len(word), sample_key("longest", word)) for word in ("word", "here", "words")
    ]
    rejections = pq.read_table(out / "_stages/words/_meta/rejections.parquet").to_pylist()
    assert [(row["identity"], row["detail"]) for row in rejections] == [("[1]", "'  '"), ("[4]", "''")]
    whole = files_below(out)
    build_here(recipe, str(out))
    build_here(recipe, str(tmp_path / "twin"))
    assert files_below(out) == files_below(tmp_path / "twin") == whole
    assert not any(stage["problems"] for stage in twinset.verify(out)["stages"].values())
