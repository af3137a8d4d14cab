"""The flow ``evaluate`` without a server: its task, and what it refuses before any work.

Pools that take no runs.
The shipped prefect.yaml deploys flows that are there, with parameters that they take.
Resuming a flow run that waits for people, as far as no server is needed.
"""

import importlib
import inspect
import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
import yaml
from prefect.client.schemas.objects import WorkPoolStatus
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

import twinset
from tests.evaluation.benchmarks.made_layouts import sugarcrepe
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import shipped_recipes
from twinset.flows import pools
from twinset.flows.from_here import SETTINGS
from twinset.flows.models import evaluate, score_task
from twinset.flows.resume import WAITING, WaitingRun, resume_waiting
from twinset.shards.storage.store import Store
from twinset.training.clip.settings import ClipSettings
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.runs.settings import checked

RUNNING = {"device": "cpu", "batch": 4, "threads": 1}


def test_a_task_scores_one_benchmark_with_one_model_and_a_retry_finds_it_cached(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "data")
    model, out, cache = f"random:{open_clip_config(tmp_path)}", str(tmp_path / "out"), str(tmp_path / "cache")
    given = ("sugarcrepe", f"sugarcrepe={tmp_path / 'data'}", model, out, ["add_att"], cache, RUNNING)
    path = Path(score_task.fn(*given))
    assert path.parent == tmp_path / "out" / "scores" / "sugarcrepe" and pq.read_table(path).num_rows == 3
    before = path.read_bytes()
    assert '"computed": 0' not in path.with_suffix(".run.json").read_text()
    assert Path(score_task.fn(*given)).read_bytes() == before
    assert path.with_suffix(".run.json").read_text() == '{"computed": 0}'


def test_a_limit_asks_the_examples_that_the_command_asks(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "data")
    model, place = f"random:{open_clip_config(tmp_path)}", f"sugarcrepe={tmp_path / 'data'}"
    given = (place, model, str(tmp_path / "out"), [], str(tmp_path / "cache"), RUNNING)
    path = Path(score_task.fn("sugarcrepe", *given, limit=1, seed=3))
    twinset.evaluate([("sugarcrepe", tmp_path / "data")], model, tmp_path / "own", limit=1, seed=3)
    own = pq.read_table(tmp_path / "own" / path.relative_to(tmp_path / "out"))["key"].to_pylist()
    asked = pq.read_table(path)
    assert asked["key"].to_pylist() == own and len(own) == len({*asked["subset"].to_pylist()})
    with pytest.raises(WrongUse, match="limit 0"):
        evaluate.fn([place], [model], str(tmp_path / "new"), limit=0)


