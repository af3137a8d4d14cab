"""A checkout without links, as Windows and ZIP files give it: a file with the name of its target in place of each."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.made_recipe import ROOT, run_python, write_recipe

ROOMS = ("flows", "generators", "filters", "manifests")
USE = """
import sys, twinset.filters, twinset.flows, twinset.generators
from twinset.cli.main import main

twinset.load_recipe("genecis")
assert main(["build", "recipe.yaml", "--out", sys.argv[1]]) == 0
print(twinset.generators.__file__)
"""


@pytest.mark.slow
def test_a_checkout_without_links_imports_plans_and_builds(tmp_path: Path) -> None:
    """Whether nothing or a file stands in the place of each link."""
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", *ROOMS)
    shutil.copytree(ROOT / "src/twinset", checkout / "src/twinset", ignore=ignored)
    for room in ROOMS:
        shutil.copytree(ROOT / room, checkout / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", checkout)
    write_recipe(tmp_path)
    for out in ("absent", "files"):
        printed = run_python(tmp_path, "-c", USE, out, source=checkout / "src")
        assert printed.splitlines()[-1] == str(checkout / "generators/__init__.py")
        for room in ROOMS:
            (checkout / "src/twinset" / room).write_text(f"../../{room}")


def test_a_copy_that_is_no_checkout_imports_nothing_from_the_folders_above(tmp_path: Path) -> None:
    package = tmp_path / "vendored/twinset"
    shutil.copytree(ROOT / "src/twinset", package, ignore=shutil.ignore_patterns("__pycache__", *ROOMS))
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows/__init__.py").write_text("raise SystemExit('a stranger')")
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", "import twinset.flows"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'twinset.flows'" in done.stderr
