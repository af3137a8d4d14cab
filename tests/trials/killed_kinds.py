"""What `tests.trials.kills` kills: the commands and services, on small subsets of the demo."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.trials.killed_processes import Process, warm
from tests.trials.kills import AGAIN, EARLY, Found, Kind, digests

ENDS_IN = 300.0  # seconds in which a command that takes some comes to its end on a busy machine
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
    "build": 30,
    "build-threads": 35,
    "build-processes": 25,
    "flow": 15,
    "server": 10,
    "worker": 6,
    "review": 24,
    "train-clip": 20,
    "train-fusion": 10,
    "export": 15,
    "eval": 10,
}


class Command:
    """A command that writes below a folder.

    Args:
        place: of its trials.
        arguments: what it is, of the folder that it writes.
        ignored: parts of paths below the folder that are not compared.
        once: it refuses a folder that it has finished.
    """

    def __init__(
        self,
        place: Path,
        arguments: Callable[[Path], Sequence[str]],
        variables: dict[str, str],
        ignored: Sequence[str] = (),
        once: bool = False,
    ) -> None:
        self._once = once
        self.place, self._arguments, self._variables, self._ignored = place, arguments, variables, ignored
        self._tried = 0

    def start(self, out: Path) -> Process:
        """Start it, with temporary files beside its folder."""
        scratch = self._scratch(out)
        scratch.mkdir(parents=True, exist_ok=True)
        own = {**self._variables, "TMPDIR": str(scratch)}
        return Process(list(self._arguments(out)), own, out.with_name("said.txt"))

    def prepare(self) -> None:
        """The run without interruption, and one before it: nothing is drawn or compiled in the one that counts."""
        import time

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
        first, self.whole = (digests(self.place / name / "out", self._ignored) for name in ("first", "whole"))
        differ = [name for name in first.keys() | self.whole.keys() if first.get(name) != self.whole.get(name)]
        if differ:
            raise SystemExit(f"two runs without interruption differ in {', '.join(sorted(differ))}")
        self._left = set(os.listdir(self._scratch(self.place / "whole" / "out")))

    def trial(self, chance: Random, most: int, found: Found) -> None:
        """Kill the command, perhaps several times, and let it end."""
        self._tried += 1
        out, before, killed = self.place / str(self._tried) / "out", found.kills, list[Process]()
        out.parent.mkdir(parents=True)
        while True:
            early = chance.random() < EARLY
            seconds = chance.uniform(0, self._first) if early else chance.uniform(self._first, self.seconds)
            process = self.start(out)
            killed.append(process)
            whole = chance.random() < 0.5
            if process.wait(seconds) is None and process.kill(whole):
                found.kills += 1
            if process.code not in (0, -9) and not self._refused(process, out):
                found.fell(f"{out}: resumed, exit code {process.code}: {process.last_words()}")
                break
            if process.code != -9 or found.kills - before >= most or chance.random() > AGAIN:
                break
        self.settle(out, killed, found)

    def settle(self, out: Path, killed: Sequence[Process], found: Found) -> None:
        """Let the command end in a folder where it was killed, and compare."""
        wrong = found.good
        process = self.start(out)
        if process.wait(ENDS_IN) is None:
            found.fell(f"{out}: resumed, it does not end in {ENDS_IN:.0f} s: {process.last_words()}")
            process.kill(whole=True)
        elif process.code != 0 and not self._refused(process, out):
            found.fell(f"{out}: resumed, exit code {process.code}: {process.last_words()}")
        living = sum(one.end() for one in (*killed, process))
        found.remain(living, f"{out}: {living} processes live on")
        found.compare(self.whole, digests(out, self._ignored) if out.exists() else {})
        files = set(os.listdir(self._scratch(out))) - self._left
        found.remain(len(files), f"{out}: temporary files are left: {', '.join(sorted(files))}")
        if wrong == found.good and found.good:
            shutil.rmtree(out.parent)

    def end(self) -> None:
        """Nothing runs on."""

    def _refused(self, process: Process, out: Path) -> bool:
        return self._once and process.code == 2 and digests(out) == self.whole

    @staticmethod
    def _scratch(out: Path) -> Path:
        return out.with_name("tmp")


@contextmanager
def made_kinds(folder: Path, names: Sequence[str]) -> Iterator[Iterator[tuple[str, Kind]]]:
    """The kinds of some names, each made when it is asked for; what they share is ended after the last."""
    from tests.trials.killed_prefect import Server, ServerOfPrefect, Worker
    from tests.trials.killed_review import Review

    variables = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    checkout = Path(__file__).parents[2]
    variables |= {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "NO_COLOR": "1",
        "TWINSET_CACHE": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(str(checkout / one) for one in ("src", "demo", ".")),
    }
    recipe = folder / "killed.yaml"
    recipe.write_text(RECIPE)
    prefect = ServerOfPrefect(folder / "prefect", variables)

    def built() -> Path:
        """The recipe's dataset, without interruption."""
        out = folder / "built/out"
        if not out.exists():
            out.parent.mkdir()
            process = Process(["build", str(recipe), "--out", str(out)], variables, folder / "built/said.txt")
            if process.wait(ENDS_IN) != 0:
                raise SystemExit(process.last_words())
        return out

    def build(name: str, *more: str) -> Command:
        return Command(folder / name, lambda out: ("build", str(recipe), "--out", str(out), *more), variables)

    def flow() -> Command:
        command = ("build", str(recipe), "--only", "trohn-text", "--workers", "2")
        return Command(folder / "flow", lambda out: (*command, "--out", str(out)), prefect.started())

    def clip() -> Command:
        from tests.tiny_encoders import open_clip_config

        config, data = open_clip_config(folder / "clip"), built()
        told = ("--batch", "4", "--steps", "30", "--checkpoint-every", "4", "--lr", "1e-3")
        command = ("train", "clip", "--model", str(config), "--weights", "random", "--data", f"{data}:eq-gebc", *told)
        command = (*command, "--threads", "1")
        return Command(folder / "train-clip", lambda out: (*command, "--out", str(out)), variables, ())

    def fusion() -> Command:
        from tests.tiny_encoders import save_transformers

        model = save_transformers(folder / "blip", "blip")
        told = ("--batch", "4", "--epochs", "1", "--checkpoint-every", "3", "--threads", "1")
        command = ("train", "fusion", "--model", f"blip-itm:{model}", "--data", f"{built()}:eq-gebc", *told)
        return Command(folder / "train-fusion", lambda out: (*command, "--out", str(out)), variables, ())

    def export() -> Command:
        command = ("export", str(built()), "--only", "eq-gebc", "--format", "eqben")
        return Command(folder / "export", lambda out: (*command, "--out", str(out)), variables, once=True)

    def evaluation() -> Command:
        from tests.tiny_encoders import open_clip_config

        config = open_clip_config(folder / "scored")
        command = ("eval", "run", "--benchmark", f"twinset={built()}", "--only", "eq-gebc", "--threads", "1")

        def told(out: Path) -> tuple[str, ...]:
            return (*command, "--model", f"random:{config}", "--cache", str(out / "cache"), "--out", str(out))

        # They say how long it took.
        timed = ("cache", "report.html", "results.json", "cost.csv", "cost.tex")
        return Command(folder / "eval", told, variables, timed)

    only = ("--only", "trohn-text")
    makers: dict[str, Callable[[], Kind]] = {
        "build": lambda: build("build", *only, "--workers", "1"),
        "build-threads": lambda: build("build-threads", "--workers", "2"),
        "build-processes": lambda: build(
            "build-processes", "--only", "trohn-text", "--workers", "2", "--runner", "processes"
        ),
        "flow": flow,
        "server": lambda: Server(flow(), prefect),
        "worker": lambda: Worker(folder / "worker", recipe, prefect, flow()),
        "review": lambda: Review(folder / "review", variables),
        "train-clip": clip,
        "train-fusion": fusion,
        "export": export,
        "eval": evaluation,
    }
    try:
        yield ((name, makers[name]()) for name in names)
    finally:
        prefect.end()
