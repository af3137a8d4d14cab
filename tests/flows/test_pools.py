"""What flows say and refuse without a server; the shipped prefect.yaml deploys what is there, with its parameters."""

import importlib
import inspect
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prefect.exceptions import ObjectNotFound

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import shipped_recipes
from twinset.flows import pools
from twinset.flows.artifacts import told
from twinset.flows.from_here import SETTINGS
from twinset.flows.models import score, train
from twinset.training.clip.settings import ClipSettings
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.runs.settings import checked


@pytest.mark.parametrize(
    ("flow", "given", "message"),
    [
        (score, {"model": "m", "benchmark": "sugarcrepe", "asked": {}}, "benchmarks: sugarcrepe: write NAME=DIR"),
        (train, {"data": []}, "data: Tuple should have at least 1 item"),
        (train, {"data": ["a"], "settings": {"learning_rate": 1}}, "learning_rate: unknown; name one of "),
        (train, {"data": ["a"], "task": "detectors", "settings": {"lr": 0}}, "lr: Input should be greater"),
    ],
)
def test_wrong_use_is_a_failed_state(flow: Any, given: dict[str, Any], message: str, tmp_path: Path) -> None:
    state = flow.fn(out=str(tmp_path / "out"), **given)
    assert state.is_failed() and message in state.message and isinstance(state.data, WrongUse)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("advice", "shown"),
    [
        ("allow it with --set a.b=c, or else", 'allow it with settings=["a.b=c"], or else'),
        ("name another --out, and run the same command again", "name another `out`, and run the same deployment again"),
        ("correct its package (--verbose shows the traceback)", "correct its package"),
        *[("which twinset status OUT --missing FILE lists",) * 2],
    ],
)
def test_advice_names_parameters_of_deployments(advice: str, shown: str) -> None:
    def fail() -> None:
        raise BuildFailed(advice)

    assert told(fail)().message == shown


def test_all_that_is_missing_is_named_with_what_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs failed with `ObjectNotFound: None`, or waited for ever. One deployment here has lost its pool."""
    pool_of = {"build-shards/cpu": "cpu", "build-shards/gpu": "gpu", "train/gpu": None}

    def deployment(name: str) -> Any:
        if name not in pool_of:
            raise ObjectNotFound(Exception())
        return SimpleNamespace(work_pool_name=pool_of[name])

    def pool(name: str) -> None:
        if name not in pool_of.values():
            raise ObjectNotFound(Exception())

    client = nullcontext(SimpleNamespace(read_deployment_by_name=deployment, read_work_pool=pool))
    monkeypatch.setattr(pools, "get_client", lambda sync_client: client)
    with pytest.raises(BuildFailed, match=r"no deployment build-shards/mine, train/cpu, train/gpu, or no .*deploy\.sh"):
        pools.check_pools(["build-shards/mine", "build-shards/cpu", "train/cpu", "train/gpu"])


def test_runs_in_one_folder_have_one_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is written: cancelling a run looks for those that carry it."""
    monkeypatch.chdir(tmp_path)
    for out in ("out/eqben", f"{tmp_path}/out/eqben/"):
        assert pools.labels_of(out) == ["twinset", f"out={tmp_path}/out/eqben"]
    assert pools.labels_of("s3://bucket/eqben/") == pools.labels_of("s3://bucket/eqben")


CHECKOUT = Path(__file__).parents[2]
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load((CHECKOUT / "prefect.yaml").read_text())["deployments"]


def flow_of(deployment: dict[str, Any]) -> Any:
    module, _, function = deployment["entrypoint"].rpartition(".")
    return getattr(importlib.import_module(module), function)


def test_every_flow_is_deployed_where_it_runs() -> None:
    names = {f"{flow_of(deployment).name}/{deployment['name']}" for deployment in DEPLOYMENTS}
    outs = [deployment["parameters"]["out"] for deployment in DEPLOYMENTS if "out" in deployment.get("parameters", {})]
    assert len(outs) == len({*outs}), "two deployments would build into one folder"
    built = {f"build-{paper}" for paper in ("eqben", "genecis", "trohn", "bivlc", "shards")}
    assert {name.partition("/")[0] for name in names} == {*built, "evaluate", "train"}
    assert len(names) == len(DEPLOYMENTS)
    for document in ("prefect.yaml", "docs/cluster.md", "docker/README.md"):
        named = set(re.findall(r"deployment run (\S+)", (CHECKOUT / document).read_text()))
        assert named and named <= names, document


@pytest.mark.parametrize(
    "deployment", DEPLOYMENTS, ids=lambda deployment: deployment["entrypoint"].rpartition(".")[2] + deployment["name"]
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
