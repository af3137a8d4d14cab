"""Ends what a build leaves behind when it dies: Prefect's temporary server, Ray's and Dask's workers, children.

A small process waits on a pipe from the build. The pipe ends when the build does, by itself or by kill -9; then all
processes that carry the build's token in their environment are ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

TOKEN = "TWINSET_BUILD"


def end_with_this_process() -> None:
    """Have all processes that this one starts from now on ended when it ends."""
    os.environ[TOKEN] = uuid.uuid4().hex
    # The pipe's other end is held by this process alone and is never closed before it dies.
    _watchers.append(
        subprocess.Popen(
            [sys.executable, "-m", "flows.orphans"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    )


_watchers: list[subprocess.Popen[bytes]] = []


def _watch() -> None:
    import psutil

    token = os.environ[TOKEN]
    sys.stdin.buffer.read()
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(TOKEN) == token:
                process.kill()
        except psutil.Error:
            continue


if __name__ == "__main__":
    _watch()
