"""What tests of images share: the lists of requirements, the pools, and a minimal Debian 12 in a folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
DOCKER = CHECKOUT / "docker"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
#: Certificates and names of a machine whose network the folder uses.
NETWORK = (CERTIFICATES, "/etc/resolv.conf", "/etc/hosts")
TRUST = {"SSL_CERT_FILE": CERTIFICATES, "PIP_CERT": CERTIFICATES}


def pools_of_prefect() -> set[str]:
    deployments = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())["deployments"]
    return {deployment["work_pool"]["name"] for deployment in deployments}


def run_pick(*extras: str, folder: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DOCKER / "pick_requirements.py"), *extras]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@cache
def pick(*extras: str) -> str:
    """The requirements of an image with these extras."""
    result = run_pick(*extras)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="session")
def make_debian() -> Callable[[Path, str], None]:
    """Make a minimal Debian with its own Python 3.11 and more packages in a folder."""

    def make(folder: Path, packages: str) -> None:
        if os.getuid() or shutil.which("debootstrap") is None:
            pytest.skip("needs root and debootstrap")
        asked = f"--include=python3,python3-venv,ca-certificates,{packages}"
        made = ["debootstrap", "--variant=minbase", asked, "bookworm", str(folder)]
        done = subprocess.run(made, capture_output=True, text=True)
        if done.returncode:  # such as where no mirror of Debian can be reached
            pytest.skip(f"debootstrap: {(done.stdout + done.stderr)[-500:]}")
        for path in NETWORK:
            shutil.copy(path, folder / path[1:])

    return make
