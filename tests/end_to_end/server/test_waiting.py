"""A deployed build that waits for people: killed around, answered on the page, retried."""

import json
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.end_to_end.conftest import BIN
from tests.end_to_end.server.conftest import PrefectServer, kill_group

PAIRS = 200
RECIPE = """
name: screened
subsets:
  mine:
    source: {{kind: image-pairs, annotations: {folder}/pairs.json, media: {folder}/images, licence: CC0-1.0}}
    shard_size: 50
    screening: true
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of 200 pairs of small pictures that people screen."""
    images, noise = tmp_path / "images", np.random.default_rng(0)
    images.mkdir()
    for name in (f"{n}-{side}.png" for n in range(PAIRS) for side in (0, 1)):
        Image.fromarray(noise.integers(0, 256, (16, 24, 3), np.uint8)).save(images / name)
    pairs = [
        {"id": n, "image0": f"{n}-0.png", "image1": f"{n}-1.png", "caption0": f"left {n}", "caption1": f"right {n}"}
        for n in range(PAIRS)
    ]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    path = tmp_path / "screened.yaml"
    path.write_text(RECIPE.format(folder=tmp_path))
    return path


Page = Callable[[], tuple["subprocess.Popen[bytes]", str]]


@pytest.fixture
def start_page(server: dict[str, str], tmp_path: Path, until: Any) -> Iterator[Page]:
    """Start ``twinset review`` of the build; its process and the link of its annotator."""
    pages: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[subprocess.Popen[bytes], str]:
        log = tmp_path / f"page{len(pages)}.log"
        with log.open("ab") as stream:
            command = [str(BIN / "twinset"), "review", str(tmp_path / "out"), "--annotators", "ann"]
            pages.append(subprocess.Popen(command, env=server, stdout=stream, stderr=stream, start_new_session=True))
        link = until(lambda: re.search(r"^ann: (http\S+)$", log.read_text(), re.MULTILINE))
        return pages[-1], link[1]

    yield start
    for page in pages:
        if page.poll() is None:
            kill_group(page)


def answer_all(link: str) -> int:
    """Answer as an annotator until nothing is left: every seventh pair is dropped; returns how many were answered."""
    answered = 0
    with httpx.Client(follow_redirects=True, timeout=300) as client:
        base = str(client.get(link).url.copy_with(query=None)).rstrip("/")
        shell = client.get(f"{base}/")  # the link has set a cookie
        csrf = re.search(r'name="csrf" content="([^"]+)"', shell.text)
        assert csrf is not None, shell.text
        headers = {"x-csrf-token": csrf[1]}
        while tasks := client.get(f"{base}/api/next", params={"after": 20}).json():
            for task in tasks:
                number = int(task["statement"]["texts"][0].split()[-1])
                taken = {"option": "o0"} if number % 7 else {"option": "x0", "reason": "fits-both"}
                given = {"id": task["id"], "seconds": 1.0, **taken}
                while (done := client.post(f"{base}/api/answer", json=given, headers=headers)).is_error:
                    assert done.status_code == 429, done.text
                    time.sleep(float(done.headers.get("retry-after", 1)))
                answered += 1
    return answered


@pytest.mark.slow
def test_a_build_that_waits_outlives_server_worker_and_page(
    prefect: Any,
    prefect_server: PrefectServer,
    start_worker: Any,
    start_page: Page,
    api: Any,
    recipe: Path,
    twinset: Any,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    worker = start_worker("main")
    run = api.start_run("build-eqben/local", recipe=str(recipe), out=str(out))
    until(lambda: api.state(run) in ("FAILED", "CRASHED", "COMPLETED"))
    assert api.state(run) == "FAILED", (tmp_path / "main.log").read_text()[-3000:]
    assert "mine-decisions: 200 of 200 decisions are missing" in (tmp_path / "main.log").read_text()
    page, _ = start_page()

    for process in (page, worker):
        kill_group(process)
    prefect_server.kill()
    prefect_server.start()
    start_worker("main")
    _, link = start_page()
    assert answer_all(link) == PAIRS
    until(lambda: "mine-decisions: all decisions are in" in (tmp_path / "page1.log").read_text())
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until(lambda: api.state(run) in ("CRASHED", "COMPLETED"))
    assert api.state(run) == "COMPLETED", (tmp_path / "main.log").read_text()[-3000:]

    whole = tmp_path / "whole"
    (whole / "_review").mkdir(parents=True)
    with (
        closing(sqlite3.connect(out / "_review/answers.sqlite")) as answers,
        closing(sqlite3.connect(whole / "_review/answers.sqlite")) as there,
    ):
        answers.backup(there)
    unbroken = twinset("build", recipe, "--out", whole)
    assert unbroken.returncode == 0, unbroken.stderr
    resumed, expected = (
        {name: content for name, content in contents(root).items() if not name.startswith("_review/")}
        for root in (out, whole)
    )
    assert resumed == expected
    counts = json.loads(twinset("status", whole, "--json").stdout)["subsets"]["mine"]
    assert (counts["kept"], counts["rejected"]) == (PAIRS - 29, {"screened-out": 29})
