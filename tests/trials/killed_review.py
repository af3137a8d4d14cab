"""The review page, killed while somebody answers and somebody else waits."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from random import Random

import httpx
import pyarrow.parquet as pq

from tests.end_to_end.server import screened
from tests.trials.killed_kinds import ENDS_IN
from tests.trials.killed_processes import Process, until
from tests.trials.kills import Kind, Tally, digests

PAIRS = 40


class Review(Kind):
    _page: Process | None = None

    def prepare(self) -> None:
        """Pairs that people screen, planned up to where people are asked."""
        self._recipe = screened.write_screened(self.place, PAIRS)
        self._build(self.place / "asked", 3)
        plan = pq.read_table(self.place / "asked/_stages/pairs-decisions/_meta/plan/00000.parquet")
        self._numbers = {row["key"]: screened.number_of(row) for row in plan.select(["key", "texts"]).to_pylist()}
        began = time.monotonic()
        self._open(self.place / "asked")
        self._starting = time.monotonic() - began
        self.end()

    def trial(self, out: Path, chance: Random, most: int, tally: Tally) -> None:
        """Answer all pairs while the page is killed again and again, and build what was decided."""
        shutil.copytree(self.place / "asked", out)
        saved, sent, leased, ends = set[str](), set[str](), set[str](), tally.counts["kills"] + most
        deadline = time.monotonic() + ENDS_IN
        while len(saved) < PAIRS:
            if time.monotonic() > deadline:
                tally.add("lost", sorted(self._numbers.values() - saved), out)
                return
            if tally.counts["kills"] < ends and chance.random() < 0.1:
                page = self._start(out)
                page.wait(chance.uniform(0, self._starting))
                tally.counts["kills"] += page.kill(whole=True)
                page.end()
            page, link, second = self._open(out)
            held = self._answers(out)
            tally.add("lost", saved - {*held}, out)
            tally.add(
                "doubled", [*({*held} - saved - sent), *(number for number in held if held.count(number) > 1)], out
            )
            with screened.entered(second) as (client, base, _):
                shown = {screened.number_of(task["statement"]) for task in screened.next_tasks(client, base)}
            tally.add("doubled", shown & (leased - {*held}), f"{out}, shown to two annotators,")
            saved |= {*held}
            timer = threading.Timer(chance.expovariate(2), page.kill, [True])
            if tally.counts["kills"] < ends:
                timer.start()
            with contextlib.suppress(httpx.TransportError):
                screened.answer_all(link, saved, sent, leased)
                screened.answer_all(second, saved, sent, set())  # what is kept for the second annotator
            timer.cancel()
            if timer.ident is not None:
                timer.join()
            tally.counts["kills"] += page.code == -9
            self.end()
        self._build(out, 0)
        whole = out.with_name("whole")
        screened.copy_answers(out, whole)
        self._build(whole, 0)
        tally.compare(digests(whole, ["_review"]), digests(out, ["_review"]))
        beside = [path for path in (out / "_review").rglob("*") if path.name.startswith(".")]
        tally.add("left over", [*beside, *(out / "_review").rglob("*-journal")])

    def end(self) -> None:
        if self._page is not None:
            self._page.kill(whole=True)
            self._page.end()

    def _build(self, out: Path, code: int) -> None:
        arguments = ["build", str(self._recipe), "--out", str(out)]
        Process(arguments, self.variables, self.place / "log.txt").must_end(ENDS_IN, code)

    def _start(self, out: Path) -> Process:
        log = self.place / "page.txt"
        log.unlink(missing_ok=True)
        self._page = Process(["review", str(out), "--annotators", "ann,bob"], self.variables, log)
        return self._page

    def _open(self, out: Path) -> tuple[Process, str, str]:
        page = self._start(out)

        def opened() -> bool:
            if page.poll() is not None:
                raise SystemExit(f"the page ended, exit code {page.code}: {page.last_words()}")
            return all(screened.link_of(name, page.log) for name in ("ann", "bob"))

        until(opened, ENDS_IN, "the links of the page")
        return page, screened.link_of("ann", page.log), screened.link_of("bob", page.log)

    def _answers(self, out: Path) -> list[str]:
        """The number of the pair of each answer."""
        with closing(sqlite3.connect(out / screened.ANSWERS)) as answers:
            return [self._numbers[key] for (key,) in answers.execute("SELECT task FROM answers")]
