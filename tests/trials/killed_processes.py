"""Commands of ``twinset`` that are killed: each leads a session of its own, and what it leaves is found by that."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from tests.end_to_end.conftest import kill_all, of_checkout


class TookTooLong(Exception):
    """What was waited for did not come."""


def until(condition: Callable[[], object], seconds: float, what: str, pause: float = 0.02) -> None:
    """Wait until a condition holds; raises `TookTooLong`, which says ``what``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TookTooLong(f"{what}: not in {seconds:.0f} s")
        time.sleep(pause)


def environment(cache: Path) -> dict[str, str]:
    """As `of_checkout`, of one thread and without a network."""
    settings = dict.fromkeys(("OMP_NUM_THREADS", "HF_HUB_OFFLINE", "DO_NOT_TRACK", "NO_COLOR"), "1")
    return {**of_checkout(), **settings, "TWINSET_CACHE": str(cache)}


class Process:
    """A child that leads a session: ``twinset ARGUMENTS``, forked from this process, which has imported all it needs.

    Imports are two thirds of a small command's time. A child of one thread that has computed nothing is as good as a
    new process. program: another one beside Python, started as usual instead. before: called in the child.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        log: Path,
        program: str = "",
        before: Callable[[], None] = lambda: None,
    ) -> None:
        self.log, self.code = log, None
        self.pid = os.fork()
        if self.pid == 0:
            _become(arguments, variables, log, program, before)

    code: int | None

    def poll(self) -> int | None:
        """Its exit code (below 0: the signal that killed it), None while it lives."""
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if ended else None
        return self.code

    def wait(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.code

    def living(self) -> list[psutil.Process]:
        living = []
        for process in psutil.process_iter():
            with contextlib.suppress(ProcessLookupError, psutil.Error):
                if os.getsid(process.pid) == self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    living.append(process)
        return living

    def kill(self, whole: bool) -> bool:
        """Kill -9, of it alone or of all its session. Returns whether it lived until then."""
        if self.poll() is not None:
            return False
        # It stops first: it must not meet its children's end.
        os.kill(self.pid, signal.SIGSTOP)
        kill_all([process for process in self.living() if process.pid != self.pid] if whole else [])
        os.kill(self.pid, signal.SIGKILL)
        self.wait(30)
        return self.code == -signal.SIGKILL

    def end(self) -> list[psutil.Process]:
        """End what is left of its session; returns the processes that lived on although they had time to end."""
        with contextlib.suppress(TookTooLong):
            until(lambda: not self.living(), 20, "the end of children", 0.1)
        left = self.living()
        kill_all(left)
        self.wait(30)
        return left

    def must_end(self, seconds: float, code: int = 0) -> None:
        """Wait for its end with this exit code, or end the trials."""
        if self.wait(seconds) != code:
            raise SystemExit(f"{self.log}, exit code {self.code}: {self.last_words()}")

    def last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        return " | ".join([line for line in lines if line.strip()][-4:])


def _become(
    arguments: Sequence[str], variables: Mapping[str, str], log: Path, program: str, before: Callable[[], None]
) -> None:
    """In the child: never returns."""
    code = 1
    try:
        os.setsid()
        opened = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(opened, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit._clear()  # what this process left to do is not the child's
        os.environ.clear()
        os.environ.update(variables)
        if program:
            os.execv(Path(sys.executable).with_name(program), [program, *arguments])
        tempfile.tempdir = None
        sys.argv = ["twinset", *arguments]
        from twinset.cli.main import main

        before()
        code = main(arguments)
        if code == 0:
            log.with_suffix(".modules").write_text("\n".join(sys.modules))
        atexit._run_exitfuncs()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def warm(log: Path) -> None:
    """Import what a command that ended well had imported, but for what reads its environment then."""
    for name in log.with_suffix(".modules").read_text().split():
        if name not in sys.modules and not re.match(r"prefect|twinset\.flows|__mp_main__", name):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
