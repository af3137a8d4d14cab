"""``prefect flow-run retry`` of a run whose machine or process died: it resumes, and adopts what still runs."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import contents
from tests.end_to_end.server.conftest import Cluster, kill_below
from tests.waiting import wait_until


@pytest.mark.slow
def test_a_retried_parent_adopts_its_children(
    cluster: Cluster, small_recipe: Path, reference: Path, tmp_path: Path
) -> None:
    """The parent dies while its shards are made elsewhere: nothing is handed out twice."""
    out, api = tmp_path / "out", cluster.api
    main = cluster.start("main")
    parameters = {"recipe": str(small_recipe), "out": str(out), "shards_a_run": 2}
    run = api.start_run("build-eqben/build-eqben", **parameters)

    def ranges() -> list[dict[str, Any]]:
        return [child for child in api.runs_of("build-shards/cpu") if child["parameters"]["out"] == str(out)]

    # No worker takes them yet: the parent dies when some of them are done, some at work and some still waiting.
    stages = [out / name / "_meta/stage.json" for name in ("eq-ag", "eq-gebc")]
    wait_until(lambda: all(stage.exists() for stage in stages))
    shards = [json.loads(stage.read_bytes())["shards"] for stage in stages]
    handed_out = sum(-(-number // 2) for number in shards)
    wait_until(lambda: len(ranges()) == handed_out)
    cluster.start("cpu", limit=2)
    wait_until(lambda: any(out.glob("*/_meta/receipts/*")))
    assert kill_below(main) > 0
    assert len(list(out.glob("*/_meta/receipts/*"))) < sum(shards)
    wait_until(lambda: "prefect.flow-run.Crashed" in api.events(run), pause=1)
    # A worker holds a dead run for some seconds more, and may end its retry too (Prefect 3.8): begin with a new worker.
    main.kill()
    main.wait()
    cluster.start("main")
    cluster.retry(run)

    assert contents(out) == contents(reference)
    by_range = defaultdict(list)
    for child in ranges():
        by_range[tuple(child["parameters"][key] for key in ("subset", "first", "last"))].append(child)
    assert len(by_range) == handed_out
    for children in by_range.values():
        times = sorted((child["start_time"], child["end_time"]) for child in children)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(times)), by_range
