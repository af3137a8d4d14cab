"""Builds on bad disks: ``python -m tests.trials.disks [--what full,…] [--every N] [--folder DIR]``.

Each build of a small recipe meets a disk that is full, read-only, gone, out of inodes or
slow. It must end in a message of one to three lines, with no file half-written; once the cause is gone the
same command must end in the bytes of a build without trouble. What needs file systems of its own (tmpfs) is skipped
without root. Prints a row a case; exit code 1 unless all hold.
The disk is filled by a file beside OUT when the build syncs for the n-th time: whatever is written next meets it.
"""

from __future__ import annotations

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
from functools import partial
from pathlib import Path
from typing import Any

from tests.options import options
from tests.trials.killed_kinds import ENDS_IN, RECIPE
from tests.trials.killed_processes import Process, environment, warm
from tests.trials.kills import digests, is_left_over

WHAT = ("full", "gone", "readonly", "inodes", "slow")
LARGE = "size=64m"  # of a tmpfs that is large enough
BESIDE = "filling"  # the file that fills a disk
SLOW_SECONDS = 0.05  # of each sync and rename
Before = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A bad disk. disk: options of its tmpfs; mend: of its second mount; before: called in the build's process."""

    name: str
    disk: str = LARGE
    mend: str = LARGE
    before: Before = lambda out: None
    fails: bool = True


def at_sync(number: int, then: Before, out: Path) -> None:
    """In a build's process: have something happen when it syncs for the n-th time, before it does."""
    sync, calls = os.fsync, 0

    def counted(descriptor: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == number or not number:
            then(out)
        sync(descriptor)

    os.fsync = counted  # type: ignore[assignment]


def count(out: Path) -> None:
    with out.with_name("syncs").open("ab") as stream:
        stream.write(b".")


def fill(out: Path) -> None:
    with out.with_name(BESIDE).open("ab", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(bytes(4096))


def slow(_: Path) -> None:
    """In a build's process: have each sync and rename take its time."""
    for name in ("fsync", "replace"):
        quick = getattr(os, name)

        def late(*arguments: Any, quick: Callable[..., Any] = quick) -> Any:
            time.sleep(SLOW_SECONDS)
            return quick(*arguments)

        setattr(os, name, late)


def cases(what: Sequence[str], every: int, syncs: int, files: int) -> Iterator[Case]:
    """All cases. every: of numbered ones only each N-th; syncs, files: of a build without trouble."""
    if "full" in what:
        for number in range(1, syncs + 1, every):
            yield Case(f"full at sync {number}", before=partial(at_sync, number, fill), fails=False)
    if "gone" in what:
        for number in range(2, syncs + 1, max(1, syncs // 12) * every):
            yield Case(f"OUT removed at sync {number}", before=partial(at_sync, number, shutil.rmtree))
    if "readonly" in what:
        yield Case("read-only", disk=f"{LARGE},ro")
    if "inodes" in what:
        for number in range(3, files, max(1, files // 10) * every):
            yield Case(f"{number} inodes", disk=f"{LARGE},nr_inodes={number}", mend=f"{LARGE},nr_inodes=0")
    if "slow" in what:
        yield Case(f"syncs of {SLOW_SECONDS} s", before=slow, fails=False)


@contextmanager
def disk(place: Path, options: str) -> Iterator[None]:
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
        (folder / "tmp").mkdir()
        self._variables = {**environment(folder / "cache"), "TMPDIR": str(folder / "tmp")}

    def whole(self) -> tuple[int, int]:
        """Build without trouble; returns how often it syncs and how many files and folders it makes."""
        for name in ("first", "whole"):
            out = self._folder / name / "out"
            out.parent.mkdir()
            if self._build(out, "whole", partial(at_sync, 0, count)).code:
                raise SystemExit((self._folder / "whole.txt").read_text())
            warm(self._folder / "whole.txt")
        self._whole = digests(out)
        return out.with_name("syncs").stat().st_size, sum(1 for _ in out.rglob("*"))

    def run(self, case: Case) -> tuple[bool, str]:
        """Whether a case holds, and what was seen."""
        name, place = re.sub(r"\W+", "-", case.name), self._folder / "disk"
        with disk(place, case.disk):
            out, began = place / "out", time.monotonic()
            code = self._build(out, name, case.before).code
            seconds = time.monotonic() - began
            subprocess.run(["mount", "-o", f"remount,rw,{case.mend}", place], check=True)
            (place / BESIDE).unlink(missing_ok=True)
            here = digests(out) if out.exists() else {}
            left = [path for path in here if is_left_over(path)]
            half = [path for path in {*here} - {*left} if here[path] != self._whole.get(path, here[path])]
            equal = self._build(out, f"{name}-again").code == 0 and digests(out) == self._whole
        log = (self._folder / f"{name}.txt").read_text("utf-8", "replace")
        message = [line for line in f"\n{log}".partition("\ntwinset: ")[2].splitlines() if line]
        ended = not case.fails if code == 0 else code in (1, 2) and 1 <= len(message) <= 3
        good = equal and ended and "Traceback" not in log and not half and not left
        seen = f"exit {code}, {seconds:.0f} s, resumed equal: {'yes' if equal else 'NO'}"
        seen += f", half-written: {half[:3]}, left: {left[:3]}; {len(message)} lines: {' '.join(message[:1])}"
        return good, seen.replace(str(self._folder), "…")

    def _build(self, out: Path, name: str, before: Before = lambda out: None) -> Process:
        log = self._folder / f"{name}.txt"
        arguments = ["build", str(self._recipe), "--only", "trohn-text", "--out", str(out), "--workers", "2"]
        process = Process(arguments, self._variables, log, before=lambda: before(out))
        if process.wait(ENDS_IN) is None:
            process.kill(whole=True)
        process.end()
        return process


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends it has it tidy up
    given = options(__doc__, what=",".join(WHAT), every=1, folder="")
    if os.geteuid() != 0:
        print("skipped: every case mounts a tmpfs, for which this needs root")
        return 0
    folder, bad = Path(tempfile.mkdtemp(prefix="disks-", dir=given.folder or None)), 0
    try:
        trial = Trial(folder)
        syncs, files = trial.whole()
        print(f"a build without trouble syncs {syncs} times and makes {files} files and folders", flush=True)
        for case in cases(given.what.split(","), given.every, syncs, files):
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