@pytest.mark.parametrize(
    ("benchmarks", "models", "message"),
    [
        (["sugarcrepe"], ["random:ViT-B-32"], "write NAME=DIR"),
        ([], ["random:ViT-B-32"], "name at least one of each; benchmarks are "),
        (["sugarcrepe=/nowhere"], ["random:ViT-B-32"], "/nowhere"),
    ],
)
def test_wrong_use_is_told_before_any_work(
    tmp_path: Path, benchmarks: list[str], models: list[str], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        evaluate.fn(benchmarks, models, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


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


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "get_client", lambda sync_client: Server())
    monkeypatch.setattr(pools, "get_run_logger", lambda: logging.getLogger("run"))


@pytest.mark.usefixtures("server")
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


@pytest.mark.usefixtures("server")
def test_pools_that_wait_are_named_with_what_starts_them(caplog: pytest.LogCaptureFixture) -> None:
    pools.check_pools(DEPLOYED.keys() - {"train/gpu"})
    assert [record.getMessage() for record in caplog.records] == [
        "work pool gpu has no worker, so its runs wait; run prefect worker start --limit 1 --pool gpu",
        "work pool render is paused, so its runs wait; run prefect work-pool resume render",
    ]


@pytest.mark.usefixtures("server")
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


@pytest.mark.usefixtures("server")
def test_runs_in_one_folder_have_one_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is written: cancelling a run looks for those that carry it."""
    monkeypatch.chdir(tmp_path)
    assert (
        pools.labels_of("out/eqben")
        == pools.labels_of(f"{tmp_path}/out/eqben/")
        == ["twinset", f"out={tmp_path}/out/eqben"]
    )
    assert pools.labels_of("s3://bucket/eqben/") == pools.labels_of("s3://bucket/eqben")


CHECKOUT = Path(__file__).parents[2]
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())["deployments"]


def flow_of(deployment: dict[str, Any]) -> Any:
    file, _, function = deployment["entrypoint"].partition(":")
    return getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), function)


def test_every_flow_is_deployed_where_it_runs() -> None:
    names = {f"{flow_of(deployment).name}/{deployment['name']}" for deployment in DEPLOYMENTS}
    assert names == {
        *("build-eqben/build-eqben", "build-eqben/local", "build-eqben/gpu"),
        *("build-genecis/build-genecis", "build-genecis/local"),
        *("build-trohn/build-trohn", "build-trohn/local"),
        *("build-bivlc/build-bivlc", "build-bivlc/local"),
        *("evaluate/cpu", "evaluate/gpu"),
        "train-grid/train-grid",
        *("train/cpu", "train/gpu", "train/combiner", "train/detectors"),
        *("build-shards/cpu", "build-shards/render", "build-shards/gpu"),
    }
    assert len(names) == len(DEPLOYMENTS)
    for document in ("prefect.yaml", "docs/cluster.md", "docker/README.md"):
        named = set(re.findall(r"deployment run (\S+)", (CHECKOUT / document).read_text()))
        assert named and named <= names, document


@pytest.mark.parametrize(
    "deployment", DEPLOYMENTS, ids=lambda one: f"{one['entrypoint'].partition(':')[2]}-{one['name']}"
)
def test_parameters_are_those_of_the_flow(deployment: dict[str, Any]) -> None:
    given = deployment.get("parameters", {})
    assert given.keys() <= inspect.signature(flow_of(deployment).fn).parameters.keys()
    if flow_of(deployment).name == "train":
        kinds = {"clip": ClipSettings, "combiner": CombinerSettings, "detectors": DetectorSettings}
        kind: Any = kinds[given.get("task", "clip")]
        assert checked(kind, {"data": tuple(given["data"]), **given.get("settings", {})}).seed >= 0
    if "recipe" in given:
        assert given["recipe"] in shipped_recipes()


def test_every_deployment_brings_what_the_automations_rely_on() -> None:
    """The tag that they look for, the heartbeats, and what makes requests outlive a server that is away."""
    for deployment in DEPLOYMENTS:
        settings = deployment["work_pool"]["job_variables"]["env"]
        assert deployment["tags"] == ["twinset"] and not {"schedules", "concurrency_limit"} & deployment.keys()
        assert settings.keys() < SETTINGS.keys() and len(settings) == 4
        assert settings.items() <= SETTINGS.items()


RUN = WaitingRun.model_validate({"flow_run_id": "6b0f2a0e-7f6f-4c9c-9a53-0f9f3f1f8f11", "stages": ["asked"]})


def test_nothing_is_resumed_where_no_run_waits_or_it_waits_for_others(tmp_path: Path) -> None:
    assert not resume_waiting(str(tmp_path))
    Store(str(tmp_path)).write(WAITING, RUN.to_bytes())
    assert not resume_waiting(str(tmp_path), "another")


def test_a_run_needs_a_server_and_its_record_must_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    store = Store(str(tmp_path))
    store.write(WAITING, RUN.to_bytes())
    with pytest.raises(WrongUse, match=f"flow run {RUN.flow_run_id} waits for these decisions; set PREFECT_API_URL"):
        resume_waiting(str(tmp_path), "asked")
    store.write(WAITING, b'{"flow_run_id": "x"}')
    with pytest.raises(WrongUse, match=r"waiting.json: does not name a flow run; remove it"):
        resume_waiting(str(tmp_path), "asked")
