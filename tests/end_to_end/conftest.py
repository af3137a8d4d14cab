"""The command line as a user runs it, without a server, and the builds that tests share."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cached_builds import CHECKOUT, cached

BIN = Path(sys.executable).parent
GUARD_SECONDS = 1500  # against hanging alone, to show the logs before pytest's own limit ends the test

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
# Negative captions with all that hangs on them, in small shards. {cola}: a classifier that scores.
NEGATIVES = """
name: negatives
max_missing: 0
stages:
  negatives:
    source: {{kind: negative-captions, captions: "miniature:stills/captions.json"}}
    count: 840
    shard_size: 210
  prompts:
    source: {{kind: negative-prompts, negatives: negatives}}
    shard_size: 40
  scores:
    source:
      kind: caption-scores
      negatives: prompts
      scorers: [{{kind: cola, model: {cola}}}]
    shard_size: 20
  selected:
    source:
      {{kind: selected-negatives, scores: scores, quality: [cola], quantile: 0.5, similarity: null, refine: [cola]}}
    shard_size: 10
  small-negatives:
    source: {{kind: replayed-negatives, captions: "miniature:small_world/negatives.csv"}}
    shard_size: 2
  small-prompts:
    source: {{kind: negative-prompts, negatives: small-negatives, suffix: ""}}
    shard_size: 2
  small-images:
    source:
      kind: negative-images
      negatives: small-prompts
      engine: {{kind: diffusers, model: small, steps: 2}}
      images_per_caption: 2
    encoding: {{format: png}}
    shard_size: 2
  small-verified:
    source: {{kind: image-verification, images: small-images, engine: {{kind: vqa, model: {blip}}}}}
    shard_size: 2
subsets:
  trohn-text:
    source: {{kind: text-pairs, negatives: selected, images: "miniature:stills/images", licence: CC0-1.0}}
    shard_size: 5
  bivlc:
    source:
      kind: generated-pairs
      negatives: small-prompts
      images: small-images
      verified: small-verified
      photos: miniature:small_world/photos
      licence: CC0-1.0
    shard_size: 2
"""

# The demo with fewer and smaller pictures where they are rendered or drawn by a network, which is most of its time.
SMALLER_DEMO = tuple(
    argument
    for setting in (
        *(
            f"subsets.eq-kubric-{aspect}.count={n}"
            for aspect, n in (("location", 1), ("counting", 2), ("attribute", 1))
        ),
        *(f"subsets.eq-kubric-{aspect}.source.resolution=128" for aspect in ("location", "counting", "attribute")),
        "subsets.eq-sd.count=2",
    )
    for argument in ("--set", setting)
)


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Environment of the commands: no server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    # A worker starts its runs as ``prefect flow-run execute``.
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": os.pathsep.join(str(CHECKOUT / one) for one in ("src", "demo", "."))}


Twinset = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def twinset(environment: dict[str, str]) -> Twinset:
    """Run ``twinset ARGUMENTS`` without a server; the result holds exit code, stdout and stderr."""

    def run(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "twinset"), *map(str, arguments)],
            env={**environment, **more},
            capture_output=True,
            text=True,
        )

    return run


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_twinset(environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start ``twinset ARGUMENTS``, with its output in ``log`` of the test's folder; what still runs is killed after."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str | Path, **more: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(BIN / "twinset"), *map(str, arguments)],
                env={**environment, **more},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def until(tmp_path: Path) -> Callable[[Callable[[], Any]], Any]:
    """Wait for a condition and return what it returned; the logs in the test's folder are shown when it never holds."""

    def wait(condition: Callable[[], Any], pause: float = 0.05) -> Any:
        deadline = time.monotonic() + GUARD_SECONDS
        while not (found := condition()):
            logs = "\n".join(log.read_text()[-2000:] for log in [*tmp_path.glob("log"), *tmp_path.glob("*.log")])
            assert time.monotonic() < deadline, f"not in {GUARD_SECONDS} s; the last words of all:\n{logs}"
            time.sleep(pause)
        return found

    return wait


