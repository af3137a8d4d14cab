"""A build ends when its temporary server dies, and only then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BUILD = """
import subprocess, sys, time
from flows.server_watch import SERVER, ending_without_server

server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", SERVER])
with ending_without_server():
    time.sleep(3)
    if sys.argv[1] == "dies":
        server.kill()
        time.sleep(30)
server.kill()  # as Prefect does when a build is done
time.sleep(3)
print("finished")
"""


@pytest.mark.parametrize("fate", ["dies", "lives"])
def test_a_build_ends_with_its_temporary_server(fate: str) -> None:
    command = [sys.executable, "-c", BUILD, fate]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2])
    if fate == "dies":
        assert done.returncode == 1 and "temporary server has died; the same command resumes" in done.stderr
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "finished\n", "")
