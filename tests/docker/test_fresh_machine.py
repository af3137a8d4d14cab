"""The README's two commands on a newcomer's machine: a minimal Debian 12 in a folder, with its own Python 3.11.2."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docker.conftest import CHECKOUT, TRUST

# What `make test` passes to pytest: a share, since all of it takes as long there as here, more than CI has left.
SHARE = "tests/contracts tests/cli"
IN_A_FOLDER = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]  # what is mounted and started ends with it


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_readmes_commands_on_a_minimal_debian(make_debian: Callable[[Path, str], None], tmp_path: Path) -> None:
    """An empty environment, a clone of this commit, `make demo`, then `make test`; 12 GB in the end.

    TWINSET_FRESH_TESTS names the tests instead of `SHARE`, as pytest's arguments; empty, it means all of them.
    """
    if os.getuid() or subprocess.run([*IN_A_FOLDER, "true"], capture_output=True).returncode:
        pytest.skip("needs root that may mount")
    debian = tmp_path / "debian"
    tests = os.environ.get("TWINSET_FRESH_TESTS", SHARE)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    script = f"""
    set -eu
    mount -t proc proc {debian}/proc
    mount --rbind /dev {debian}/dev
    chroot {debian} bash -euc 'cd /home/twinset; make demo; make test PYTEST="{tests}"; python3 --version'
    """
    try:
        make_debian(debian, "make,git")
        subprocess.run(["git", "clone", "--quiet", CHECKOUT, debian / "home/twinset"], check=True)
        environment = {"PATH": path, "HOME": "/home", "LANG": "C.UTF-8", **TRUST}
        done = subprocess.run([*IN_A_FOLDER, "bash", "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
        assert done.stdout.endswith("Python 3.11.2\n"), done.stdout[-300:]
        assert (debian / "home/twinset/out/demo/look.html").is_file()
    finally:
        shutil.rmtree(debian, ignore_errors=True)
