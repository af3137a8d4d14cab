"""Every command of docs/training.md runs as typed, in the order of the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_encoders import save_transformers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
COMMAND = re.compile(r"^    ((?:twinset|torchrun) (?:.*\\\n)*.*)$", re.MULTILINE)
#: "`NAME.yaml`:" at the end of a paragraph, then the file.
FILE = re.compile(r"`([\w-]+\.yaml)`:\n\n((?:    .*\n)+)")


def commands() -> list[str]:
    """As typed, with lines that end in a backslash joined."""
    return [found.replace("\\\n", " ") for found in COMMAND.findall(PAGE.read_text("utf-8"))]


@pytest.mark.slow
def test_every_command_runs_as_typed(tmp_path: Path) -> None:
    for name, content in FILE.findall(PAGE.read_text("utf-8")):
        (tmp_path / name).write_text(re.sub("^    ", "", content, flags=re.MULTILINE), "utf-8")
    save_transformers(tmp_path / "weights" / "blip-itm", "blip")  # the page says that it must be there
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    for command in commands():
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert "| + EqSim |" in (tmp_path / "out/grid/grid.md").read_text("utf-8")
