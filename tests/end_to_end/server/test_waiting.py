"""A deployed build that waits for people: killed around, answered on the page, retried."""

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import BIN, contents, counts_of, logged
from tests.end_to_end.server import screened
from tests.end_to_end.server.conftest import Cluster, kill_group
from tests.waiting import wait_until

PAIRS = 200


@pytest.mark.slow
def test_a_build_that_waits_outlives_server_and_worker(
    cluster: Cluster, server: dict[str, str], twinset: Any, tmp_path: Path
) -> None:
    """`tests.trials.killed_review` kills the page."""
    out, recipe, log = tmp_path / "out", screened.write_screened(tmp_path, PAIRS), tmp_path / "page.log"
    worker = cluster.start("main")
    run = cluster.api.start_run("build-eqben/local", recipe=str(recipe), out=str(out))
    assert cluster.ended(run) == "FAILED", cluster.log()[-3000:]
    assert "pairs-decisions: 200 of 200 decisions are missing" in cluster.log()

    kill_group(worker)
    cluster.server.kill()
    cluster.server.start()
    cluster.start("main")
    command = [str(BIN / "twinset"), "review", str(out), "--annotators", "ann"]
    page = logged(command, log, server, start_new_session=True)
    try:
        link = wait_until(lambda: screened.link_of("ann", log), page)
        saved = set[str]()
        screened.answer_all(link, saved, set(), set())
        assert len(saved) == PAIRS
        wait_until(lambda: "pairs-decisions: all decisions are in" in log.read_text(), page)
    finally:
        kill_group(page)
    cluster.retry(run)

    whole = tmp_path / "whole"
    screened.copy_answers(out, whole)
    unbroken = twinset("build", recipe, "--out", whole)
    assert unbroken.returncode == 0, unbroken.stderr
    resumed, expected = (
        {name: content for name, content in contents(root).items() if not name.startswith("_review/")}
        for root in (out, whole)
    )
    assert resumed == expected
    counts = counts_of(twinset("status", whole, "--json"))["pairs"]
    assert (counts["kept"], counts["rejected"]) == (PAIRS - 29, {"screened-out": 29})
