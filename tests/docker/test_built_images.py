"""The images are built by a real engine, and the demo's cheap subsets are built in one, as its user.

The official base image cannot be had without its registry: in its place there is a minimal Debian 12 whose Python 3.11
stands where that image has its own. The target `minio`, which needs others' images, is not built here.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.minimal_debian import CERTIFICATES, CHECKOUT, install_debian

BASE = "localhost/twinset-test-base"
CHEAP = ("eq-ag", "eq-gebc", "eq-youcook2")
CHROOT = ("--isolation", "chroot")
# ``TWINSET_IMAGES="cpu render gpu"`` builds the others too, which take 10 GB more.
TARGETS = os.environ.get("TWINSET_IMAGES", "cpu").split()


def engine(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run buildah with images of this test alone."""
    own = ["--root", str(folder / "images"), "--runroot", str(folder / "run")]
    done = subprocess.run(["buildah", *own, *arguments], capture_output=True, text=True)
    assert not done.returncode, f"buildah {' '.join(arguments)}: {(done.stdout + done.stderr)[-4000:]}"
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for images, with the base image among them."""
    if shutil.which("buildah") is None:
        pytest.skip("needs buildah")
    folder = tmp_path_factory.mktemp("images")
    debian = folder / "debian"
    install_debian(debian, "python3,python3-venv,python3-pip,ca-certificates")
    for name in ("python3.11", "python3", "python", "pip"):
        (debian / "usr/local/bin" / name).symlink_to("/usr/bin/pip" if name == "pip" else "/usr/bin/python3.11")
    (folder / "Containerfile").write_text(
        f"FROM scratch\nCOPY debian /\nENV SSL_CERT_FILE={CERTIFICATES} PIP_CERT={CERTIFICATES}\n"
    )
    try:
        engine("build", "--quiet", "--tag", BASE, str(folder), folder=folder)
        shutil.rmtree(debian)
        yield folder
    finally:
        engine("rm", "--all", folder=folder)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_images_are_built_and_the_demo_in_one(folder: Path) -> None:
    """Every step of the Dockerfile runs; the demo's files are those that a build in this checkout makes."""
    dockerfile = (CHECKOUT / "docker/Dockerfile").read_text()
    (folder / "Dockerfile").write_text(re.sub(r"^FROM python:\S+", f"FROM {BASE}", dockerfile, flags=re.M))
    for target in TARGETS:
        asked = [*CHROOT, "--layers", "--target", target, "--tag", f"twinset-{target}"]
        engine("build", *asked, "--file", str(folder / "Dockerfile"), str(CHECKOUT), folder=folder)
    only = [word for name in CHEAP for word in ("--only", name)]
    container = engine("from", "twinset-cpu", folder=folder).stdout.strip()
    build = ["twinset", "build", "demo", *only, "--out"]
    engine("run", *CHROOT, container, "--", *build, "/tmp/demo", folder=folder)
    inside = Path(engine("mount", container, folder=folder).stdout.strip(), "tmp/demo")
    here = folder / "here"
    subprocess.run([*build, here], check=True)
    assert digests(inside) == digests(here)


def digests(out: Path) -> dict[str, bytes]:
    """The files of samples and of what is known of them."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    kept = {name: content for name, content in found.items() if name.endswith((".tar", "index.parquet", "sizes.json"))}
    assert len(kept) > 2 * len(CHEAP), sorted(found)
    return kept
