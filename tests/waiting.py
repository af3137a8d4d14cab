"""Waits of tests end by what happens, never by a clock: on a busy machine everything takes many times as long.

What never happens ends by pytest's limit of a test (`timeout` in pyproject.toml), which shows where each thread waits.
"""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

T = TypeVar("T")


def wait_until(happens: Callable[[], T], process: "subprocess.Popen[bytes] | None" = None, pause: float = 0.01) -> T:
    """What a condition gives once it holds. Fails where the process that is to bring it about has ended before."""
    while not (result := happens()):
        if process is not None and process.poll() is not None and not (result := happens()):
            raise AssertionError(f"{process.args!r}: ended with {process.returncode} before it happened")
        if not result:
            time.sleep(pause)
    return result


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).is_success
    except httpx.TransportError:
        return False
