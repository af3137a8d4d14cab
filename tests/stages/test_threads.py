"""pyarrow's threads abort some interpreters at exit: nothing here that reads Parquet may start one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from twinset.shards.storage.store import Store
from twinset.stages.finalise import disagreeing

READS_ALL = """
import os, sys, time
from twinset.contracts.plan import read_slice
from twinset.shards.records import read_planned
from twinset.shards.rows import read_rows
from twinset.shards.storage.store import Store
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.index import summarise, write_index
from twinset.stages.status import state_of
from tests.stages.drawn_sources import Scene

def threads():
    return len(os.listdir("/proc/self/task"))

store = Store(sys.argv[1])
# Writing, which starts none of the threads in question, loads what else there is.
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"one": [1]}), sys.argv[1] + "/warm.parquet")
before = threads()
def unchanged(what):
    for _ in range(50):  # a joined thread is still listed for a moment
        if threads() == before:
            return
        time.sleep(0.1)
    raise AssertionError(what)

assert read_planned(store, "eq-x")
unchanged("read_planned")
with store.open("eq-x/_meta/plan/00000.parquet") as stream:
    assert read_slice(stream, 0, Scene)
unchanged("read_slice")
with store.open("eq-x/_meta/rows/00000.parquet") as stream:
    assert read_rows(stream)
unchanged("read_rows")
state = state_of(store, "eq-x")
assert len(state.done) == 2
unchanged("state_of")
write_index(store, state, "pair")
unchanged("write_index")
drop_duplicates(store, {"eq-x": state})
unchanged("drop_duplicates")
assert summarise(store, state).kept == 2
unchanged("summarise")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_nothing_that_reads_parquet_leaves_a_thread(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", [("a", 1, 2), ("b", 3, 4)], 1)
    build.make_all()
    disagreeing(build.store, build.state())  # the ledger is read too
    done = subprocess.run(
        [sys.executable, "-c", READS_ALL, build.store.root],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
