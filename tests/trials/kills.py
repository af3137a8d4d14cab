"""Kill -9 at random times: ``python -m tests.trials.kills --kills 200 --seed N [--what build,flow,…] [--folder DIR]``.

Each command is run once without interruption and then killed, resumed by the same command, killed again and at last
left to its end; sha256 of all files but logs are compared. Services (server, worker, review page) are killed while
others use them. Prints a row a kind. Exit code 1 unless nothing was lost, doubled, different or left over.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

import pyarrow.parquet as pq

AGAIN = 0.6  # how often a command that was killed is killed once more before it may end
EARLY = 0.15  # how often before its first file
LEFT_OVER = ("_spool", "_building")  # parts of paths; as are names that begin with a dot
NOT_COMPARED = ("log",)  # folders of hosts and times


@dataclass
class Found:
    """What kills of a kind did. said: a line for each thing that is wrong."""

    kills: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    left: int = 0
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.different or self.left)

    def compare(self, whole: Mapping[str, str], here: Mapping[str, str]) -> None:
        """Count the differences of two folders (`digests`)."""
        lost = sorted(whole.keys() - here.keys())
        more = sorted(here.keys() - whole.keys())
        left = [one for one in more if is_left_over(one)]
        differ = sorted(one for one in whole.keys() & here.keys() if whole[one] != here[one])
        self.lost += len(lost)
        self.left += len(left)
        self.doubled += len(more) - len(left)
        self.different += len(differ)
        for what, names in (("lost", lost), ("more", more), ("different", differ)):
            if names:
                self.said.append(f"{what}: {', '.join(names[:5])}")

    def fell(self, said: str) -> None:
        """A command that does not come to its end."""
        self.lost += 1
        self.said.append(said)

    def remain(self, count: int, said: str) -> None:
        """Files or processes that should be gone."""
        self.left += count
        if count:
            self.said.append(said)


class Kind(Protocol):
    """Something that is killed."""

    def prepare(self) -> None:
        """What all trials need, and the run without interruption."""

    def trial(self, chance: Random, most: int, found: Found) -> None:
        """Kill at least once, as often as ``most`` times, and count what came of it in ``found``."""

    def end(self) -> None:
        """End what was started."""


def is_left_over(path: str) -> bool:
    """Whether a path is of an unfinished file or a claim."""
    return any(part in LEFT_OVER or part.startswith(".") for part in path.split("/"))


def digests(root: Path, ignored: Sequence[str] = ()) -> dict[str, str]:
    """sha256 of every file below a folder but logs, by relative path; of empty folders, with '/', an empty text.

    ignored: further parts of paths that are not compared.
    """
    found = {}
    for folder, below, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        if set(relative.parts) & {*NOT_COMPARED, *ignored}:
            continue
        if not below and not names:
            found[f"{relative.as_posix()}/"] = ""
        for name in set(names) - set(ignored):
            found[(relative / name).as_posix()] = _digest(Path(folder) / name)
    return found


def _digest(path: Path) -> str:
    if path.parent.parent.name == "scores":  # of a run of ``eval``, which also writes down how long it took
        return str(pq.read_table(path).to_pydict()) if path.suffix == ".parquet" else ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def weighed(kinds: Mapping[str, int], kills: int) -> dict[str, int]:
    """How often each kind is killed, by its weight; once at least."""
    share = kills / sum(kinds.values())
    return {name: max(1, round(weight * share)) for name, weight in kinds.items()}


def main() -> int:
    """Run the trials; returns the exit code."""
    from tests.trials.killed_kinds import WEIGHTS, made_kinds
    from tests.trials.killed_processes import TookTooLong

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it has it tidy up
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--what", default=",".join(WEIGHTS), help="kinds, with commas between them")
    parser.add_argument("--folder", type=Path, help="where trials lie, on a fast disk or in memory")
    asked = parser.parse_args()
    names = asked.what.split(",")
    if unknown := set(names) - set(WEIGHTS):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(WEIGHTS)}")
    shares = weighed({name: WEIGHTS[name] for name in names}, asked.kills)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir=asked.folder))
    total: dict[str, Found] = {}
    try:
        with made_kinds(folder, names) as kinds:
            for name, kind in kinds:
                found, began = total.setdefault(name, Found()), time.monotonic()
                chance = Random(f"{asked.seed}/{name}")
                try:
                    kind.prepare()
                    while found.kills < shares[name]:
                        kind.trial(chance, shares[name] - found.kills, found)
                except TookTooLong as error:
                    found.fell(str(error))
                finally:
                    kind.end()
                found.seconds = time.monotonic() - began
                print(_row(name, found), flush=True)
                for line in found.said:
                    print(f"    {line}", flush=True)
    finally:
        if all(found.good for found in total.values()):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"the folders of what is wrong are in {folder}", file=sys.stderr)
    print(f"\nseed {asked.seed}\n{_row('', None)}")
    for name, found in total.items():
        print(_row(name, found))
    whole = Found()
    for found in total.values():
        for count in ("kills", "lost", "doubled", "different", "left", "seconds"):
            setattr(whole, count, getattr(whole, count) + getattr(found, count))
    print(_row("all", whole))
    return 0 if whole.good else 1


def _row(name: str, found: Found | None) -> str:
    if found is None:
        return (
            f"{'killed':<18} {'kills':>6} {'lost':>6} {'doubled':>8} {'different':>10} {'left over':>10} {'seconds':>8}"
        )
    return (
        f"{name:<18} {found.kills:>6} {found.lost:>6} {found.doubled:>8} {found.different:>10} {found.left:>10} "
        f"{found.seconds:>8.0f}"
    )


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
