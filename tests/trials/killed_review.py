"""The review page, killed while people answer."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from tests.trials.killed_kinds import ENDS_IN
from tests.trials.killed_processes import Process, until
from tests.trials.kills import Found, digests

PAIRS = 40
SCREENED = """
name: screened
subsets:
  mine:
    source: {{kind: image-pairs, annotations: {folder}/pairs.json, media: {folder}/images, licence: CC0-1.0}}
    shard_size: 10
    screening: true
"""


class Review:
    """The review page, killed while somebody answers and somebody else waits."""

    def __init__(self, place: Path, variables: dict[str, str]) -> None:
        self._place, self._variables, self._tried = place, variables, 0
        self._page: Process | None = None

    def prepare(self) -> None:
        """Pairs of small pictures that people screen, planned up to where people are asked."""
        images, noise = self._place / "images", np.random.default_rng(0)
        images.mkdir(parents=True)
        pairs = []
        for n in range(PAIRS):
            for side in (0, 1):
                Image.fromarray(noise.integers(0, 256, (16, 24, 3), np.uint8)).save(images / f"{n}-{side}.png")
            words = {f"caption{side}": f"{where} {n}" for side, where in enumerate(("left", "right"))}
            pairs.append({"id": n, "image0": f"{n}-0.png", "image1": f"{n}-1.png", **words})
        (self._place / "pairs.json").write_text(json.dumps(pairs))
        (self._place / "screened.yaml").write_text(SCREENED.format(folder=self._place))
        self._build(self._place / "asked", 3)
        plan = pq.read_table(self._place / "asked/_stages/mine-decisions/_meta/plan/00000.parquet")
        self._numbers = {row["key"]: _number(row) for row in plan.select(["key", "texts"]).to_pylist()}
        began = time.monotonic()
        self._open(self._place / "asked")
        self._starting = time.monotonic() - began
        self.end()

    def trial(self, chance: Random, most: int, found: Found) -> None:
        """Answer all pairs while the page is killed again and again, and build what was decided."""
        self._tried += 1
        out, wrong = self._place / str(self._tried) / "out", found.good
        shutil.copytree(self._place / "asked", out)
        saved, sent, leased, killed = set[str](), set[str](), set[str](), found.kills
        deadline = time.monotonic() + ENDS_IN
        while len(saved) < PAIRS:
            if time.monotonic() > deadline:
                found.fell(f"{out}: {PAIRS - len(saved)} of {PAIRS} pairs cannot be answered")
                return
            if found.kills - killed < most and chance.random() < 0.1:
                page = self._start(out)
                page.wait(chance.uniform(0, self._starting))
                found.kills += page.kill(whole=True)
                page.end()
            link, other = self._open(out)
            page = self._page
            assert page is not None
            held = self._answers(out)
            if not saved <= set(held) <= saved | sent or len(held) != len(set(held)):
                found.fell(f"{out}: {len(saved)} answers were saved, {len(held)} are there ({len(set(held))} tasks)")
            if taken := (leased - set(held)) & {_number(task["statement"]) for task in _tasks(other)}:
                found.fell(f"{out}: {len(taken)} tasks that one annotator has were given to another")
            saved |= set(held)
            timer = threading.Timer(chance.expovariate(2), page.kill, [True])
            if found.kills - killed < most:
                timer.start()
            with contextlib.suppress(httpx.TransportError):
                _answer_all(link, saved, sent, leased)
                _answer_all(other, saved, sent, set())  # what is kept for the other one
            timer.cancel()
            if timer.ident is not None:
                timer.join()
            found.kills += page.code == -9
            self.end()
        self._build(out, 0)
        whole = out.with_name("whole")
        (whole / "_review").mkdir(parents=True)
        with (
            closing(sqlite3.connect(out / "_review/answers.sqlite")) as answers,
            closing(sqlite3.connect(whole / "_review/answers.sqlite")) as there,
        ):
            answers.backup(there)
        self._build(whole, 0)
        found.compare(digests(whole, ["_review"]), digests(out, ["_review"]))
        found.remain(*_beside(out / "_review"))
        if wrong == found.good and found.good:
            shutil.rmtree(out.parent)

    def end(self) -> None:
        """End the page."""
        if self._page is not None:
            self._page.kill(whole=True)
            self._page.end()

    def _build(self, out: Path, code: int) -> None:
        told = ["build", str(self._place / "screened.yaml"), "--out", str(out)]
        process = Process(told, self._variables, self._place / "said.txt")
        if process.wait(ENDS_IN) != code:
            raise SystemExit(f"{out}, exit code {process.code}: {process.last_words()}")

    def _start(self, out: Path) -> Process:
        log = self._place / "page.txt"
        log.unlink(missing_ok=True)
        self._page = Process(["review", str(out), "--annotators", "ann,bob"], self._variables, log)
        return self._page

    def _open(self, out: Path) -> list[str]:
        """The links of both annotators, of a page that was started for them."""
        page = self._start(out)

        def links() -> list[str]:
            said = page.log.read_text() if page.log.exists() else ""
            if page.poll() is not None:
                raise SystemExit(f"the page ended, exit code {page.code}: {page.last_words()}")
            found = [re.search(rf"^{name}: (http\S+)", said, re.MULTILINE) for name in ("ann", "bob")]
            return [one[1] for one in found if one] if all(found) else []

        return until(links, ENDS_IN, "the links of the page")  # type: ignore[return-value]

    def _answers(self, out: Path) -> list[str]:
        """The number of the pair of each answer."""
        with closing(sqlite3.connect(out / "_review/answers.sqlite")) as answers:
            return [self._numbers[key] for (key,) in answers.execute("SELECT task FROM answers")]


@contextlib.contextmanager
def _entered(link: str) -> Iterator[tuple[httpx.Client, str, dict[str, str]]]:
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        base = str(client.get(link).url.copy_with(query=None)).rstrip("/")
        csrf = re.search(r'name="csrf" content="([^"]+)"', client.get(f"{base}/").text)
        assert csrf is not None
        yield client, base, {"x-csrf-token": csrf[1]}


def _tasks(link: str) -> list[dict[str, Any]]:
    with _entered(link) as (client, base, _):
        found: list[dict[str, Any]] = client.get(f"{base}/api/next", params={"after": 3}).json()
        return found


def _number(task: dict[str, Any]) -> str:
    return str(task["texts"][0].split()[-1])


def _answer_all(link: str, saved: set[str], sent: set[str], leased: set[str]) -> None:
    """Answer until nothing is left or the page is gone; every seventh pair is dropped.

    saved, sent: numbers of pairs whose answer was acknowledged, or sent; leased: that were shown.
    """
    with _entered(link) as (client, base, headers):
        while tasks := client.get(f"{base}/api/next", params={"after": 6}).json():
            leased.clear()
            leased.update(_number(task["statement"]) for task in tasks)
            for task in tasks:
                number = _number(task["statement"])
                taken = {"option": "o0"} if int(number) % 7 else {"option": "x0", "reason": "fits-both"}
                sent.add(number)
                given = {"id": task["id"], "seconds": 1.0, **taken}
                while (done := client.post(f"{base}/api/answer", json=given, headers=headers)).is_error:
                    assert done.status_code == 429, done.text
                    time.sleep(float(done.headers.get("retry-after", 1)))
                saved.add(number)


def _beside(folder: Path) -> tuple[int, str]:
    """How many unfinished files lie beside the answers, and their names; SQLite's own belong to it."""
    left = [one for one in folder.rglob("*") if one.name.startswith(".") or one.name.endswith("-journal")]
    return len(left), f"{folder}: {', '.join(map(str, left))}"
