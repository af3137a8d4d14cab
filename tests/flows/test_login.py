"""An API of Prefect that anybody can use is named: who reaches it runs commands on the workers."""

from typing import Any

import httpx
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from twinset.contracts.errors import WrongUse
from twinset.flows import login
from twinset.flows.models import evaluate, train


@pytest.mark.parametrize(
    ("url", "status", "warned"),
    [
        ("http://server.example:4200/api", 200, True),
        ("http://192.0.2.1:4200/api/", 200, True),
        ("http://[2001:db8::1]:4200/api", 200, True),
        ("http://server.example:4200/api", 401, False),
        ("http://server.example:4200/api", None, False),
        ("http://127.0.0.1:4200/api", 200, False),
        ("http://localhost:4200/api", 200, False),
        ("http://[::1]:4200/api", 200, False),
    ],
)
def test_an_open_api_that_others_reach_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, status: int | None, warned: bool
) -> None:
    def get(asked: str, **settings: Any) -> httpx.Response:
        assert asked == url.rstrip("/") + "/admin/version" and not {"headers", "auth"} & set(settings)
        if status is None:
            raise httpx.ConnectError("nobody answers")
        return httpx.Response(status)

    monkeypatch.setattr(httpx, "get", get)
    login._warn.cache_clear()
    with temporary_settings({PREFECT_API_URL: url}):
        login.warn_without_login()
        login.warn_without_login()
    said = capsys.readouterr().err
    assert said.count("asks for no login") == said.count("PREFECT_API_AUTH_STRING") == int(warned)


def test_flows_of_models_warn_as_those_of_builds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr("twinset.flows.models.warn_without_login", lambda: warned.append("once"))
    with pytest.raises(WrongUse):
        evaluate.fn([], [], "out")
    with pytest.raises(WrongUse):
        train.fn([], "out")
    assert len(warned) == 2
