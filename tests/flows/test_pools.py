"""Pools that take no runs."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prefect.client.schemas.objects import WorkPoolStatus
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from twinset.contracts.errors import BuildFailed
from twinset.flows import pools

#: What a server knows: the pool of each deployment, and the pools' states.
DEPLOYED = {"build-shards/cpu": "cpu", "build-shards/render": "render", "build-shards/gpu": "gpu", "train/gpu": None}
STATES = {"cpu": WorkPoolStatus.READY, "render": WorkPoolStatus.PAUSED, "gpu": WorkPoolStatus.NOT_READY}


REQUEST = httpx.Request("GET", "http://127.0.0.1/api")


class Server:
    """Stands in for Prefect's client."""

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None: ...

    def read_deployment_by_name(self, name: str) -> Any:
        if name not in DEPLOYED:
            raise ObjectNotFound(Exception())
        return SimpleNamespace(work_pool_name=DEPLOYED[name])

    def read_work_pool(self, name: str) -> Any:
        return SimpleNamespace(status=STATES[name])


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "get_client", lambda sync_client: Server())
    monkeypatch.setattr(pools, "get_run_logger", lambda: logging.getLogger("run"))


def test_all_that_is_missing_is_named_with_what_makes_it() -> None:
    """Runs failed with `ObjectNotFound: None`, or waited for ever; `prefect deploy --all` stops at an absent pool."""
    with pytest.raises(BuildFailed) as error:
        pools.check_pools(["build-shards/mine", "build-shards/cpu", "train/cpu", "train/gpu"])
    said = str(error.value)
    assert said.startswith(
        "Prefect has no deployment build-shards/mine, Prefect has no deployment train/cpu, "
        "the work pool of Prefect's deployment train/gpu was deleted; run prefect work-pool create"
    )
    assert "prefect --no-prompt deploy --all" in said


def test_pools_that_wait_are_named_with_what_starts_them(caplog: pytest.LogCaptureFixture) -> None:
    pools.check_pools(DEPLOYED.keys() - {"train/gpu"})
    assert [record.getMessage() for record in caplog.records] == [
        "work pool gpu has no worker, so its runs wait; run prefect worker start --limit 1 --pool gpu",
        "work pool render is paused, so its runs wait; run prefect work-pool resume render",
    ]


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (httpx.ConnectError("refused"), True),
        (httpx.ReadTimeout("slow"), True),
        (PrefectHTTPStatusError("gone", request=REQUEST, response=httpx.Response(503, request=REQUEST)), True),
        (PrefectHTTPStatusError("wrong", request=REQUEST, response=httpx.Response(422, request=REQUEST)), False),
        (ObjectNotFound(Exception()), False),
        (BuildFailed("of the work"), False),
    ],
)
def test_a_server_that_does_not_answer_is_asked_again(error: Exception, again: bool) -> None:
    state: Any = SimpleNamespace(result=lambda raise_on_failure: error)
    assert pools.is_outage(None, None, state) is again  # type: ignore[arg-type]


def test_runs_in_one_folder_have_one_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is written: cancelling a run looks for those that carry it."""
    monkeypatch.chdir(tmp_path)
    assert (
        pools.labels_of("out/eqben")
        == pools.labels_of(f"{tmp_path}/out/eqben/")
        == ["twinset", f"out={tmp_path}/out/eqben"]
    )
    assert pools.labels_of("s3://bucket/eqben/") == pools.labels_of("s3://bucket/eqben")
