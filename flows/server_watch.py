"""A build whose temporary server dies ends at once: Prefect would ask that server again for ever."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import psutil

CHECK_SECONDS = 1.0
SERVER = "prefect.server.api.server:create_app"  # the application that uvicorn serves, on its command line


@contextlib.contextmanager
def ending_without_server() -> Iterator[None]:
    """Within it, this process ends with exit code 1 when the temporary server that it started does."""
    done = threading.Event()
    threading.Thread(target=_watch, args=(done,), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _watch(done: threading.Event) -> None:
    server: psutil.Process | None = None
    while not done.wait(CHECK_SECONDS):
        server = server or _server()
        if server is not None and not _lives(server) and not done.is_set():
            os.write(2, b"\ntwinset: Prefect's temporary server has died; the same command resumes\n")
            os._exit(1)  # whatever is half-done has no receipt


def _server() -> psutil.Process | None:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if SERVER in child.cmdline():
                return child
    return None


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
