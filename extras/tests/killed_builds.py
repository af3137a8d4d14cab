"""Builds as a user runs them, which are killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def build(folder: Path, out: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "twinset.cli.main", "build", "recipe.yaml", "--out", out, "--workers", "1"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def kill_midway(folder: Path, out: str, subset: str) -> None:
    """Begin a build and kill it once a shard is done."""
    killed, receipts = build(folder, out), folder / out / subset / "_meta/receipts"
    while killed.poll() is None and not [*receipts.glob("*.json")]:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL


def tars(folder: Path, out: str, subset: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / out / subset).glob("*/*.tar"))}
