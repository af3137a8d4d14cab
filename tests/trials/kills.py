"""Kill -9 at random times: ``python -m tests.trials.kills --kills 200 --seed N [--what build,flow,…] [--folder DIR]``.

Each command is run once without interruption and then killed, resumed by the same command, killed again and at last
left to its end; sha256 of all files but logs are compared. Services (server, worker, review page) are killed while
others use them. Prints a row a kind. Exit code 1 unless nothing was lost, doubled, different or left over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from tests.options import options

COLUMNS = ("kills", "lost", "doubled", "different", "left over", "seconds")
LEFT_OVER = ("_spool", "_building")  # parts of paths; as are names that begin with a dot
NOT_COMPARED = ("log",)  # folders of hosts and times


class Tally:
    """What kills of a kind did. counts: by `COLUMNS`; messages: a line for each fault."""

    def __init__(self) -> None:
        self.counts, self.messages = Counter[str](), list[str]()

    @property
    def good(self) -> bool:
        return not any(self.counts[column] for column in COLUMNS[1:-1])

    def add(self, column: str, names: Collection[object], where: object = "") -> None:
        self.counts[column] += len(names)
        if names:
            self.messages.append(f"{where} {column}: {', '.join(map(str, list(names)[:5]))}")

    def compare(self, whole: Mapping[str, str], here: Mapping[str, str]) -> None:
        """Count the differences of two folders (`digests`)."""
        more = sorted(here.keys() - whole.keys())
        self.add("lost", sorted(whole.keys() - here.keys()))
        self.add("left over", [path for path in more if is_left_over(path)])
        self.add("doubled", [path for path in more if not is_left_over(path)])
        self.add("different", sorted(path for path in whole.keys() & here.keys() if whole[path] != here[path]))

    def row(self, name: str) -> str:
        return f"{name:<18}" + "".join(f"{self.counts[column]:>11.0f}" for column in COLUMNS)


class Kind:
    """A command or a service that is killed. place: of its trials."""

    def __init__(self, place: Path, variables: dict[str, str]) -> None:
        self.place, self.variables, self._trials = place, variables, 0

    def next_out(self) -> Path:
        self._trials += 1
        out = self.place / str(self._trials) / "out"
        out.parent.mkdir(parents=True)
        return out

    def prepare(self) -> None:
        """What all trials need, and the run without interruption."""

    def trial(self, out: Path, chance: Random, most: int, tally: Tally) -> None:
        """Kill at least once, as often as ``most`` times, and count what came of it."""

    def end(self) -> None:
        """End what was started."""


def is_left_over(path: str) -> bool:
    return any(part in LEFT_OVER or part.startswith(".") for part in path.split("/"))


def digests(root: Path, ignored: Sequence[str] = ()) -> dict[str, str]:
    """sha256 of every file below a folder but logs, by relative path; of empty folders, with '/', an empty text.

    ignored: further parts of paths that are not compared.
    """
    files = {}
    for folder, below, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        if set(relative.parts) & {*NOT_COMPARED, *ignored}:
            continue
        if not below and not names:
            files[f"{relative.as_posix()}/"] = ""
        for name in set(names) - set(ignored):
            files[(relative / name).as_posix()] = _digest(Path(folder) / name)
    return files


def _digest(path: Path) -> str:
    if path.parent.parent.name == "scores":  # of a run of ``eval``, which also writes down how long it took
        return str(pq.read_table(path).to_pydict()) if path.suffix == ".parquet" else ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tried(kind: Kind, kills: int, chance: Random) -> Tally:
    from tests.trials.killed_processes import TookTooLong

    tally, began = Tally(), time.monotonic()
    try:
        kind.prepare()
        while tally.counts["kills"] < kills:
            out, good = kind.next_out(), tally.good
            kind.trial(out, chance, kills - tally.counts["kills"], tally)
            if good and tally.good:
                shutil.rmtree(out.parent)
    except TookTooLong as error:
        tally.add("lost", [error])
    finally:
        kind.end()
    tally.counts["seconds"] = round(time.monotonic() - began)
    return tally


def main() -> int:
    from tests.trials.killed_kinds import WEIGHTS, made_kinds

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it has it tidy up
    given = options(__doc__, kills=60, seed=0, what=",".join(WEIGHTS), folder="")
    names = given.what.split(",")
    if unknown := set(names) - set(WEIGHTS):
        sys.exit(f"{', '.join(sorted(unknown))}: choose from {', '.join(WEIGHTS)}")
    share = given.kills / sum(WEIGHTS[name] for name in names)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir=given.folder or None))
    total, tallies = Tally(), list[str]()
    try:
        with made_kinds(folder, names) as kinds:
            for name, kind in kinds:
                tally = tried(kind, max(1, round(WEIGHTS[name] * share)), Random(f"{given.seed}/{name}"))
                total.counts.update(tally.counts)
                tallies.append(tally.row(name))
                print(tallies[-1], *tally.messages, sep="\n    ", flush=True)
    finally:
        if total.good:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"the folders of what is wrong are in {folder}", file=sys.stderr)
    heading = f"{'killed':<18}" + "".join(f"{column:>11}" for column in COLUMNS)
    print(f"\nseed {given.seed}", heading, *tallies, total.row("all"), sep="\n")
    return 0 if total.good else 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
