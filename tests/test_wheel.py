"""The wheel by itself: what `pip install twinset` gives where neither the checkout nor the lock is at hand."""

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.made_recipe import ROOT, run, write_recipe
from twinset_demo import MINIATURE

UV = Path(sys.executable).parent / "uv"


def test_data_files_beside_modules_are_packed() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data_files = {
        path
        for package, patterns in packed.items()
        for pattern in patterns
        for path in ROOT.joinpath("src", *package.split(".")).glob(pattern)
    }
    endings = ("*.yaml", "*.j2", "*.sql", "*.toml")
    listed = subprocess.run(["git", "ls-files", *endings], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rooms = {path.name for path in (ROOT / "src" / "twinset").iterdir() if path.is_dir()}
    beside = {ROOT / name for name in listed.split() if {*Path(name).parts[:3]} & rooms and "tests" not in name}
    # Those that no code reads are for Prefect's command line, from the checkout.
    assert beside - {path.resolve() for path in data_files} == {
        ROOT / "flows/failures.yaml",
        ROOT / "flows/zombies.yaml",
    }


@pytest.mark.slow
def test_the_wheel_alone_plans_and_builds(tmp_path: Path) -> None:
    """In an empty environment, with the newest versions that its metadata admit, from the configured package index."""
    subprocess.run(["git", "clone", "--quiet", ROOT, tmp_path / "twinset"], check=True)
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, tmp_path / "twinset"], check=True)
    wheel = next(tmp_path.glob("*.whl"))
    assert wheel.stat().st_size <= 20_000_000
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"twinset"}

    venv.create(tmp_path / "env")
    python = tmp_path / "env/bin/python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    user = tmp_path / "user"
    user.mkdir()
    write_recipe(user)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(user)}

    def twinset(*arguments: str) -> str:
        return run([tmp_path / "env/bin/twinset", *arguments], user, environment)

    folder = MINIATURE / "action_genome"
    places = {"annotations": folder / "annotations.pkl", "media": folder / "videos"}
    eq_ag = ["eqben", "--only", "eq-ag", *(f"--set=subsets.eq-ag.source.{key}={path}" for key, path in places.items())]
    for name, recipe, kept in (("pairs", ["recipe.yaml"], "6"), ("eq-ag", eq_ag, "87")):
        twinset("plan", *recipe)
        twinset("build", *recipe, "--out", name)
        assert twinset("verify", name).split()[-2:] == [kept, "0"]
