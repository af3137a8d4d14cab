"""Ctrl-C in a command that is its own process: the line, what was to be done at exit, and no collection of garbage."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
CODE = """
import atexit, sys
from twinset.cli import commands, main

class Large:
    def __del__(self):
        print("collected")

def interrupted(asked):
    error = KeyboardInterrupt()
    error.add_note("run the same command again")
    raise error

large = Large()
atexit.register(print, "at exit")
commands.status = interrupted
sys.argv[1:] = ["status", "out"]
sys.exit(main.main())
"""


def test_ctrl_c_does_not_wait_for_a_last_collection() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=CHECKOUT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "at exit\n")
    assert done.stderr == "twinset: interrupted; run the same command again\n"
