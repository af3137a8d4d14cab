"""A checkout without links, as Windows and ZIP files give it: a file with the name of its target in place of each."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("flows", "generators", "filters", "manifests")
RECIPE = """
name: mine
subsets:
  mine:
    source: {kind: image-pairs, annotations: pairs.json, media: ., licence: 'other: mine'}
    filters: [{kind: equal-captions}]
"""
PAIRS = """
[{"id": "wall", "image0": "red.png", "image1": "blue.png", "caption0": "a red wall", "caption1": "a blue wall"}]
"""


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
    for colour in ("red", "blue"):
        Image.new("RGB", (48, 40), colour).save(tmp_path / f"{colour}.png")
    (tmp_path / "pairs.json").write_text(PAIRS)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONSAFEPATH": "1"}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    code = "import twinset.flows.build, twinset.generators, twinset.filters; print(twinset.generators.__file__)"
    assert run("-c", code).strip() == str(checkout / "generators/__init__.py")
    run("-m", "twinset.cli.main", "plan", "recipe.yaml")
    run("-m", "twinset.cli.main", "build", "recipe.yaml", "--out", "out")
    run("-m", "twinset.cli.main", "verify", "out")
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
