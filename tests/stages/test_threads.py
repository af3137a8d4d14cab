"""pyarrow's threads abort some interpreters at exit: nothing here that reads Parquet may start one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

READS_ALL = """
import os, sys, time
from manifests.plan import read_slice
from generators.video.frame_pairs import FramePairCandidate
from stages.finalise import drop_duplicates
from stages.index import write_index
from stages.status import progress
from shards.records import read_planned, read_stage
from shards.rows import read_rows
from cards.pair_statistics import statistics
from shards.storage.store import Store

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

stage, planned = read_stage(store, "eq-ag"), read_planned(store, "eq-ag")
unchanged("read_planned")
with store.open("eq-ag/_meta/plan/00000.parquet") as stream:
    assert read_slice(stream, 0, FramePairCandidate)
unchanged("read_slice")
with store.open("eq-ag/_meta/rows/00000.parquet") as stream:
    assert read_rows(stream)
unchanged("read_rows")
state = progress(store, stage, planned)
drop_duplicates(store, {"eq-ag": state})
unchanged("drop_duplicates")
write_index(store, "eq-ag")
unchanged("write_index")
assert statistics(store, "eq-ag").distinct_images
unchanged("statistics")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc, which Linux has")
def test_nothing_that_reads_parquet_leaves_a_thread(small_dataset: Any) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", READS_ALL, str(small_dataset.root)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
