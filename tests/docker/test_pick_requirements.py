"""docker/pick_requirements.py: what each image installs is whole, and is the lock's."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from twinset.generators.kubric_scenes.source import Kubric
from twinset.generators.video.segments import YouCook2

CHECKOUT = Path(__file__).parents[2]
DOCKERFILE = (CHECKOUT / "docker" / "Dockerfile").read_text()
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
IMAGES = dict(
    (file, extras.split())
    for extras, file in re.findall(r"python pick_requirements\.py([a-z ]*) > ([a-z]+)\.txt", DOCKERFILE)
)
# Their own lists of dependencies are not followed, [tool.uv] says why.
NOT_FOLLOWED = {item["name"] for item in PROJECT["tool"]["uv"]["dependency-metadata"]}


def run(*extras: str, folder: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    script = CHECKOUT / "docker" / "pick_requirements.py"
    return subprocess.run([sys.executable, script, *extras], cwd=folder, capture_output=True, text=True)


def pick(*extras: str) -> str:
    result = run(*extras)
    assert result.returncode == 0, result.stderr
    return result.stdout


def names(requirements: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", requirements, flags=re.MULTILINE))


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_lacking(image: str) -> None:
    picked = names(pick(*IMAGES[image]))
    asked = [*PROJECT["project"]["dependencies"]]
    for extra in IMAGES[image]:
        asked += PROJECT["project"]["optional-dependencies"][extra]
    assert {canonicalize_name(Requirement(one).name) for one in asked} <= picked
    for name in sorted(picked - NOT_FOLLOWED):
        for need in map(Requirement, distribution(name).requires or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in picked, f"{name} needs {need}"


@pytest.mark.parametrize("image", IMAGES)
def test_versions_and_hashes_are_the_locks(image: str) -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    entries = re.split(r"^(?=[a-z])", pick(*IMAGES[image]), flags=re.MULTILINE)
    assert all(entry in lock and (not entry or "--hash=sha256:" in entry) for entry in entries)


def test_images_are_small_and_have_the_libraries_whose_versions_plans_record() -> None:
    """Each image is made from `cpu`; the worker that plans has the image `render`."""
    picked = {image: names(pick(*IMAGES[image])) for image in IMAGES}
    base, cpu, render, gpu = (picked[image] for image in ("base", "cpu", "render", "gpu"))
    assert base < cpu < gpu and len(picked) == 4
    assert not (cpu | render) & {"torch", "triton", "nvidia-cublas", "ray", "pytest", "moto"}
    assert "bpy" not in gpu and {*YouCook2.libraries} <= cpu and {*Kubric.libraries} <= cpu | render


def test_all_extras_are_the_whole_lock() -> None:
    everything = pick(*PROJECT["project"]["optional-dependencies"])
    assert everything == (CHECKOUT / "requirements.lock").read_text()


def test_an_unknown_extra_and_a_lock_that_is_behind_are_refused(tmp_path: Path) -> None:
    result = run("faecs")
    assert result.returncode == 1 and "faecs" in result.stderr and "faces" in result.stderr
    (tmp_path / "pyproject.toml").write_bytes((CHECKOUT / "pyproject.toml").read_bytes())
    lock = (CHECKOUT / "requirements.lock").read_text()
    (tmp_path / "requirements.lock").write_text(re.sub(r"^numpy==[^#]*(?:# .*\n\s*)*", "", lock, flags=re.MULTILINE))
    result = run(folder=tmp_path)
    assert result.returncode == 1 and "numpy" in result.stderr and "make lock" in result.stderr
