"""Ctrl-C and SIGTERM end a build at once, with its children: whatever is half-done has no receipt."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import psutil


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Within it, an interrupt kills this process's children and ends it with exit code 1."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(_number: int, _frame: FrameType | None) -> None:
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    # The children's temporary files are removed by none of them now. Not imported here: an import may be interrupted.
    if (module := sys.modules.get("stages.child_processes")) is not None and hasattr(module, "remove_scratch"):
        module.remove_scratch()
    os.write(2, b"\ntwinset: interrupted; the same command resumes\n")
    os._exit(1)
