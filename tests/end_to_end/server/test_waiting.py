"""A deployed build that waits for people: killed around, answered on the page, retried."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import BIN, contents, logged
from tests.end_to_end.server import screened
from tests.end_to_end.server.conftest import Cluster, kill_group
from tests.waiting import wait_until

PAIRS = 200
Page = Callable[[], tuple["subprocess.Popen[bytes]", str]]


@pytest.fixture
def start_page(cluster: Cluster, server: dict[str, str], tmp_path: Path) -> Iterator[Page]:
    """Start ``twinset review`` of the build; its process and the link of its annotator."""
    pages: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[subprocess.Popen[bytes], str]:
        log = tmp_path / f"page{len(pages)}.log"
        command = [str(BIN / "twinset"), "review", str(tmp_path / "out"), "--annotators", "ann"]
        pages.append(logged(command, log, server, start_new_session=True))
        return pages[-1], wait_until(lambda: screened.link_of("ann", log))

    yield start
    for page in pages:
        if page.poll() is None:
            kill_group(page)


@pytest.mark.slow
def test_a_build_that_waits_outlives_server_worker_and_page(
    cluster: Cluster, start_page: Page, twinset: Any, tmp_path: Path
) -> None:
    out, recipe = tmp_path / "out", screened.write_screened(tmp_path, PAIRS)
    worker = cluster.start("main")
    run = cluster.api.start_run("build-eqben/local", recipe=str(recipe), out=str(out))
    assert cluster.ended(run) == "FAILED", cluster.log()[-3000:]
    assert "pairs-decisions: 200 of 200 decisions are missing" in cluster.log()
    page, _ = start_page()

    for process in (page, worker):
        kill_group(process)
    cluster.server.kill()
    cluster.server.start()
    cluster.start("main")
    _, link = start_page()
    saved = set[str]()
    screened.answer_all(link, saved, set(), set())
    assert len(saved) == PAIRS
    wait_until(lambda: "pairs-decisions: all decisions are in" in (tmp_path / "page1.log").read_text())
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
    counts = json.loads(twinset("status", whole, "--json").stdout)["subsets"]["pairs"]
    assert (counts["kept"], counts["rejected"]) == (PAIRS - 29, {"screened-out": 29})
