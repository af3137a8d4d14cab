"""A minimal Debian 12 in a folder, for tests that need a machine on which nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def install_debian(root: Path, packages: str) -> None:
    """Write Debian 12 with some packages, and this machine's network. The test is skipped where that cannot be done."""
    if os.getuid() or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    command = ["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(root)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:  # such as where no mirror of Debian can be reached
        pytest.skip(f"debootstrap: {(done.stdout + done.stderr)[-500:]}")
    for network in (CERTIFICATES, "/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(network, root / network[1:])
