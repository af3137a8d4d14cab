"""Mutated inputs: ``python -m tests.trials.mutations --cases 10000 --seed N [--kind K] [--case N] [--keep DIR]``.

A case takes valid small inputs of one kind, changes one file (`tests.trials.mutators`), and calls what reads it. It
must end well or in one of twinset's own errors, within 20 s and 2 GB. Everything about a case follows from seed and
number, so that ``--case N`` repeats it. Cases run in processes that live on; one that dies or hangs is a finding, and
is replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import re
import resource
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

SECONDS, MEMORY = 20.0, 2 << 30  # of a case; bytes beyond what the process had before
MAKING_SECONDS = 600.0  # of the valid inputs of a kind
SLOW = "takes more time than it may:"
ENDED, REFUSED, FINDING = "ended well", "refused", "finding"
#: A message that shows a place in the code is an error that nobody foresaw (`manifests.errors.in_words`).
UNFORESEEN = re.compile(r"Traceback \(most recent|\(/\S+\.py:\d+\)")


@dataclass(frozen=True)
class Case:
    """What became of a case. outcome: one of three words; detail: the message, or the traceback's last line."""

    number: int
    kind: str
    outcome: str = ""
    mutation: str = ""
    act: str = ""
    detail: str = ""
    seconds: float = 0.0


def kind_of(number: int) -> str:
    """The kind of a case: by turns, as often as the kind's weight says."""
    from tests.trials.mutated_kinds import KINDS

    turns = [
        kind.name
        for at in range(max(kind.weight for kind in KINDS.values()))
        for kind in KINDS.values()
        if at < kind.weight
    ]
    return turns[number % len(turns)]


