import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.evaluation.features.killed_run import BATCH, EXAMPLES, IMAGES
from tests.evaluation.features.killed_run import main as score
from tests.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[3]


def test_a_run_that_is_killed_goes_on_where_it_was_and_gives_the_same_scores(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    out, cache = str(tmp_path / "s.parquet"), str(tmp_path / "cache")
    command = [sys.executable, "-m", "tests.evaluation.features.killed_run", out, cache, str(counts), "0.5"]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: counts.exists() and len(counts.read_text().split()) >= 3, process)
        process.send_signal(signal.SIGKILL)
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == []
    before = [int(number) for number in counts.read_text().split()]
    score(out, cache, str(counts), "0")
    after = [int(number) for number in counts.read_text().split()][len(before) :]
    # The last pass before the kill was not kept; all that came before it is not encoded again.
    assert sum(after) == IMAGES - BATCH * (len(before) - 1)
    score(str(tmp_path / "whole.parquet"), str(tmp_path / "other"), str(counts), "0")
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet")) and len(pq.read_table(out)) == EXAMPLES
