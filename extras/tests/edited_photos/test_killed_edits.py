"""Edits by a pipeline of diffusers, from recipe to shards, with a tiny model."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.models.pipelines.tiny_pipelines import save
from tests.stages.test_pipelines_build import build, kill_midway, tars


@pytest.mark.slow
def test_edits_that_are_killed_and_resumed_equal_those_that_were_not(tmp_path: Path) -> None:
    save(tmp_path, "FluxPipeline")
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
    engine = {"kind": "diffusers-edit", "model": "./model", "licence": "MIT", "steps": 2, "resolution": 64}
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
