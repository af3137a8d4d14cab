"""The command as a process: its pipes, its terminal, its signals, and what it imports."""

import contextlib
import os
import pty
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
SLOW = {"diffusers", "inflect", "networkx", "scipy", "transformers", "trimesh"}


def test_nothing_to_do_imports_nothing_heavy(recipe: Path, built: Path) -> None:
    code = (
        "import sys; from twinset.cli.main import main; code = main(sys.argv[1:]); "
        f"print(code, sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "build", str(recipe), "--out", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    assert done.stderr == "0 []\n"


def test_a_plan_imports_nothing_that_only_making_needs() -> None:
    """Whatever the source: a build with nothing to do opens it again."""
    code = (
        "import sys; from twinset.contracts.recipe.models import SOURCES\n"
        "for kind in SOURCES.kinds():\n"
        "    SOURCES.find(kind)\n"
        f"    assert not {(HEAVY | SLOW) - {'cv2'}!r} & sys.modules.keys(), kind"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_error(built: Path) -> None:
    for number in range(3):
        (built / f"pairs/_meta/receipts/0000{number}.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    command = [*TWINSET, "status", str(built)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def on_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit code, and what was shown on a terminal."""
    try:
        own, other = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be opened: {error}")
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, cwd=CHECKOUT, env=environment)
    os.close(other)
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while part := os.read(own, 65536):
            shown += part
    os.close(own)
    return process.wait(), shown.decode(errors="replace")


@pytest.mark.slow
def test_a_terminal_shows_stage_phase_count_and_rate(recipe: Path) -> None:
    recipe.write_text(recipe.read_text().replace("shard_size: 2", "shard_size: 1"))
    out = recipe.parent / "out"
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "150"}
    code, shown = on_a_terminal([*TWINSET, "build", str(recipe), "--out", str(out), "--workers", "1"], environment)
    assert code == 0, shown
    assert "pairs" in shown and "done in " in shown
    assert "dataset" in shown and "describing" in shown


def test_an_interrupt_while_the_command_is_imported_is_one_line() -> None:
    code = """import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "twinset.cli.commands":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from twinset.cli.main import main
sys.exit(main(["status", "out"]))"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (1, "twinset: interrupted\n")


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


@pytest.mark.slow
def test_what_the_shell_closed_is_not_needed(recipe: Path) -> None:
    out = recipe.parent / "out"
    asked = f"build {recipe} --out {out} --runner processes --json"
    command = ["bash", "-c", f"exec {sys.executable} -m twinset.cli.main {asked} <&- >&- 2>&-"]
    assert subprocess.run(command, cwd=CHECKOUT, env=ENVIRONMENT).returncode == 0
    assert (out / "pairs/README.md").is_file()
    command = ["bash", "-c", f"exec {sys.executable} -m twinset.cli.main status {out} >&-"]
    done = subprocess.run(command, stderr=subprocess.PIPE, cwd=CHECKOUT, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, b"")
