"""The Dockerfile and the compose file agree with the checkout; images are built nowhere in these tests."""

import re
import shlex
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from setuptools import find_packages

CHECKOUT = Path(__file__).parents[2]
DOCKER = CHECKOUT / "docker"
# Instructions, each on one line, comments left out.
DOCKERFILE = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.M))
INSTRUCTIONS = [line for line in DOCKERFILE.split("\n") if line]
STAGES = {words[3] for line in INSTRUCTIONS if (words := line.split())[0] == "FROM"}
IGNORED = [line for line in (CHECKOUT / ".dockerignore").read_text().split("\n") if line and not line.startswith("#")]
COMPOSE_TEXT = (DOCKER / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VARIABLES = re.findall(r"\$\{(\w+)([^}]*)\}", COMPOSE_TEXT)
EXAMPLE = (DOCKER / ".env.example").read_text()
WORKERS = {name: one for name, one in SERVICES.items() if one.get("command", [])[:3] == ["prefect", "worker", "start"]}


def in_context(path: str) -> bool:
    """Whether the build sees a path: .dockerignore's last line that fits decides."""
    seen = True
    for line in IGNORED:
        pattern = line.removeprefix("!").removeprefix("**/")
        if fnmatch(path, pattern) or fnmatch(Path(path).name, pattern) or path.startswith(f"{pattern}/"):
            seen = line.startswith("!")
    return seen


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    copied = []
    for line in INSTRUCTIONS:
        if line.startswith("COPY") and "--from" not in line:
            copied += [word for word in line.split()[1:-1] if not word.startswith("--")]
        for mount in re.findall(r"--mount=(\S+)", line):
            given = dict(item.split("=", 1) for item in mount.split(","))
            if given["type"] == "bind" and "from" not in given:
                copied.append(given["source"])
    assert {"docker/uv.lock", "requirements.lock", "docker/system_libraries.sh"} <= set(copied)
    for path in copied:
        assert path == "." or ((CHECKOUT / path).is_file() and in_context(path)), path


def test_every_room_goes_into_the_images_and_nothing_else() -> None:
    found = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    (sources,) = found["where"]
    packages = find_packages(str(CHECKOUT / sources))
    assert {"twinset", "twinset.cli", "twinset.flows", "twinset.generators.video"} <= set(packages)
    for package in packages:
        place = (CHECKOUT / sources / package.replace(".", "/")).resolve().relative_to(CHECKOUT)
        assert in_context(f"{place}/__init__.py"), package
    for room in (CHECKOUT / sources / "twinset").iterdir():
        if room.is_symlink():
            assert in_context(f"{sources}/twinset/{room.name}"), room
    for path in ("prefect.yaml", "demo/pyproject.toml", "flows/zombies.yaml", "docker/deploy.sh", "README.md"):
        assert (CHECKOUT / path).is_file() and in_context(path), path
    for path in ("docker/.env", ".git/config", ".venv/bin/python", "out/demo/look.html", "tests/conftest.py"):
        assert not in_context(path), path


def test_each_pool_is_created_and_has_a_worker_with_what_it_needs() -> None:
    pools = {name: shlex.join(one["command"]) for name, one in WORKERS.items()}
    deployments = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())["deployments"]
    assert pools.keys() == {deployment["work_pool"]["name"] for deployment in deployments}
    assert all(f"--pool {name} --type process" in command for name, command in pools.items())
    created = re.search(r"^for pool in ([a-z ]+);", (DOCKER / "deploy.sh").read_text(), flags=re.MULTILINE)
    assert created is not None and set(created[1].split()) == pools.keys()

    for name, service in WORKERS.items():
        assert service["build"]["target"] == (name if name in STAGES else "render")
        assert service["environment"]["PREFECT_API_URL"] == "http://server:4200/api"
        assert service["depends_on"]["deploy"]["condition"] == "service_completed_successfully"
        assert "--with-healthcheck" in service["command"] and "8080/health" in str(service["healthcheck"])
    (device,) = SERVICES["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and device["capabilities"] == ["gpu"]


def test_no_secret_is_written_and_every_variable_is_explained() -> None:
    secrets = {name for name, rest in VARIABLES if re.search("PASSWORD|USER|AUTH", name)}
    assert len(secrets) == 5
    for name, rest in VARIABLES:
        assert rest.startswith(":?" if name in secrets else ":-"), f"{name}: required or with a default"
        # `:?` refuses what is empty: the example starts nothing until it was filled in.
        shown = f"{name}=" if name in secrets else f"#{name}=.+"
        assert re.search(rf"^{shown}$", EXAMPLE, flags=re.MULTILINE), f"{name} is not so in .env.example"
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|AUTH_STRING", key):
                assert str(value).startswith("${"), key


def test_passwords_are_generated_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    for name in ("env.sh", ".env.example"):
        shutil.copy(DOCKER / name, tmp_path)
    made = subprocess.run(["bash", tmp_path / "env.sh"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    written = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines() if line[0:1].isalpha())
    assert written.keys() == {name for name, rest in VARIABLES if rest.startswith(":?")}
    assert len({*written.values()}) == len(written) and all(len(one) >= 48 for one in written.values())
    assert written["PREFECT_AUTH_STRING"].startswith("twinset:")
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    again = subprocess.run(["bash", tmp_path / "env.sh"], capture_output=True, text=True)
    assert again.returncode and "cannot overwrite existing file" in again.stderr


def test_ports_are_published_on_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 3 and all(port.startswith("127.0.0.1:") for port in ports)
    origins = SERVICES["server"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    assert origins == "http://127.0.0.1:${PREFECT_PORT:-4200}", "by default Prefect answers any page"


def test_foreign_images_are_pinned_and_no_image_runs_as_root() -> None:
    """A tag can be given to another image, by its makers or by who took their account."""
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    images += [line.split()[1] for line in INSTRUCTIONS if line.startswith("FROM") and line.split()[1] not in STAGES]
    users = [line for line in INSTRUCTIONS if line.startswith("USER")]
    assert len(images) == 5 and users == ["USER 1000:1000"] * 4
    assert all(re.fullmatch(r"[\w/]+:[\w.-]*\d[\w.-]*@sha256:[0-9a-f]{64}", image) for image in images), images
    assert len({image for image in images if image.startswith("python:")}) == 1
    [release] = re.findall(r"github\.com/minio/minio@RELEASE\.(\S+)", DOCKERFILE)
    assert release >= "2025-10-15T17-29-55Z", "CVE-2025-62506: restricted accounts made unrestricted ones"


def test_nothing_but_minio_and_what_makes_its_user_holds_the_root_password() -> None:
    """A worker runs recipes of others: what it holds, a hole in a library gives away."""
    holders = {name for name, one in SERVICES.items() if "MINIO_ROOT" in str(one.get("environment", ""))}
    assert holders == {"minio", "bucket"}
    for name, service in WORKERS.items():
        held = {key for key in service["environment"] if re.search("PASSWORD|SECRET|AUTH", key)}
        assert held == {"PREFECT_API_AUTH_STRING", "AWS_SECRET_ACCESS_KEY"}, name
        assert "BUCKET_PASSWORD" in service["environment"]["AWS_SECRET_ACCESS_KEY"]


@pytest.mark.parametrize("script", sorted(str(path.relative_to(DOCKER)) for path in DOCKER.rglob("*.sh")))
def test_scripts_are_bash(script: str) -> None:
    checked = subprocess.run(["bash", "-n", str(DOCKER / script)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "set -euo pipefail" in (DOCKER / script).read_text()
