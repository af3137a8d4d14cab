"""Builds on bad disks: ``python -m tests.trials.disks [--what full,…] [--every N] [--folder DIR]``.

Each build of a small recipe meets a disk that is full, read-only, gone, out of inodes or
slow. It must end in a message of one to three lines, with no file half-written; once the cause is gone the
same command must end in the bytes of a build without trouble. What needs file systems of its own (tmpfs) is skipped
without root. Prints a row a case; exit code 1 unless all hold.

How a write fails: the disk is filled for good, by a file beside OUT, when the build syncs for the n-th time, so that
whatever is written next meets a full disk wherever it is written from (Python, Arrow, SQLite).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trials.killed_kinds import ENDS_IN, RECIPE
from tests.trials.killed_processes import Process, warm
from tests.trials.kills import digests, is_left_over

LARGE = "size=64m"  # of a tmpfs that is large enough
BESIDE = "filling"  # the file that fills a disk
SLOW_SECONDS = 0.05  # of each sync and rename


@dataclass(frozen=True)
class Case:
    """A bad disk. disk: options of its tmpfs; mend: of its second mount; before: called in the build's process."""

    name: str
    disk: str = LARGE
    mend: str = LARGE
    before: Callable[[Path], None] = lambda out: None
    fails: bool = True


def at_sync(number: int, then: Callable[[], None]) -> None:
    """In a build's process: have something happen when it syncs for the n-th time, before it does."""
    true, calls = os.fsync, 0

    def counted(descriptor: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            then()
        true(descriptor)

    os.fsync = counted  # type: ignore[assignment]


def fill(out: Path) -> None:
    """Fill the disk that OUT lies on."""
    with (out.parent / BESIDE).open("ab", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(bytes(4096))


def slow(_: Path) -> None:
    """In a build's process: have each sync and rename take its time."""
    for name in ("fsync", "replace"):
        true = getattr(os, name)

        def late(*given: Any, true: Callable[..., Any] = true) -> Any:
            time.sleep(SLOW_SECONDS)
            return true(*given)

        setattr(os, name, late)


def cases(what: Sequence[str], every: int, syncs: int, files: int) -> Iterator[Case]:
    """All cases. every: of numbered ones only each N-th; syncs, files: of a build without trouble."""
    if "size" in what:
        for size in range(1, 31, every):
            yield Case(f"a disk of {size} MB", disk=f"size={size}m", fails=False)
        for size in range(40, 1000, 40 * every):
            yield Case(f"a disk of {size} kB", disk=f"size={size}k", fails=False)
    if "full" in what:
        for number in range(1, syncs + 1, every):
            yield Case(
                f"full at sync {number}", fails=False, before=lambda out, n=number: at_sync(n, lambda: fill(out))
            )  # type: ignore[misc]
    if "gone" in what:
        for number in range(2, syncs + 1, max(1, syncs // 12) * every):
            yield Case(
                f"OUT removed at sync {number}",
                before=lambda out, n=number: at_sync(n, lambda: shutil.rmtree(out)),  # type: ignore[misc]
            )
    if "readonly" in what:
        yield Case("read-only", disk=f"{LARGE},ro")
    if "inodes" in what:
        for number in range(3, files, max(1, files // 10) * every):
            yield Case(f"{number} inodes", disk=f"{LARGE},nr_inodes={number}", mend=f"{LARGE},nr_inodes=0")
    if "slow" in what:
        yield Case(f"syncs of {SLOW_SECONDS} s", before=slow, fails=False)


@contextmanager
def disk(place: Path, options: str) -> Iterator[None]:
    """A tmpfs on a folder."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
        place.rmdir()


class Trial:
    """Cases of one recipe. folder: for logs and disks."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._recipe = folder, folder / "small.yaml"
        self._recipe.write_text(RECIPE)
        self._scratch = folder / "tmp"
        self._scratch.mkdir()
        checkout = Path(__file__).parents[2]
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "TMPDIR": str(self._scratch),
            "TWINSET_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(str(checkout / one) for one in ("src", "demo", ".")),
        }
        self._counted = folder / "syncs"

    def whole(self) -> tuple[int, int]:
        """Build without trouble; returns how often it syncs and how many files and folders it makes."""
        for name in ("first", "whole"):
            out = self._folder / name / "out"
            out.parent.mkdir()
            self._counted.unlink(missing_ok=True)
            if self._build(out, "whole", lambda _: count(self._counted)).code:
                raise SystemExit((self._folder / "whole.txt").read_text())
            warm(self._folder / "whole.txt")
        self._whole = digests(out)
        return self._counted.stat().st_size, sum(1 for _ in out.rglob("*"))

    def run(self, case: Case) -> tuple[bool, str]:
        """Whether a case holds, and what was seen."""
        name, place = re.sub(r"\W+", "-", case.name), self._folder / "disk"
        with disk(place, case.disk):
            out = place / "out"
            began = time.monotonic()
            process = self._build(out, name, case.before)
            seconds = time.monotonic() - began
            said = (self._folder / f"{name}.txt").read_text("utf-8", "replace")
            subprocess.run(["mount", "-o", f"remount,rw,{case.mend}", place], check=True)
            (place / BESIDE).unlink(missing_ok=True)
            here = digests(out) if out.exists() else {}
            half = [one for one in here if not is_left_over(one) and here[one] != self._whole.get(one, here[one])]
            left = [one for one in here if is_left_over(one)]
            again = self._build(out, f"{name}-again")
            equal = again.code == 0 and digests(out) == self._whole
        found = re.search(r"^twinset: .*", said, re.MULTILINE | re.DOTALL)
        message = found[0].strip().splitlines() if found else []
        good = equal and "Traceback" not in said and not half and not left
        if process.code == 0:
            good = good and not case.fails
        else:
            good = good and process.code in (1, 2) and 1 <= len(message) <= 3
        seen = f"exit {process.code}, {seconds:.0f} s, resumed equal: {'yes' if equal else 'NO'}"
        seen += f", half-written: {', '.join(half[:3])}" if half else ""
        seen += f", left: {', '.join(left[:3])}" if left else ""
        seen += f"; {len(message)} lines: {message[0]}" if message else ""
        return good, seen.replace(str(self._folder), "…")

    def _build(self, out: Path, name: str, before: Callable[[Path], None] = lambda out: None) -> Process:
        log = self._folder / f"{name}.txt"
        told = ["build", str(self._recipe), "--only", "trohn-text", "--out", str(out), "--workers", "2"]
        process = Process(told, self._variables, log, before=lambda: before(out))
        if process.wait(ENDS_IN) is None:
            process.kill(whole=True)
        process.end()
        return process


def count(path: Path) -> None:
    """In a build's process: append a byte to a file for each sync."""
    true = os.fsync

    def counted(descriptor: Any) -> None:
        with path.open("ab") as stream:
            stream.write(b".")
        true(descriptor)

    os.fsync = counted  # type: ignore[assignment]


WHAT = ("size", "full", "gone", "readonly", "inodes", "slow")


def main() -> int:
    """Run the cases; returns the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it has it tidy up
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", default=",".join(WHAT), help="kinds of disks, with commas between them")
    parser.add_argument("--every", type=int, default=1, help="of numbered cases only each N-th")
    parser.add_argument("--folder", type=Path, help="where trials lie")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: every case mounts a tmpfs, for which this needs root")
        return 0
    folder, bad = Path(tempfile.mkdtemp(prefix="disks-", dir=asked.folder)), 0
    try:
        trial = Trial(folder)
        syncs, files = trial.whole()
        print(f"a build without trouble syncs {syncs} times and makes {files} files and folders", flush=True)
        for case in cases(asked.what.split(","), asked.every, syncs, files):
            good, seen = trial.run(case)
            bad += not good
            print(f"{'good' if good else 'BAD '}  {case.name:<24} {seen}", flush=True)
    finally:
        if not bad:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{bad} bad" + (f"; logs are in {folder}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
