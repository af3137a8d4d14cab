"""Checkouts beside packages of the names of their rooms, and without links, as Windows and ZIP files give them.

There a file with the name of its target stands in place of each link.
"""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.made_recipe import ROOT, run_python, write_recipe

IN_A_RESEARCH_REPOSITORY = """
import twinset
from twinset.cli.main import main

built = twinset.build("recipe.yaml", "out")
assert built["subsets"]["pairs"]["kept"] == 6, built
assert twinset.verify("out")["subsets"]["pairs"]["problems"] == []
twinset.evaluate([("twinset", "out")], ["random:ViT-S-32-alt:0"], "scores")
settings = dict(model="small.json", weights=None, objective="negative-pairs", batch=2, steps=1, warmup=0, threads=1)
assert twinset.train(["out:pairs"], "run", workers=0, **settings)["steps"] == 1
assert main(["status", "out"]) == 0
import evaluation
assert evaluation.MINE
"""
SMALL_CLIP = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}


@pytest.mark.slow
def test_it_works_beside_packages_of_the_names_of_its_rooms(tmp_path: Path) -> None:
    """In a research repository, whose own ``evaluation`` or ``training`` must not meet twinset's."""
    for name in ("evaluation", "training", "filters", "cli", "stages", "generators", "models", "shards"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    write_recipe(tmp_path)
    (tmp_path / "small.json").write_text(json.dumps(SMALL_CLIP))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"TWINSET_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    code = [sys.executable, "-c", IN_A_RESEARCH_REPOSITORY]
    done = subprocess.run(code, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


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
