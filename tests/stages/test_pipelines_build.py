"""Images of negative captions by a pipeline of diffusers, from recipe to shards, with a tiny model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.models.pipelines.tiny_pipelines import save
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store

pytestmark = pytest.mark.slow
COLOURS = ("red", "green", "blue", "winter", "photo", "cat")
LONG = "a cat " * 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of Flux's structure, captions, and a recipe that draws their negatives."""
    at = tmp_path_factory.mktemp("pipelines")
    save(at, "FluxPipeline")
    captions = {
        str(number): {"filename": f"{number}.jpg", "caption": f"a {one} cat", "negative_caption": f"a {one} dog"}
        for number, one in enumerate(COLOURS)
    }
    captions["6"] = {"filename": "6.jpg", "caption": "a cat", "negative_caption": LONG}
    (at / "replace_obj.json").write_text(json.dumps(captions))
    engine: dict[str, Any] = {"kind": "diffusers", "model": "./model", "licence": "MIT", "steps": 2, "resolution": 64}
    engine |= {"micro_batch": 4, "output_resolution": 48}
    stages = {
        "negatives": {"source": {"kind": "replayed-negatives", "captions": "replace_obj.json"}},
        "prompts": {"source": {"kind": "negative-prompts", "negatives": "negatives"}},
    }
    images = {"kind": "negative-images", "negatives": "prompts", "engine": engine, "images_per_caption": 2}
    recipe = {"name": "drawn", "stages": stages, "subsets": {"images": {"source": images, "shard_size": 2}}}
    (at / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return at


def build(folder: Path, out: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "twinset.cli.main", "build", "recipe.yaml", "--out", out, "--workers", "1"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def kill_midway(folder: Path, out: str, subset: str) -> None:
    """Begin a build and kill it once a shard is done."""
    killed, receipts = build(folder, out), folder / out / subset / "_meta/receipts"
    while killed.poll() is None and not [*receipts.glob("*.json")]:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL


def tars(folder: Path, out: str, subset: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / out / subset).glob("*/*.tar"))}


def test_a_build_that_is_killed_and_resumed_equals_one_that_was_not(folder: Path) -> None:
    whole = build(folder, "whole")
    assert whole.wait() == 0, whole.stdout and whole.stdout.read()
    kill_midway(folder, "killed", "images")
    again = build(folder, "killed")
    assert again.wait() == 0, again.stdout and again.stdout.read()
    made = tars(folder, "whole", "images")
    assert len(made) > 3 and tars(folder, "killed", "images") == made
    samples: list[Any] = list(read_samples(Store(str(folder / "killed")), "images"))
    assert len(samples) == 12 and len({one.images["image"] for one in samples}) == 12
    assert {one.json.provenance["engine"]["pipeline"] for one in samples} == {"FluxPipeline"}
    card = (folder / "killed/images/README.md").read_text()
    assert "prompt-too-long" in card and "by diffusers' pipeline of its class" in card
