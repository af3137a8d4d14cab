"""The command line as a user runs it, without a server, and the builds that tests share."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

SMALL = """
name: small
subsets:
  eq-ag:
    source: {kind: action-genome, annotations: "miniature:action_genome/annotations.pkl",
             media: "miniature:action_genome/videos"}
    shard_size: 1
  eq-gebc:
    source: {kind: gebc, annotations: "miniature:gebc/annotations.json", media: "miniature:gebc/videos"}
    filters: [{kind: motion-words}, {kind: equal-captions}]
    shard_size: 1
"""
# The demo's DAG in many small shards: captions, their scene graphs, triplets; beside them what reads no other stage.
DAG = """
name: dag
stages:
  scene-graphs:
    source: {kind: scene-graphs, captions: "miniature:stills/captions.json", licence: CC0-1.0}
    shard_size: 100
subsets:
  triplets:
    source: {kind: genecis-triplets, graphs: scene-graphs, concreteness: "miniature:stills/concreteness.txt",
             images: "miniature:stills/images", licence: CC0-1.0}
    count: 32
    split: train
    shard_size: 4
  focus-object:
    source: {kind: genecis-objects, task: focus, annotations: "miniature:stills/panoptic.json",
             media: "miniature:stills/images", licence: CC0-1.0}
    count: 8
    shard_size: 2
"""
# Every stage and subset of the demo, with smaller pictures where they are rendered: less than half of the time.
RENDERED = ("eq-kubric-location", "eq-kubric-counting", "eq-kubric-attribute")
SMALLER_DEMO = tuple(f"--set=subsets.{name}.source.resolution=128" for name in RENDERED)


def of_checkout() -> dict[str, str]:
    """Environment of commands of this checkout, without a server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    # A worker starts its runs as ``prefect flow-run execute``.
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    code = os.pathsep.join(str(CHECKOUT / place) for place in ("src", "demo", "."))
    return {**kept, "PATH": path, "PYTHONPATH": code}


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    return of_checkout()


Twinset = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def twinset(environment: dict[str, str]) -> Twinset:
    """Run ``twinset ARGUMENTS`` without a server; the result holds exit code, stdout and stderr."""

    def run(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "twinset"), *map(str, arguments)]
        return subprocess.run(command, env={**environment, **more}, capture_output=True, text=True)

    return run


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_twinset(environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start ``twinset ARGUMENTS``, with its output in ``log`` of the test's folder; what still runs is killed after."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str | Path, **more: str) -> subprocess.Popen[bytes]:
        command = [str(BIN / "twinset"), *map(str, arguments)]
        processes.append(logged(command, tmp_path / "log", {**environment, **more}))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build_once(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, twinset: Twinset) -> Build:
    """Build a dataset once for all of pytest's processes: name, recipe and options; not to be changed.

    Beside it ``counts.json`` holds what the build printed.
    """
    shared = tmp_path_factory.getbasetemp()
    if hasattr(pytestconfig, "workerinput"):
        shared = shared.parent

    def build(name: str, recipe: str | Path, *options: str) -> Path:
        folder = shared / f"{name}-built"
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                result = twinset("build", recipe, "--out", folder / "out", "--workers", "2", "--json", *options)
                assert result.returncode == 0, result.stderr
                (folder / "counts.json").write_text(result.stdout)
        return folder / "out"

    return build


def saved(folder: Path, recipe: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(recipe)
    return path


@pytest.fixture(scope="session")
def small_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of the miniature's two cheap subsets in many small shards, without faces."""
    return saved(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="session")
def dag_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with a stage that another one reads."""
    return saved(tmp_path_factory.mktemp("dag"), DAG)


@pytest.fixture(scope="session")
def reference(build_once: Build, small_recipe: Path) -> Path:
    """The small recipe's dataset, built without interruption by two threads."""
    return build_once("small", small_recipe)


@pytest.fixture(scope="session")
def dag_reference(build_once: Build, dag_recipe: Path) -> Path:
    """As ``reference``, of the recipe with a stage that another one reads."""
    return build_once("dag", dag_recipe)


@pytest.fixture(scope="session")
def built_demo(build_once: Build) -> Path:
    return build_once("whole-demo", "demo", *SMALLER_DEMO)


def counts_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    subsets: dict[str, Any] = json.loads(result.stdout)["subsets"]
    return subsets


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a dataset that must be the same whoever made it, by relative path: all but logs."""
    files = {}
    # Folders that vanish meanwhile, since somebody is at work, are passed over.
    for path in sorted(Path(folder, name) for folder, _, names in os.walk(out) for name in names):
        relative = path.relative_to(out)
        if path.is_file() and "log" not in relative.parts:
            with contextlib.suppress(FileNotFoundError):  # moved while it was looked at: somebody is at work
                files[relative.as_posix()] = path.read_bytes()
    return files


def logged(command: Sequence[str], log: Path, variables: Mapping[str, str], **more: Any) -> "subprocess.Popen[bytes]":
    with log.open("ab") as stream:
        return subprocess.Popen(command, env=variables, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, **more)


def kill_all(processes: Sequence["psutil.Process | subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
