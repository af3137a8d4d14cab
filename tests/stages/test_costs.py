"""What a build will take, told by the shards of another; and reading, which leaves no thread."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.finish import disagreeing

SCENES = [(video, grey, grey + 9) for grey, video in enumerate("abcdef")]


def recipe(greys: Any, count: int | None = None) -> Recipe:
    return recipe_of({"eq-x": {**greys("eq-x", SCENES, 1), "count": count}})


def estimate(recipe: Recipe, out: Path | None = None, like: Path | None = None) -> Any:
    return twinset.plan(recipe, out, like=like)["subsets"]["eq-x"]["estimate"]


@pytest.mark.usefixtures("no_cards")
def test_the_first_shards_of_a_build_or_of_a_trial_tell_what_all_of_it_takes(greys: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert estimate(recipe(greys, 3), out) is None  # nothing tells it
    build_here(recipe(greys, 3), str(out), 1)
    for number, log in enumerate(sorted((out / "eq-x/_meta/log").glob("0*.json"))):
        tally = {"answers": 2, "prompt_tokens": 10, "completion_tokens": 4}
        log.write_text(json.dumps({"gpu": False, "seconds": 2.0 if number else 9.0, **tally}))
    trial = estimate(recipe(greys), like=out)
    found = estimate(recipe(greys, 6), out)
    assert found == trial and (found["candidates"], found["shards"], found["samples"], found["gpu"]) == (6, 6, 6, False)
    assert found["seconds"] == 12 and found["from"] == f"3 candidates in {out}" and found["cost"] is None
    assert (found["answers"], found["prompt_tokens"], found["completion_tokens"]) == (12, 60, 24)


READS_ALL = """
import os, sys, time
from twinset.shards.records import read_planned
from twinset.shards.rows import read_rows
from twinset.shards.storage.store import Store
from twinset.stages.finish import summarise, write_index
from twinset.stages.job import state_of
import pyarrow as pa, pyarrow.parquet as pq

# Writing, which starts none of the threads in question, loads what else there is.
pq.write_table(pa.table({"one": [1]}), sys.argv[1] + "/warm.parquet")
store, before = Store(sys.argv[1]), len(os.listdir("/proc/self/task"))
assert read_planned(store, "eq-x")
with store.open("eq-x/_meta/rows/00000.parquet") as stream:
    assert read_rows(stream)
state = state_of(store, "eq-x")
write_index(store, state, "pair")
assert summarise(store, state).kept == 2
for _ in range(50):  # a joined thread is still listed for a moment
    if len(os.listdir("/proc/self/task")) == before:
        sys.exit()
    time.sleep(0.1)
sys.exit("a thread is left")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_nothing_that_reads_parquet_leaves_a_thread(tmp_path: Path, planned_build: Any) -> None:
    """pyarrow's threads abort some interpreters at exit."""
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", [("a", 1, 2), ("b", 3, 4)], 1)
    build.make_all()
    disagreeing(build.store, build.state())  # the ledger is read too
    subprocess.run([sys.executable, "-c", READS_ALL, build.store.root], cwd=Path(__file__).parents[2], check=True)
