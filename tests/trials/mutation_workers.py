"""Processes that run cases of mutated inputs, each within limits of time and memory."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import resource
import shutil
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

SECONDS, MEMORY = 20.0, 2 << 30  # of a processor that a case takes; bytes beyond what the process had before
HANGS = 600.0  # seconds of the clock, after which a case that takes no processor is taken to wait for ever
MAKING_SECONDS = 1500.0  # as `HANGS`, of the valid inputs of a kind
SLOW = "takes more time than it may:"
ENDED, REFUSED, FINDING = "ended well", "refused", "finding"
#: A message that shows a place in the code is an error that nobody foresaw (`contracts.errors.in_words`).
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


class Worker:
    """A process that runs cases, until one takes too long or kills it."""

    def __init__(self, folder: Path, seed: int, torch: bool) -> None:
        self.folder, self.seed, self.torch = folder, seed, torch
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
        began, limit = time.monotonic(), MAKING_SECONDS if case.number < 0 else HANGS
        self._pipe.send(case)
        try:
            if self._pipe.poll(limit):
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
                    random = Random(f"{seed}/{case.number}/{case.kind}")
                    pipe.send(_tried(case, folder / "valid" / kind.place, scratch, random))
            except BaseException as error:
                said = f"the trial itself failed: {traceback.format_exc()[-1500:]} {error}"
                pipe.send(replace(case, outcome=FINDING, detail=said))


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
        ran = acted(replace(case, act=name), scratch)
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
    return acted(replace(case, act=name, mutation=said), scratch)


@contextlib.contextmanager
def _inside(folder: Path):  # type: ignore[no-untyped-def]
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def acted(case: Case, folder: Path) -> Case:
    """Call an act within the limits."""
    from tests.trials.mutated_kinds import KINDS
    from twinset.contracts.errors import TwinsetError

    said, code = io.StringIO(), 0
    before, held = time.process_time(), _memory("VmData")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
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
    seconds = time.process_time() - before
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
