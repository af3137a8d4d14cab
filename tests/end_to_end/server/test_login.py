"""Prefect's server as docker/compose.yaml sets it up: who has no login, or comes from another site, does nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.cached_builds import CHECKOUT
from tests.end_to_end.conftest import contents
from tests.end_to_end.server.conftest import PrefectServer

pytestmark = pytest.mark.slow
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


def test_requests_without_the_login_are_refused(closed: PrefectServer) -> None:
    """Whoever reaches the port makes a deployment whose pull step runs shell commands."""
    with httpx.Client(base_url=closed.variables["PREFECT_API_URL"], timeout=300) as client:
        for path in ("/deployments/", "/flows/", "/work_pools/filter", "/admin/settings"):
            assert client.get(path).status_code == 401 == client.post(path, json={}).status_code, path
        assert client.get("/health").status_code == 200


def test_pages_of_other_sites_get_no_permission(closed: PrefectServer) -> None:
    """A page that the operator visits asks the API on loopback through the operator's browser."""
    url = closed.variables["PREFECT_API_URL"]
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for origin, allowed in ((EVIL, None), (url.removesuffix("/api"), url.removesuffix("/api"))):
        for method in ("OPTIONS", "POST"):
            reply = httpx.request(method, f"{url}/deployments/", headers={"Origin": origin, **wants}, timeout=300)
            assert reply.headers.get("access-control-allow-origin") == allowed, (origin, method)


def test_a_build_with_the_login_works_and_without_is_told_so(
    closed: PrefectServer, twinset: Any, small_recipe: Path, reference: Path, tmp_path: Path
) -> None:
    without = {**closed.variables, "PREFECT_API_AUTH_STRING": ""}
    refused = twinset("build", small_recipe, "--out", tmp_path / "none", **without)
    assert refused.returncode == 1 and "set PREFECT_API_AUTH_STRING" in refused.stderr, refused.stderr
    assert not (tmp_path / "none").exists()
    result = twinset("build", small_recipe, "--out", tmp_path / "out", "--workers", "2", **closed.variables)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(reference)
