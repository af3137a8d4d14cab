"""Ctrl-C and SIGTERM end a build at once, with its children: whatever is half-done has no receipt."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType


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
    import psutil

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
    # The children's temporary files are removed by none of them now.
    from stages.child_processes import remove_scratch

    remove_scratch()
    os.write(2, b"\ntwinset: interrupted; the same command resumes\n")
    os._exit(1)
