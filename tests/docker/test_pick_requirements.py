"""docker/pick_requirements.py: what each image installs is whole, and is the lock's."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.docker.conftest import CHECKOUT, DOCKER, pick, run_pick

DOCKERFILE = (DOCKER / "Dockerfile").read_text()
LOCK = (CHECKOUT / "requirements.lock").read_text()
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
IMAGES = dict(
    (file, extras.split())
    for extras, file in re.findall(r"python pick_requirements\.py([a-z ]*) > ([a-z]+)\.txt", DOCKERFILE)
)
# Their own lists of dependencies are not followed, [tool.uv] says why.
NOT_FOLLOWED = {item["name"] for item in PROJECT["tool"]["uv"]["dependency-metadata"]}


def names(requirements: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", requirements, flags=re.MULTILINE))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_lacking(image: str) -> None:
    requirements = pick(*IMAGES[image])
    for entry in re.split(r"^(?=[a-z])", requirements, flags=re.MULTILINE):
        assert entry in LOCK and (not entry or "--hash=sha256:" in entry), "of another version than the lock's"
    picked = names(requirements)
    asked = [*PROJECT["project"]["dependencies"]]
    for extra in IMAGES[image]:
        asked += PROJECT["project"]["optional-dependencies"][extra]
    assert {normalised(Requirement(line).name) for line in asked} <= picked
    for name in sorted(picked - NOT_FOLLOWED):
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            pytest.fail(f"{name} of requirements.lock is not installed: make env")
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert normalised(need.name) in picked, f"{name} needs {need}"


def test_images_are_small_and_all_extras_are_the_whole_lock() -> None:
    picked = {image: names(pick(*extras)) for image, extras in IMAGES.items()}
    assert picked.keys() == {"base", "cpu", "render", "gpu"} and IMAGES["base"] == []
    assert set(IMAGES["cpu"]) < set(IMAGES["gpu"])  # the gpu image is made from the cpu image
    assert picked["base"] < picked["cpu"] < picked["gpu"]
    for image in ("cpu", "render"):
        assert not picked[image] & {"torch", "triton", "nvidia-cublas", "ray", "pytest", "moto"}
    assert "bpy" not in picked["gpu"] and "bpy" in picked["render"]
    assert pick(*PROJECT["project"]["optional-dependencies"]) == LOCK


def test_a_lock_that_is_behind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((CHECKOUT / "pyproject.toml").read_bytes())
    (tmp_path / "requirements.lock").write_text(re.sub(r"^numpy==[^#]*(?:# .*\n\s*)*", "", LOCK, flags=re.MULTILINE))
    result = run_pick(folder=tmp_path)
    assert result.returncode == 1 and "numpy" in result.stderr and "make lock" in result.stderr
