"""``prefect flow-run retry`` of a run whose machine or process died: it resumes, and adopts what still runs."""

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server.conftest import kill_below


@pytest.mark.slow
def test_a_retried_parent_adopts_its_children(
    prefect: Any,
    start_worker: Any,
    api: Any,
    small_recipe: Path,
    reference: Path,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    """The parent dies while its shards are made elsewhere: nothing is handed out twice."""
    out = tmp_path / "out"
    main = start_worker("main")
    given = {"recipe": str(small_recipe), "out": str(out), "shards_a_run": 2}
    run = api.start_run("build-eqben/build-eqben", **given)

    def children() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api.runs_of("build-shards/cpu")
        return [child for child in found if child["parameters"]["out"] == str(out)]

    # No worker takes them yet: the parent dies when some of them are done, some at work and some still waiting.
    stages = [out / name / "_meta/stage.json" for name in ("eq-ag", "eq-gebc")]
    until(lambda: all(stage.exists() for stage in stages))
    shards = [json.loads(stage.read_bytes())["shards"] for stage in stages]
    ranges = sum(-(-number // 2) for number in shards)
    until(lambda: len(children()) == ranges)
    start_worker("cpu", limit=2)
    until(lambda: any(out.glob("*/_meta/receipts/*")))
    assert kill_below(main) > 0
    assert len(list(out.glob("*/_meta/receipts/*"))) < sum(shards)
    until(lambda: "prefect.flow-run.Crashed" in api.events(run), pause=1)
    # A worker holds a dead run for some seconds more, and may end its retry too (Prefect 3.8): begin with a new worker.
    main.kill()
    main.wait()
    start_worker("main")
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: "prefect.flow-run.Completed" in api.events(run), pause=1)

    assert contents(out) == contents(reference)
    by_range = defaultdict(list)
    for child in children():
        times = [datetime.fromisoformat(child[key].replace("Z", "+00:00")) for key in ("start_time", "end_time")]
        by_range[tuple(child["parameters"][key] for key in ("subset", "first", "last"))].append(times)
    assert len(by_range) == ranges
    for times in by_range.values():
        earlier_and_later = zip(sorted(times), sorted(times)[1:], strict=False)
        assert all(earlier[1] <= later[0] for earlier, later in earlier_and_later), by_range
