"""The README's two commands on a newcomer's machine: a minimal Debian 12 in a folder, with its own Python 3.11.2."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = "python3,python3-venv,make,git,ca-certificates"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# What `make test` passes to pytest: a share, since all of it takes as long there as here, more than CI has left.
SHARE = "tests/contracts tests/cli/test_processes.py"
IN_A_FOLDER = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]  # what is mounted and started ends with it


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[Path]:
    """A folder with a minimal Debian 12; it needs 12 GB in the end, and goes when the test does."""
    if os.getuid() or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    if subprocess.run([*IN_A_FOLDER, "true"], capture_output=True).returncode:
        pytest.skip("this root may not mount")
    root = tmp_path / "debian"
    try:
        made = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
        done = subprocess.run(made, capture_output=True, text=True)
        if done.returncode:  # such as where no mirror of Debian can be reached
            pytest.skip(f"debootstrap: {(done.stdout + done.stderr)[-500:]}")
        for network in (CERTIFICATES, "/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(network, root / network[1:])
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
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/home",
        "LANG": "C.UTF-8",
        "SSL_CERT_FILE": CERTIFICATES,
        "PIP_CERT": CERTIFICATES,
    }
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
