"""Prefect's server as docker/compose.yaml sets it up: who has no login, or comes from another site, does nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.end_to_end.conftest import CHECKOUT, contents
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


def test_without_the_login_or_from_another_site_nothing_is_done(closed: PrefectServer) -> None:
    """Else whoever reaches the port, or a page that the operator visits, makes runs of shell commands."""
    url = closed.variables["PREFECT_API_URL"]
    for path in ("/deployments/", "/flows/", "/work_pools/filter", "/admin/settings"):
        replies = httpx.get(url + path, timeout=300), httpx.post(url + path, json={}, timeout=300)
        assert {reply.status_code for reply in replies} == {401}, path
    own = url.removesuffix("/api")
    for origin, allowed in ((EVIL, None), (own, own)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        reply = httpx.request("OPTIONS", f"{url}/deployments/", headers=headers, timeout=300)
        assert reply.headers.get("access-control-allow-origin") == allowed


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
