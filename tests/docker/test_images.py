"""The Dockerfile and the compose file agree with the checkout; images are built nowhere in these tests."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.docker.conftest import CHECKOUT, DOCKER, pick, pools_of_prefect
from twinset.generators.kubric_scenes.source import Kubric
from twinset.generators.video.action_genome import ActionGenome
from twinset.generators.video.gebc import Gebc
from twinset.generators.video.segments import YouCook2

# Instructions, each on one line, comments left out.
DOCKERFILE = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.M))
INSTRUCTIONS = [line for line in DOCKERFILE.split("\n") if line]
STAGES = {words[3] for line in INSTRUCTIONS if (words := line.split())[0] == "FROM"}
IGNORED = [line for line in (CHECKOUT / ".dockerignore").read_text().split("\n") if line and not line.startswith("#")]
COMPOSE = (DOCKER / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
VARIABLES = dict(re.findall(r"\$\{(\w+)([^}]*)\}", COMPOSE))
SECRETS = {name for name in VARIABLES if re.search("PASSWORD|USER|AUTH", name)}
WORKERS = {
    name: service
    for name, service in SERVICES.items()
    if service.get("command", [])[:3] == ["prefect", "worker", "start"]
}


def test_the_context_holds_what_images_copy_and_the_rooms_but_no_secret() -> None:
    """.dockerignore lets in by the name at the top alone."""
    let_in = {line.removeprefix("!") for line in IGNORED if line.startswith("!")}
    copied = re.findall(r"--mount=type=bind,source=([^,\s]+)", DOCKERFILE)
    for line in INSTRUCTIONS:
        if line.startswith("COPY") and "--from" not in line:
            copied += [word for word in line.split()[1:-1] if not word.startswith("--")]
    assert {"docker/uv.lock", "requirements.lock", "docker/system_libraries.sh"} <= set(copied)
    assert [path for path in copied if not (CHECKOUT / path).exists()] == []
    rooms = {path.name for path in (CHECKOUT / "src/twinset").iterdir() if path.is_symlink()}
    shipped = {"src", "demo", "prefect.yaml", "README.md", "LICENSE", *rooms}
    assert shipped | {Path(path).parts[0] for path in copied if path != "."} <= let_in
    assert IGNORED[0] == "*" and not let_in & {".git", ".venv", "out", "tests"} and "docker/.env" in IGNORED


def test_each_pool_is_created_and_has_a_worker_with_what_it_needs() -> None:
    created = re.search(r"^for pool in ([a-z ]+);", (DOCKER / "deploy.sh").read_text(), flags=re.MULTILINE)
    assert created is not None and set(created[1].split()) == WORKERS.keys() == pools_of_prefect()
    for name, service in WORKERS.items():
        assert f"--pool {name} --type process" in shlex.join(service["command"])
        assert service["build"]["target"] == (name if name in STAGES else "render")
        assert service["environment"]["PREFECT_API_URL"] == "http://server:4200/api"
        assert service["depends_on"]["deploy"]["condition"] == "service_completed_successfully"
        assert "--with-healthcheck" in service["command"] and "8080/health" in str(service["healthcheck"])
    (device,) = SERVICES["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and device["capabilities"] == ["gpu"]


def installed(target: str) -> set[str]:
    """Distributions of an image: of all lists that its stage and those below it install."""
    stages = {words[2]: (words[0], body) for body in DOCKERFILE.split("FROM ")[1:] if len(words := body.split()) > 2}
    names: set[str] = set()
    while target in stages:
        target, body = stages[target]
        for name in re.findall(r"-r /tools/(\w+\.txt)", body):
            (extras,) = re.findall(rf"pick_requirements\.py([a-z ]*) > {name}", DOCKERFILE)
            names |= set(re.findall(r"^([\w.-]+)==", pick(*extras.split()), flags=re.MULTILINE))
    return names


def test_who_plans_has_all_whose_versions_plans_record() -> None:
    planner = installed(SERVICES["main"]["build"]["target"])
    for generator in (ActionGenome, Gebc, YouCook2, Kubric):
        maker = installed("render" if generator is Kubric else "cpu")
        assert set(generator.libraries) <= planner & maker, generator


def test_no_secret_is_written_and_every_variable_is_explained() -> None:
    example = (DOCKER / ".env.example").read_text()
    assert len(SECRETS) == 5
    for name, rest in VARIABLES.items():
        assert rest.startswith(":?" if name in SECRETS else ":-"), f"{name}: required or with a default"
        # `:?` refuses what is empty: the example starts nothing until it was filled in.
        shown = f"{name}=" if name in SECRETS else f"#{name}=.+"
        assert re.search(rf"^{shown}$", example, flags=re.MULTILINE), f"{name} is not so in .env.example"
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|AUTH_STRING", key):
                assert str(value).startswith("${"), key
    ignored = subprocess.run(["git", "check-ignore", "-q", "docker/.env"], cwd=CHECKOUT)
    assert ignored.returncode == 0 or not (CHECKOUT / ".git").exists()


def test_passwords_are_generated_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    for name in ("env.sh", ".env.example"):
        shutil.copy(DOCKER / name, tmp_path)
    made = subprocess.run(["bash", tmp_path / "env.sh"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    written = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines() if line[0:1].isalpha())
    assert written.keys() == SECRETS
    assert len({*written.values()}) == len(written) and all(len(password) >= 48 for password in written.values())
    assert written["PREFECT_AUTH_STRING"].startswith("twinset:")
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    again = subprocess.run(["bash", tmp_path / "env.sh"], capture_output=True, text=True)
    assert again.returncode and "cannot overwrite existing file" in again.stderr


def test_ports_are_published_on_this_machine_only_and_no_image_runs_as_root() -> None:
    users = [line.split()[1] for line in INSTRUCTIONS if line.startswith("USER")]
    assert len(users) == 4 and not {user.split(":")[0] for user in users} & {"0", "root"}
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 3 and all(port.startswith("127.0.0.1:") for port in ports)


def test_foreign_images_are_pinned_and_minio_has_its_fix() -> None:
    """A tag can be given to another image; by CVE-2025-62506 an account of MinIO got rid of its restrictions."""
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    images += [line.split()[1] for line in INSTRUCTIONS if line.startswith("FROM") and line.split()[1] not in STAGES]
    assert len(images) == 5
    assert all(re.fullmatch(r"[\w/]+:[\w.-]*\d[\w.-]*@sha256:[0-9a-f]{64}", image) for image in images), images
    assert len({image for image in images if image.startswith("python:")}) == 1
    [release] = re.findall(r"github\.com/minio/minio@RELEASE\.(\S+)", DOCKERFILE)
    assert release >= "2025-10-15T17-29-55Z" and "minio/minio:" not in COMPOSE


def test_workers_hold_no_more_than_their_own_passwords_and_prefects_api_asks_for_one() -> None:
    """A worker runs recipes of others: what it holds, a hole in a library gives away. test_login asks a real server."""
    holders = {name for name, service in SERVICES.items() if "MINIO_ROOT" in str(service.get("environment", ""))}
    assert holders == {"minio", "bucket"}
    server = SERVICES["server"]["environment"]
    for name, service in WORKERS.items():
        held = {key: value for key, value in service["environment"].items() if re.search("PASSWORD|SECRET|AUTH", key)}
        assert held.keys() == {"PREFECT_API_AUTH_STRING", "AWS_SECRET_ACCESS_KEY"}, name
        assert "BUCKET_PASSWORD" in held["AWS_SECRET_ACCESS_KEY"]
        assert held["PREFECT_API_AUTH_STRING"] == server["PREFECT_SERVER_API_AUTH_STRING"]
    assert server["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] == "http://127.0.0.1:${PREFECT_PORT:-4200}"


def test_scripts_are_bash() -> None:
    for script in DOCKER.rglob("*.sh"):
        checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        assert "set -euo pipefail" in script.read_text()
