"""Ends what a build leaves behind when it dies: Prefect's temporary server, Ray's and Dask's workers, children.

A small process waits on a pipe from the build. The pipe ends when the build does, by itself or by kill -9; then all
processes that carry the build's token in their environment are ended, and the build's temporary files removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid

TOKEN = "TWINSET_BUILD"
SCRATCH = "TWINSET_SCRATCH"  # the folder for the temporary files of the build's children
END_SECONDS = 10.0


def end_with_this_process() -> None:
    """Have all processes that this one starts from now on ended when it ends, and their folder for scratch removed."""
    os.environ[TOKEN] = uuid.uuid4().hex
    os.environ[SCRATCH] = tempfile.mkdtemp(prefix="twinset-build-")
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
    ended = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(TOKEN) == token:
                process.kill()
                ended.append(process)
        except psutil.Error:
            continue
    psutil.wait_procs(ended, END_SECONDS)  # who still writes would make a file anew
    shutil.rmtree(os.environ[SCRATCH], ignore_errors=True)


if __name__ == "__main__":
    _watch()
