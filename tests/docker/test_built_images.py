"""The images are built by a real engine, and the demo's cheap subsets are built in one, as its user.

The official base image cannot be had without its registry: in its place there is a minimal Debian 12 whose Python 3.11
stands where that image has its own. The target `minio`, which needs others' images, is not built here.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.conftest import CHECKOUT, DOCKER, TRUST

BASE = "localhost/twinset-test-base"
CHEAP = [f"--only={name}" for name in ("eq-ag", "eq-gebc", "eq-youcook2")]
# ``TWINSET_IMAGES="cpu render gpu"`` builds the others too, which take 10 GB more.
TARGETS = os.environ.get("TWINSET_IMAGES", "cpu").split()
Engine = Callable[..., str]


@pytest.fixture
def engine(tmp_path: Path, make_debian: Callable[[Path, str], None]) -> Iterator[Engine]:
    """Run buildah with images of this test alone, with the base image among them; what it printed."""
    if os.getuid() or shutil.which("buildah") is None:
        pytest.skip("needs root and buildah")
    places = ["--root", str(tmp_path / "images"), "--runroot", str(tmp_path / "run")]

    def run(*arguments: str | Path) -> str:
        done = subprocess.run(["buildah", *places, *arguments], capture_output=True, text=True)
        assert not done.returncode, f"buildah {arguments[0]}: {(done.stdout + done.stderr)[-4000:]}"
        return done.stdout.strip()

    debian = tmp_path / "debian"
    make_debian(debian, "python3-pip")
    for name, program in (("python3.11", "python3.11"), ("python", "python3.11"), ("pip", "pip")):
        (debian / "usr/local/bin" / name).symlink_to(f"/usr/bin/{program}")
    trust = " ".join(f"{name}={value}" for name, value in TRUST.items())
    (tmp_path / "Containerfile").write_text(f"FROM scratch\nCOPY debian /\nENV {trust}\n")
    try:
        run("build", "--quiet", "--tag", BASE, tmp_path)
        shutil.rmtree(debian)
        yield run
    finally:
        subprocess.run(["buildah", *places, "rm", "--all"], check=False)
        shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_images_are_built_and_the_demo_in_one(engine: Engine, tmp_path: Path) -> None:
    """Every step of the Dockerfile runs; the demo's files are those that a build in this checkout makes."""
    dockerfile, here = tmp_path / "Dockerfile", tmp_path / "here"
    text = (DOCKER / "Dockerfile").read_text()
    dockerfile.write_text(re.sub(r"^FROM python:\S+", f"FROM {BASE}", text, flags=re.M))
    for target in TARGETS:
        tag = ("--target", target, "--tag", f"twinset-{target}")
        engine("build", "--isolation", "chroot", "--layers", *tag, "--file", dockerfile, CHECKOUT)
    container = engine("from", "twinset-cpu")
    engine("run", "--isolation", "chroot", container, "--", "twinset", "build", "demo", *CHEAP, "--out", "/tmp/demo")
    subprocess.run(["twinset", "build", "demo", *CHEAP, "--out", here], check=True)
    assert samples(Path(engine("mount", container), "tmp/demo")) == samples(here)


def samples(out: Path) -> dict[str, bytes]:
    paths = [path for path in out.rglob("*") if path.name.endswith((".tar", "index.parquet", "sizes.json"))]
    assert len(paths) > 2 * len(CHEAP)
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}
