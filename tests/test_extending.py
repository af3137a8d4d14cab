"""The worked example of docs/extending.md: its files are taken from the document, installed, and built with."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from twinset.contracts.receipt import IndexRecord

ROOT = Path(__file__).resolve().parents[1]
FILE = re.compile(r"^`([\w./-]+)`[^`]*?:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 100


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files of the example, photos for its list, and the package installed into ``installed``."""
    folder = tmp_path_factory.mktemp("before-after")
    text = (ROOT / "docs/extending.md").read_text("utf-8").split("## What a source says")[0]
    for name, content in FILE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    photos = folder / "data/photos"
    photos.mkdir()
    for number, line in enumerate((folder / "data/changes.tsv").read_text().splitlines()):
        place, change, *_ = line.split("\t")
        # The photo before is the place's own, whatever changes later.
        for name, seed, brighter in ((place, sum(place.encode()), 0), (f"{place}-{change}", number, 60)):
            level = 5 if name == "cellar" else 80
            pixels = np.random.default_rng(seed).integers(level - 5, level + 5, (48, 64, 3), dtype=np.uint8)
            pixels[:, :32] += brighter
            Image.fromarray(pixels).save(photos / f"{name}.png")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", "installed", "."]
    run(folder, *install)
    return folder


def run(folder: Path, *arguments: str) -> str:
    """What a command of this Python prints, with twinset and the installed package at hand."""
    places = os.pathsep.join((str(folder / "installed"), str(ROOT / "src")))
    # Safe: the current folder holds the modules too, and must not come before what is installed.
    environment = {**os.environ, "PYTHONPATH": places, "PYTHONSAFEPATH": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_document_holds_the_whole_package(package: Path) -> None:
    names = ["pyproject.toml", "before_after.py", "dark_frames.py", "recipe.yaml", "test_before_after.py"]
    assert all((package / name).is_file() for name in names)
    assert max(len((package / f"{name}.py").read_text().splitlines()) for name in ("before_after", "dark_frames")) <= (
        MOST_LINES
    )


def test_it_passes_its_own_test(package: Path) -> None:
    assert "1 passed" in run(package, "-m", "pytest", "-q", "--import-mode=importlib", "test_before_after.py")


def test_a_recipe_names_its_kinds(package: Path) -> None:
    code = (
        "from twinset.contracts.recipe import load_recipe; from twinset.contracts.source import FILTERS, SOURCES\n"
        "from twinset.shards.contracts import Context\n"
        "subset = load_recipe('recipe.yaml')['before-after']\n"
        "made = subset.source.open(Context('before-after'))\n"
        "print(len(list(made.plan())), made.excluded.examples)\n"
        "print(SOURCES.distribution('before-after'), FILTERS.distribution('dark'), SOURCES.distribution('gebc') == '')"
    )
    assert run(package, "-c", code).splitlines() == [
        "4 [('wrong-columns', 'changes.tsv line 5')]",
        "before-after 0.1.0 before-after 0.1.0 True",
    ]


@pytest.mark.slow
def test_it_is_built_with_in_other_processes(package: Path) -> None:
    build = ["-m", "twinset.cli.main", "build", "recipe.yaml", "--out", "out", "--runner", "processes"]
    run(package, *build)
    record = IndexRecord.model_validate_json((package / "out/before-after/_meta/index.json").read_bytes())
    assert (record.planned, record.kept) == (4, 3)
    index = pq.read_table(package / "out/before-after/_meta/index.parquet")
    assert index["group"].to_pylist() == ["bridge", "bridge", "park"]
    (rejected,) = pq.read_table(package / "out/before-after/_meta/rejections.parquet").to_pylist()
    assert (rejected["reason"], rejected["identity"]) == ("dark", '["cellar","lamp"]')
    card = (package / "out/before-after/README.md").read_text()
    assert "Before and After" in card and "@misc{before" in card and "the light differs too" in card
    assert "* `before-after 0.1.0`, for source before-after, filter dark\n" in card
    assert "an image is too dark" in card and "lines that are not place, change and two captions" in card
