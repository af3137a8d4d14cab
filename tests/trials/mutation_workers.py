"""What runs in the processes of mutated inputs: a case within limits of time and memory."""

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
from pathlib import Path
from random import Random

SECONDS, MEMORY = 20.0, 2 << 30  # of a processor that a case takes; bytes beyond what the process had before
SLOW = "takes more time than it may:"
ENDED, REFUSED, FINDING = "ended well", "refused", "finding"
INSTALLED = contextlib.ExitStack()  # as long as the process lives
VALID = -1  # the number of the case that makes the valid inputs of a kind
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


def prepare(folder: Path) -> None:
    for stream in (1, 2):  # C libraries write there
        os.dup2(os.open(folder / f"log-{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND), stream)
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
    os.environ["HOME"] = str(folder / "home")
    os.fsync = lambda _: None
    threading.excepthook = lambda failed: print(
        "Traceback (most recent call last) in a thread:", failed.exc_value, file=sys.stderr
    )
    from tests.made_sources import with_test_sources

    logging.getLogger("twinset").setLevel(logging.WARNING)
    INSTALLED.enter_context(with_test_sources())


def tried(case: Case, folder: Path, seed: int) -> Case:
    scratch = folder / f"scratch-{os.getpid()}"
    try:
        return _valid(case, folder, scratch) if case.number == VALID else _mutated(case, folder, scratch, seed)
    except BaseException as error:
        failed = f"the trial itself failed: {traceback.format_exc()[-1500:]} {error}"
        return replace(case, outcome=FINDING, detail=failed)


def _valid(case: Case, folder: Path, scratch: Path) -> Case:
    """Make the valid inputs of a kind, and see that every act ends well on them."""
    from tests.trials.mutated_kinds import KINDS

    kind = KINDS[case.kind]
    valid = folder / "valid" / kind.place
    if not valid.exists():
        valid.mkdir(parents=True)
        try:
            with contextlib.chdir(valid), contextlib.redirect_stdout(sys.stderr):
                kind.make(valid)
        except BaseException:
            shutil.rmtree(valid)
            raise
    for name in kind.acts:
        _copy(valid, scratch)
        ran = acted(replace(case, act=name), scratch)
        if ran.outcome != ENDED and not ran.detail.startswith(SLOW):  # the first imports libraries
            return replace(ran, outcome=FINDING, detail=f"valid inputs do not end well: {ran.detail}")
    return replace(case, outcome=ENDED)


def _mutated(case: Case, folder: Path, scratch: Path, seed: int) -> Case:
    from tests.trials.mutated_kinds import KINDS
    from tests.trials.mutators import mutate

    kind, random = KINDS[case.kind], Random(f"{seed}/{case.number}/{case.kind}")
    _copy(folder / "valid" / kind.place, scratch)
    name = random.choice([*kind.acts])
    files = sorted({path for pattern in kind.files for path in scratch.glob(pattern) if path.is_file()})
    # A form that has many files, such as images, must not hide one that has a single file.
    suffix = random.choice(sorted({path.suffix for path in files}))
    mutation = mutate(scratch, [path for path in files if path.suffix == suffix], random)
    return acted(replace(case, act=name, mutation=mutation), scratch)


def _copy(valid: Path, scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(valid, scratch, symlinks=True)


def acted(case: Case, folder: Path) -> Case:
    from tests.trials.mutated_kinds import KINDS
    from twinset.contracts.errors import TwinsetError

    printed, code = io.StringIO(), 0
    before, held = time.process_time(), _memory("VmData")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    peak = _memory("VmHWM")
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, resource.RLIM_INFINITY))
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = KINDS[case.kind].acts[case.act](folder) or 0
        outcome, detail = (REFUSED if code else ENDED), printed.getvalue().strip()
        if code and not detail:
            outcome, detail = FINDING, f"exit code {code} without a word"
    except (TwinsetError, OSError) as error:  # as the command line catches them
        outcome, detail = (REFUSED if str(error) else FINDING), str(error)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if not re.search("/tests/|site-packages", frame.filename)]
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in (ours or frames)[-4:]]
        outcome, detail = FINDING, f"{type(error).__name__}: {str(error)[:300]} ({' > '.join(places)})"
        if isinstance(error, BaseExceptionGroup):
            detail += f" {[repr(part)[:200] for part in error.exceptions]}"
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seconds, more = time.process_time() - before, _memory("VmHWM") - peak
    if UNFORESEEN.search(detail):
        outcome = FINDING
    elif outcome != FINDING and seconds > SECONDS:
        outcome, detail = FINDING, f"{SLOW} {seconds:.0f} s; {detail}"
    elif outcome != FINDING and more > MEMORY:
        outcome, detail = FINDING, f"takes {more >> 20} MiB; {detail}"
    return replace(case, outcome=outcome, detail=detail[-1500:], seconds=seconds)


def _memory(name: str) -> int:
    line = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert line is not None
    return int(line[1]) << 10
