"""Images of negative captions by a pipeline of diffusers, from recipe to shards, with a tiny model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

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


def test_edits_that_are_killed_and_resumed_equal_those_that_were_not(folder: Path, tmp_path: Path) -> None:
    boxes = [[40, 60, 64, 64]] * 4
    images = [{"id": number, "file_name": f"{number}.jpg"} for number in range(4)]
    found = [{"image_id": number, "category_id": 1, "bbox": box} for number, box in enumerate(boxes)]
    annotations = {"images": images, "categories": [{"id": 1, "name": "car"}], "annotations": found}
    (tmp_path / "instances.json").write_text(json.dumps(annotations))
    rows = [
        {"image": f"{number}.jpg", "caption": "A red car on a road.", "negative_caption": f"A {one} car on a road."}
        for number, one in enumerate(("green", "blue", "green", "blue"))
    ]
    (tmp_path / "negatives.json").write_text(json.dumps([{**row, "type": "replace", "subtype": "att"} for row in rows]))
    (tmp_path / "photos").mkdir()
    for number in range(4):
        spots = np.random.default_rng(number).integers(0, 256, (32, 40, 3), dtype=np.uint8)
        Image.fromarray(spots).resize((320, 256), Image.Resampling.BICUBIC).save(tmp_path / f"photos/{number}.jpg")
    engine = {"kind": "diffusers-edit", "model": str(folder / "model"), "licence": "MIT", "steps": 2, "resolution": 64}
    twins = {"kind": "edited-photos", "negatives": "negatives", "photos": "photos", "instances": "instances.json"}
    stages = {"negatives": {"source": {"kind": "replayed-negatives", "captions": "negatives.json", "licence": "MIT"}}}
    subsets = {"twins": {"source": {**twins, "engine": engine}, "shard_size": 1}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"name": "edited", "stages": stages, "subsets": subsets}))
    whole = build(tmp_path, "whole")
    assert whole.wait() == 0, whole.stdout and whole.stdout.read()
    kill_midway(tmp_path, "killed", "twins")
    again = build(tmp_path, "killed")
    assert again.wait() == 0, again.stdout and again.stdout.read()
    made = tars(tmp_path, "whole", "twins")
    assert made and tars(tmp_path, "killed", "twins") == made
    card = (tmp_path / "killed/twins/README.md").read_text()
    assert "diffusers-edit" in card
