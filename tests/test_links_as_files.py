"""A checkout without links, as Windows and ZIP files give it: a file with the name of its target in place of each."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.made_recipe import ROOT, run_python, write_recipe

ROOMS = ("flows", "generators", "filters", "manifests")


@pytest.mark.parametrize("links", ["files", "absent"])
def test_a_checkout_without_links_imports_plans_and_builds(tmp_path: Path, links: str) -> None:
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", *ROOMS)
    shutil.copytree(ROOT / "src/twinset", checkout / "src/twinset", ignore=ignored)
    for room in ROOMS:
        shutil.copytree(ROOT / room, checkout / room, ignore=shutil.ignore_patterns("__pycache__"))
        if links == "files":
            (checkout / "src/twinset" / room).write_text(f"../../{room}")
    shutil.copy(ROOT / "pyproject.toml", checkout)
    write_recipe(tmp_path)
    run = partial(run_python, tmp_path, source=checkout / "src")
    code = "import twinset.flows.build, twinset.generators, twinset.filters; print(twinset.generators.__file__)"
    assert run("-c", code).strip() == str(checkout / "generators/__init__.py")
    run("-m", "twinset.cli.main", "build", "recipe.yaml", "--out", "out")
    run("-c", "import twinset; twinset.load_recipe('genecis')")


def test_a_copy_that_is_no_checkout_imports_nothing_from_the_folders_above(tmp_path: Path) -> None:
    package = tmp_path / "vendored/twinset"
    shutil.copytree(ROOT / "src/twinset", package, ignore=shutil.ignore_patterns("__pycache__", *ROOMS))
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows/__init__.py").write_text("raise SystemExit('a stranger')")
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", "import twinset.flows"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'twinset.flows'" in done.stderr
