"""The shipped prefect.yaml deploys flows that are there, with parameters that they take."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from twinset.contracts.recipe import shipped_recipes
from twinset.flows.from_here import SETTINGS
from twinset.training.clip.settings import ClipSettings
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.runs.settings import checked

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