@pytest.fixture(scope="session")
def small_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of the miniature's two cheap subsets in many small shards, without faces."""
    path = tmp_path_factory.mktemp("recipe") / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def dag_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with a stage that another one reads."""
    path = tmp_path_factory.mktemp("recipe") / "dag.yaml"
    path.write_text(DAG)
    return path


@pytest.fixture(scope="session")
def negatives_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of text pairs and of generated pairs, with all stages before them."""
    from tests.generators.caption_scores.tiny_scorers import save_cola
    from tests.models.visual_questions.tiny_models import save_blip

    folder = tmp_path_factory.mktemp("recipe")
    path = folder / "negatives.yaml"
    blip = save_blip(folder / "blip", seed=1)  # says yes to some questions and no to others
    path.write_text(NEGATIVES.format(cola=save_cola(folder / "cola"), blip=blip))
    return path


@pytest.fixture(scope="session")
def negatives_reference(pytestconfig: pytest.Config, negatives_recipe: Path, twinset: Twinset) -> Path:
    """As ``reference``, of the recipe of negative captions."""
    return build_once(pytestconfig, "negatives", negatives_recipe, twinset) / "out"


@pytest.fixture(scope="session")
def reference(pytestconfig: pytest.Config, small_recipe: Path, twinset: Twinset) -> Path:
    """The small recipe's dataset, built without interruption by two threads; not to be changed."""
    return build_once(pytestconfig, "small", small_recipe, twinset) / "out"


@pytest.fixture(scope="session")
def dag_reference(pytestconfig: pytest.Config, dag_recipe: Path, twinset: Twinset) -> Path:
    """As ``reference``, of the recipe with a stage that another one reads."""
    return build_once(pytestconfig, "dag", dag_recipe, twinset) / "out"


@pytest.fixture(scope="session")
def built_demo(pytestconfig: pytest.Config, twinset: Twinset) -> tuple[Path, dict[str, Any]]:
    """The demo and the counts that its build printed; not to be changed."""
    return _counted(build_once(pytestconfig, "demo", "demo", twinset))


@pytest.fixture(scope="session")
def smaller_demo(pytestconfig: pytest.Config, twinset: Twinset) -> tuple[Path, dict[str, Any]]:
    """As ``built_demo``, with ``SMALLER_DEMO``: every stage and subset of it in less than half of the time."""
    return _counted(build_once(pytestconfig, "smaller-demo", "demo", twinset, *SMALLER_DEMO))


def _counted(place: Path) -> tuple[Path, dict[str, Any]]:
    return place / "out", json.loads((place / "counts.json").read_text())["subsets"]


def build_once(config: pytest.Config, name: str, recipe: str | Path, twinset: Twinset, *arguments: str) -> Path:
    def make(folder: Path) -> None:
        result = twinset("build", recipe, "--out", folder / "out", "--workers", "2", "--json", *arguments)
        assert result.returncode == 0, result.stderr
        (folder / "counts.json").write_text(result.stdout)

    return cached(config, name, make)


@pytest.fixture(scope="session")
def counts_of() -> Callable[[subprocess.CompletedProcess[str]], dict[str, Any]]:
    """The subsets that a command with ``--json`` printed."""

    def read(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        assert result.returncode == 0, result.stderr
        subsets: dict[str, Any] = json.loads(result.stdout)["subsets"]
        return subsets

    return read


# They tell where and when: not part of what must be equal.
NOT_COMPARED = ("log",)


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Every file of a dataset that must be the same whoever made it, by relative path."""

    def read(out: Path) -> dict[str, bytes]:
        found = {}
        # Folders that vanish meanwhile, since somebody is at work, are passed over.
        for path in sorted(Path(folder, name) for folder, _, names in os.walk(out) for name in names):
            relative = path.relative_to(out)
            if path.is_file() and not set(relative.parts) & set(NOT_COMPARED):
                with contextlib.suppress(FileNotFoundError):  # moved while it was looked at: somebody is at work
                    found[relative.as_posix()] = path.read_bytes()
        return found

    return read
