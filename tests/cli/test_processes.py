"""The command as a process: its pipes, its terminal, its signals, and what it imports."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
TWINSET = [sys.executable, "-m", "twinset.cli.main"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
HEAVY = {"torch", "av", "cv2", "bpy", "spacy", "pandas", "matplotlib", "prefect"}


def test_nothing_to_do_imports_nothing_heavy(recipe: Path, built: Path) -> None:
    code = (
        "import sys; from twinset.cli.main import main; code = main(sys.argv[1:]); "
        f"print(code, sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "build", str(recipe), "--out", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    assert done.stderr == "0 []\n"


def test_a_reader_that_has_seen_enough_is_no_error(built: Path) -> None:
    for number in range(3):
        (built / f"pairs/_meta/receipts/0000{number}.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    command = [*TWINSET, "status", str(built)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_an_interrupt_ends_the_build_and_its_children(recipe: Path) -> None:
    out = recipe.parent / "out"
    command = [*TWINSET, "build", str(recipe), "--out", str(out), "--runner", "processes", "--workers", "2"]
    build = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    family = wait_until(lambda: psutil.Process(build.pid).children(recursive=True))
    build.send_signal(signal.SIGINT)
    _, said = build.communicate()
    # Python's own words of a child that was only starting may follow.
    assert build.returncode == 1 and "twinset: interrupted; the same command resumes\n" in said
    psutil.wait_procs(family)
    done = subprocess.run(command, capture_output=True, cwd=CHECKOUT, env=ENVIRONMENT)
    assert done.returncode == 0
