"""Prefect's server as docker/compose.yaml sets it up: who has no login, or comes from another site, does nothing."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cached_builds import CHECKOUT
from tests.end_to_end.server.conftest import PrefectServer

LOGIN, EVIL = "anna:a word of her own", "https://evil.example"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[PrefectServer]:
    """A server with compose's settings of logins and origins."""
    compose = yaml.safe_load((CHECKOUT / "docker" / "compose.yaml").read_text())["services"]
    written = {**compose["server"]["environment"], **compose["main"]["environment"]}
    server = PrefectServer(tmp_path_factory.mktemp("prefect"), environment)
    own = server.variables["PREFECT_API_URL"].removesuffix("/api")
    server.variables |= {name: LOGIN for name in written if name.endswith("_API_AUTH_STRING")}
    server.variables |= {name: own for name in written if name.endswith("_CORS_ALLOWED_ORIGINS")}
    try:
        server.start()
        yield server
    finally:
        server.end()


def asked(server: PrefectServer, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    request = urllib.request.Request(
        server.variables["PREFECT_API_URL"] + path, b"{}" if method == "POST" else None, headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, {name.lower(): value for name, value in reply.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, {name.lower(): value for name, value in error.headers.items()}


@pytest.mark.slow
def test_requests_without_the_login_are_refused(closed: PrefectServer) -> None:
    """Whoever reaches the port makes a deployment whose pull step runs shell commands."""
    for path in ("/deployments/", "/flows/", "/work_pools/filter", "/admin/settings"):
        for method in ("GET", "POST"):
            assert asked(closed, method, path, **{"Content-Type": "application/json"})[0] == 401, (method, path)
    assert asked(closed, "GET", "/health")[0] == 200


@pytest.mark.slow
def test_pages_of_other_sites_get_no_permission(closed: PrefectServer) -> None:
    """A page that the operator visits asks the API on loopback through the operator's browser."""
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    own = closed.variables["PREFECT_API_URL"].removesuffix("/api")
    for method in ("OPTIONS", "POST"):
        _, foreign = asked(closed, method, "/deployments/", Origin=EVIL, **wants)
        assert "access-control-allow-origin" not in foreign
        _, from_page = asked(closed, method, "/deployments/", Origin=own, **wants)
        assert from_page.get("access-control-allow-origin") == own


@pytest.mark.slow
def test_a_build_with_the_login_works_and_without_is_told_so(
    closed: PrefectServer, twinset: Any, small_recipe: Path, contents: Any, reference: Path, tmp_path: Path
) -> None:
    without = {**closed.variables, "PREFECT_API_AUTH_STRING": ""}
    refused = twinset("build", small_recipe, "--out", tmp_path / "none", **without)
    assert refused.returncode == 1 and "set PREFECT_API_AUTH_STRING" in refused.stderr, refused.stderr
    assert not (tmp_path / "none").exists()
    result = twinset("build", small_recipe, "--out", tmp_path / "out", "--workers", "2", **closed.variables)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(reference)
