"""The README's two commands on a newcomer's machine: a minimal Debian 12 in a folder, with its own Python 3.11.2."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.minimal_debian import CERTIFICATES, CHECKOUT, install_debian

PACKAGES = "python3,python3-venv,make,git,ca-certificates"
# What `make test` passes to pytest: a share, since all of it takes as long there as here, more than CI has left.
SHARE = "tests/contracts tests/cli/test_processes.py"
IN_A_FOLDER = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]  # what is mounted and started ends with it


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[Path]:
    """A folder with a minimal Debian 12; it needs 12 GB in the end, and goes when the test does."""
    if subprocess.run([*IN_A_FOLDER, "true"], capture_output=True).returncode:
        pytest.skip("this root may not mount")
    root = tmp_path / "debian"
    try:
        install_debian(root, PACKAGES)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_readmes_commands_on_a_minimal_debian(debian: Path) -> None:
    """An empty environment, a clone of this commit, `make demo`, then `make test`.

    TWINSET_FRESH_TESTS names the tests instead of `SHARE`, as pytest's arguments; empty, it means all of them.
    """
    subprocess.run(["git", "clone", "--quiet", CHECKOUT, debian / "home/twinset"], check=True)
    environment = dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), CERTIFICATES)
    environment |= {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home", "LANG": "C.UTF-8"}
    tests = os.environ.get("TWINSET_FRESH_TESTS", SHARE)
    script = f"""
    set -eu
    mount -t proc proc {debian}/proc
    mount --rbind /dev {debian}/dev
    chroot {debian} bash -euc 'cd /home/twinset; make demo; make test PYTEST="{tests}"; python3 --version'
    """
    done = subprocess.run([*IN_A_FOLDER, "bash", "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert done.stdout.endswith("Python 3.11.2\n"), done.stdout[-300:]
    assert (debian / "home/twinset/out/demo/look.html").is_file()
