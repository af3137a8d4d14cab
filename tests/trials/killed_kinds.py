"""What `tests.trials.kills` kills: the commands and services, on small subsets of the demo."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.trials.killed_processes import Process, environment, warm
from tests.trials.kills import Kind, Tally, digests

ENDS_IN = 300.0  # seconds in which a command that takes some comes to its end on a busy machine
AGAIN = 0.6  # how often a command that was killed is killed once more before it may end
EARLY = 0.15  # how often before its first file
RECIPE = """
name: killed
stages:
  small-negatives:
    source: {kind: replayed-negatives, captions: "miniature:small_world/negatives.csv"}
    shard_size: 2
  small-prompts:
    source: {kind: negative-prompts, negatives: small-negatives, suffix: ""}
    shard_size: 2
subsets:
  eq-gebc:
    source: {kind: gebc, annotations: "miniature:gebc/annotations.json", media: "miniature:gebc/videos"}
    filters: [{kind: motion-words}, {kind: equal-captions}]
    shard_size: 8
  trohn-text:
    source: {kind: text-pairs, negatives: small-prompts, images: "miniature:small_world/photos", licence: CC0-1.0}
    shard_size: 2
"""
#: How often each is killed of 200.
WEIGHTS = {
    **{"build": 30, "build-threads": 35, "build-processes": 25, "flow": 15, "server": 10, "worker": 6, "review": 24},
    **{"train-clip": 30, "export": 15, "eval": 10},
}


class Command(Kind):
    """A command with ``--out``. ignored: parts of paths that are not compared. once: it refuses a finished folder."""

    ends_with: tuple[int, ...] = (0, -9)  # its exit codes where it is killed

    def __init__(
        self,
        place: Path,
        arguments: Sequence[str],
        variables: dict[str, str],
        ignored: Sequence[str] = (),
        once: bool = False,
    ) -> None:
        super().__init__(place, variables)
        self._arguments, self._ignored, self._once = arguments, ignored, once

    def start(self, out: Path) -> Process:
        scratch = out.with_name("tmp")
        scratch.mkdir(parents=True, exist_ok=True)
        arguments = [word.replace("{out}", str(out)) for word in (*self._arguments, "--out", "{out}")]
        return Process(arguments, {**self.variables, "TMPDIR": str(scratch)}, out.with_name("log.txt"))

    def prepare(self) -> None:
        """The run without interruption, and one before it: nothing is drawn or compiled in the one that counts."""
        results = []
        for name in ("first", "whole"):
            out, began, self._first = self.place / name / "out", time.monotonic(), 0.0
            process = self.start(out)
            while process.wait(0.02) is None and time.monotonic() < began + ENDS_IN:
                if not self._first and out.exists() and any(out.rglob("*.*")):
                    self._first = time.monotonic() - began
            self.seconds = time.monotonic() - began
            if process.end() or process.code != 0:
                raise SystemExit(f"{name} run, exit code {process.code}: {process.last_words()}")
            warm(process.log)
            results.append(digests(out, self._ignored))
        first, self.whole = results
        differ = [name for name in first.keys() | self.whole.keys() if first.get(name) != self.whole.get(name)]
        if differ:
            raise SystemExit(f"two runs without interruption differ in {', '.join(sorted(differ))}")
        self._left = set(os.listdir(out.with_name("tmp")))

    def trial(self, out: Path, chance: Random, most: int, tally: Tally) -> None:
        """Kill it, perhaps several times, and let it end."""
        kills, killed = tally.counts["kills"], list[Process]()
        while True:
            process = self.start(out)
            killed.append(process)
            tally.counts["kills"] += self.interrupt(process, chance)
            if process.code not in self.ends_with and not self._refused(process, out):
                tally.add("lost", [f"exit code {process.code}: {process.last_words()}"], out)
                break
            if process.code != -9 or tally.counts["kills"] - kills >= most or chance.random() > AGAIN:
                break
        self.settle(out, killed, tally)

    def interrupt(self, process: Process, chance: Random) -> bool:
        early = chance.random() < EARLY
        seconds = chance.uniform(0, self._first) if early else chance.uniform(self._first, self.seconds)
        whole = chance.random() < 0.5
        return process.wait(seconds) is None and process.kill(whole)

    def settle(self, out: Path, killed: Sequence[Process], tally: Tally) -> None:
        """Let the command end in a folder where it was killed, and compare."""
        process = self.start(out)
        if process.wait(ENDS_IN) is None:
            tally.add("lost", [f"resumed, it does not end in {ENDS_IN:.0f} s: {process.last_words()}"], out)
            process.kill(whole=True)
        elif process.code != 0 and not self._refused(process, out):
            tally.add("lost", [f"resumed, exit code {process.code}: {process.last_words()}"], out)
        tally.add("left over", [pid for started in (*killed, process) for pid in started.end()], out)
        tally.compare(self.whole, digests(out, self._ignored) if out.exists() else {})
        tally.add("left over", set(os.listdir(out.with_name("tmp"))) - self._left, out)

    def _refused(self, process: Process, out: Path) -> bool:
        return self._once and process.code == 2 and digests(out) == self.whole


@contextmanager
def made_kinds(folder: Path, names: Sequence[str]) -> Iterator[Iterator[tuple[str, Kind]]]:
    """The kinds of some names, each made when it is asked for; what they share is ended after the last."""
    from tests.end_to_end.server.conftest import PrefectServer
    from tests.trials.killed_prefect import ServedFlow, Worker
    from tests.trials.killed_review import Review

    variables = environment(folder / "cache")
    recipe = folder / "killed.yaml"
    recipe.write_text(RECIPE)
    (folder / "prefect").mkdir()
    prefect = PrefectServer(folder / "prefect", variables)  # started when it is first needed
    small = ("build", str(recipe), "--only", "trohn-text", "--workers")

    def built() -> Path:
        out = folder / "built/out"
        if not out.exists():
            out.parent.mkdir()
            Process(["build", str(recipe), "--out", str(out)], variables, folder / "built/log.txt").must_end(ENDS_IN)
        return out

    def command(name: str, *arguments: str, ignored: Sequence[str] = (), once: bool = False) -> Command:
        return Command(folder / name, arguments, variables, ignored, once)

    def clip() -> Command:
        from tests.tiny_encoders import open_clip_config  # which imports torch

        steps = ("--batch", "4", "--steps", "30", "--checkpoint-every", "4", "--lr", "1e-3", "--threads", "1")
        model = ("--model", str(open_clip_config(folder / "clip")), "--weights", "random")
        return command("train-clip", "train", "clip", *model, "--data", f"{built()}:eq-gebc", *steps)

    def evaluation() -> Command:
        from tests.tiny_encoders import open_clip_config

        given = ("--benchmark", f"twinset={built()}", "--only", "eq-gebc", "--threads", "1", "--cache", "{out}/cache")
        model = ("--model", f"random:{open_clip_config(folder / 'scored')}")
        timed = ("cache", "report.html", "results.json", "cost.csv", "cost.tex")  # they say how long it took
        return command("eval", "eval", "run", *given, *model, ignored=timed)

    makers: dict[str, Callable[[], Kind]] = {
        "build": lambda: command("build", *small, "1"),
        "build-threads": lambda: command("build-threads", "build", str(recipe), "--workers", "2"),
        "build-processes": lambda: command("build-processes", *small, "2", "--runner", "processes"),
        "flow": lambda: Command(folder / "flow", (*small, "2"), prefect.started()),
        "server": lambda: ServedFlow(folder / "server", (*small, "2"), prefect),
        "worker": lambda: Worker(folder / "worker", (*small, "2"), prefect),
        "review": lambda: Review(folder / "review", variables),
        "train-clip": clip,
        "export": lambda: command(
            "export", "export", str(built()), "--only", "eq-gebc", "--format", "eqben", once=True
        ),
        "eval": evaluation,
    }
    try:
        yield ((name, makers[name]()) for name in names)
    finally:
        prefect.end()