class Worker:
    """A process that runs cases, until one takes too long or kills it."""

    def __init__(self, folder: Path, seed: int, torch: bool) -> None:
        self.folder, self.seed, self.torch, self._pid_log = folder, seed, torch, 0
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(
            target=serve, args=(theirs, self.folder, self.seed, self.torch), daemon=False
        )
        self._process.start()
        theirs.close()
        self._log = self.folder / f"log-{self._process.pid}"

    def run(self, case: Case) -> Case:
        """Run a case, or make the valid inputs of its kind if its number is -1."""
        began, limit = time.monotonic(), MAKING_SECONDS if case.number < 0 else SECONDS
        self._pipe.send(case)
        try:
            # Starting and importing take time of their own; the worker measures the case itself.
            if self._pipe.poll(limit + 5):
                return self._pipe.recv()  # type: ignore[no-any-return]
            said = f"{SLOW} over {limit:.0f} s"
        except (EOFError, ConnectionResetError):
            self._process.join()
            said = f"the process died, exit code {self._process.exitcode}: {self._last_words()}"
        self.end()
        self._start()
        return replace(case, outcome=FINDING, detail=said, seconds=time.monotonic() - began)

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").splitlines() if self._log.exists() else []
        return " | ".join([line for line in lines if line.strip()][-3:])

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def serve(pipe: Connection, folder: Path, seed: int, torch: bool) -> None:
    """In a worker: run cases as they come."""
    scratch = folder / f"scratch-{os.getpid()}"
    for stream in (1, 2):  # C libraries write there
        os.dup2(os.open(folder / f"log-{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND), stream)
    os.environ["HOME"] = str(folder / "home")  # but for what is drawn once, which is named below
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
    os.fsync = lambda _: None
    threading.excepthook = lambda args: print(
        "Traceback (most recent call last) in a thread:", args.exc_value, file=sys.stderr
    )
    from tests.made_sources import with_test_sources
    from tests.trials.mutated_kinds import KINDS

    logging.getLogger("twinset").setLevel(logging.WARNING)
    if torch:
        import torch as _torch

        _torch.set_num_threads(1)
    with with_test_sources():
        while True:
            try:
                case = pipe.recv()
            except EOFError:
                return
            kind = KINDS[case.kind]
            try:
                if case.number < 0:
                    pipe.send(_made(case, folder, scratch))
                else:
                    pipe.send(
                        _tried(
                            case, folder / "valid" / kind.place, scratch, Random(f"{seed}/{case.number}/{case.kind}")
                        )
                    )
            except BaseException as error:
                pipe.send(
                    replace(
                        case,
                        outcome=FINDING,
                        detail=f"the trial itself failed: {traceback.format_exc()[-1500:]} {error}",
                    )
                )


def _made(case: Case, folder: Path, scratch: Path) -> Case:
    """Make the valid inputs of a kind, and see that every act ends well on them."""
    from tests.trials.mutated_kinds import KINDS

    kind = KINDS[case.kind]
    valid = folder / "valid" / kind.place
    if not valid.exists():
        valid.mkdir(parents=True)
        try:
            with _inside(valid), contextlib.redirect_stdout(sys.stderr):
                kind.make(valid)
        except BaseException:
            shutil.rmtree(valid)
            raise
    for name in kind.acts:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(valid, scratch, symlinks=True)
        ran = _acted(replace(case, act=name), scratch)
        if ran.outcome != ENDED and not ran.detail.startswith(SLOW):  # the first imports libraries
            return replace(ran, outcome=FINDING, detail=f"valid inputs do not end well: {ran.detail}")
    return replace(case, outcome=ENDED)


def _tried(case: Case, valid: Path, scratch: Path, random: Random) -> Case:
    from tests.trials.mutated_kinds import KINDS
    from tests.trials.mutators import mutate

    kind = KINDS[case.kind]
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(valid, scratch, symlinks=True)
    name = random.choice([*kind.acts])
    files = sorted({path for pattern in kind.files for path in scratch.glob(pattern) if path.is_file()})
    # A form that has many files, such as images, must not hide one that has a single file.
    suffix = random.choice(sorted({path.suffix for path in files}))
    said = mutate(scratch, [path for path in files if path.suffix == suffix], random)
    return _acted(replace(case, act=name, mutation=said), scratch)


@contextlib.contextmanager
def _inside(folder: Path):  # type: ignore[no-untyped-def]
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _acted(case: Case, folder: Path) -> Case:
    """Call an act within the limits."""
    from tests.trials.mutated_kinds import KINDS
    from twinset.manifests.errors import TwinsetError

    said, code = io.StringIO(), 0
    before, held = time.monotonic(), _memory("VmData")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    peak = _memory("VmHWM")
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, resource.RLIM_INFINITY))
    try:
        with _inside(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = KINDS[case.kind].acts[case.act](folder) or 0
        outcome, detail = (REFUSED if code else ENDED), said.getvalue().strip()
        if UNFORESEEN.search(detail):
            outcome = FINDING
        elif code and not detail:
            outcome, detail = FINDING, f"exit code {code} without a word"
    except (TwinsetError, OSError) as error:  # as the command line catches them
        outcome, detail = REFUSED, str(error)
        if not detail or UNFORESEEN.search(detail):
            outcome = FINDING
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [one for one in frames if "/tests/" not in one.filename and "site-packages" not in one.filename]
        places = [f"{Path(one.filename).name}:{one.lineno}" for one in (ours or frames)[-4:]]
        outcome, detail = FINDING, f"{type(error).__name__}: {str(error)[:300]} ({' > '.join(places)})"
        if isinstance(error, BaseExceptionGroup):
            detail += f" {[repr(one)[:200] for one in error.exceptions]}"
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seconds = time.monotonic() - before
    if outcome != FINDING and seconds > SECONDS:
        outcome, detail = FINDING, f"{SLOW} {seconds:.0f} s; {detail}"
    if outcome != FINDING and _memory("VmHWM") - peak > MEMORY:
        outcome, detail = FINDING, f"takes {_memory('VmHWM') - peak >> 20} MiB; {detail}"
    return replace(case, outcome=outcome, detail=detail[-1500:], seconds=seconds)


def _memory(name: str) -> int:
    """Bytes, of ``/proc/self/status``."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def run(
    numbers: Sequence[int], seed: int, processes: int = 2, keep: Path | None = None, minutes: float = 1e9
) -> list[Case]:
    """Run cases by number, those of a kind in one process; what did not begin in time is left out."""
    from tests.trials.mutated_kinds import KINDS

    by_kind = defaultdict[str, list[int]](list)
    for number in numbers:
        by_kind[kind_of(number)].append(number)
    waiting = sorted(by_kind.items(), key=lambda item: (KINDS[item[0]].torch, -len(item[1])))
    cases, lock, ends = list[Case](), threading.Lock(), time.monotonic() + 60 * minutes
    folder = keep or Path(tempfile.mkdtemp(prefix="mutations-"))
    (folder / "home").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TWINSET_CACHE", str(Path.home() / ".cache" / "twinset"))

    def work(place: int) -> None:
        worker: Worker | None = None
        while True:
            with lock:
                if not waiting or time.monotonic() > ends:
                    break
                name, asked = waiting.pop(place)
            if worker is None or worker.torch != KINDS[name].torch:
                if worker is not None:
                    worker.end()
                worker = Worker(folder, seed, KINDS[name].torch)
            made = worker.run(Case(-1, name))
            if made.outcome != ENDED:
                with lock:
                    cases.append(made)
                continue
            for number in asked:
                if time.monotonic() > ends:
                    break
                found = worker.run(Case(number, name))
                if found.outcome == FINDING and SLOW in found.detail:  # the neighbours' work may have slowed it
                    found = worker.run(Case(number, name))
                with lock:
                    cases.append(found)
                    if found.outcome == FINDING:
                        _show(found)
        if worker is not None:
            worker.end()

    # The second begins at the end, with what needs torch: in little time both sorts have their turn.
    threads = [threading.Thread(target=work, args=(-(number % 2),)) for number in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return cases


def _show(case: Case) -> None:
    print(f"case {case.number} [{case.kind}, {case.act}] {case.mutation}\n    {case.detail[-600:]}", flush=True)


def main() -> int:
    """Run the cases that the command line asks for; exit code 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="cases of kinds of this name only; as of files, such as 'model: *'")
    parser.add_argument("--case", type=int, help="this one case, with all that it says")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep inputs there; the last case lies in scratch-PID")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no case later")
    asked = parser.parse_args()
    numbers = range(asked.cases)
    if asked.case is not None:
        numbers = range(asked.case, asked.case + 1)
    elif asked.kind is not None:
        own = (number for number in range(1 << 30) if fnmatch(kind_of(number), asked.kind))
        numbers = [next(own) for _ in range(asked.cases)]  # type: ignore[assignment]
    began = time.monotonic()
    cases = run(numbers, asked.seed, asked.processes, asked.keep, asked.minutes)
    if asked.case is not None:
        for case in cases:
            print(case.outcome)
            _show(case)
    counts = defaultdict[str, Counter[str]](Counter)
    for case in cases:
        if case.number >= 0:
            counts[case.kind][case.outcome] += 1
        elif case.outcome == FINDING:
            counts[case.kind][FINDING] += 1
            _show(case)
    print(f"{'kind':32} {'cases':>6} {ENDED:>11} {REFUSED:>8} findings  slowest")
    for kind, found in sorted(counts.items()):
        slowest = max(case.seconds for case in cases if case.kind == kind)
        print(f"{kind:32} {found.total():6} {found[ENDED]:11} {found[REFUSED]:8} {found[FINDING]:8} {slowest:7.2f} s")
    total = sum(counts.values(), Counter[str]())
    print(
        f"{total.total()} of {len(numbers)} cases of seed {asked.seed}, {time.monotonic() - began:.0f} s: {dict(total)}"
    )
    return 1 if total[FINDING] else 0


if __name__ == "__main__":
    sys.exit(main())
