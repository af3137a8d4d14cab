"""GeneCIS's triplets and templates as a user builds them: deployments, and kill -9 at every stage."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.stages.captioned_images import write_inputs

CAPTIONED = 5040  # captions in the killed build: three shards of scene graphs
STAGE_SECONDS = 150


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triplets of captioned pictures in ten shards, and one task's templates of the miniature."""
    path = write_inputs(tmp_path_factory.mktemp("captioned"))
    path.write_text(
        path.read_text().replace("shard_size: 8", "shard_size: 4")
        + """
  focus-object:
    source: {kind: genecis-objects, task: focus, annotations: "miniature:stills/panoptic.json",
             media: "miniature:stills/images"}
    count: 4
    shard_size: 2
"""
    )
    return path


@pytest.mark.slow
def test_deployments_parse_mine_and_make_the_same_bytes(
    prefect: Any, start_worker: Any, twinset: Any, api: Any, recipe: Path, contents: Any, tmp_path: Path
) -> None:
    assert twinset("build", recipe, "--out", tmp_path / "here", "--workers", "2").returncode == 0
    start_worker("main")
    start_worker("cpu")
    given = {"recipe": str(recipe), "out": str(tmp_path / "pools"), "shards_a_run": 5}
    asked = [f"--param={key}={json.dumps(value)}" for key, value in given.items()]
    result = prefect("deployment", "run", "build-genecis/cpu", "--watch", *asked)
    assert result.returncode == 0, result.stdout + (tmp_path / "main.log").read_text()
    assert contents(tmp_path / "pools") == contents(tmp_path / "here")
    artifacts = {found["key"] for found in api.ask("/artifacts/latest/filter", {"limit": 200})}
    of_triplets = {f"triplets-{what}" for what in ("funnel", "words", "concreteness", "look")}
    assert {*of_triplets, "focus-object-funnel", "focus-object-look", "build-genecis"} <= artifacts


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_while_it_parses_plans_and_makes_shards(
    start_twinset: Any, twinset: Any, contents: Any, tmp_path: Path
) -> None:
    (tmp_path / "inputs").mkdir()
    recipe = write_inputs(tmp_path / "inputs", CAPTIONED // 24)
    meta = tmp_path / "out/triplets/_meta"
    command = ("build", recipe, "--out", tmp_path / "out", "--workers", "2", "--set", "subsets.triplets.shard_size=1")
    whole = tmp_path / "whole"
    assert twinset(*command[:3], whole, *command[4:]).returncode == 0
    # What a stage begins with, and what it ends with: killed in between.
    stages = [
        ("graphs/_meta/stage.json", "graphs/_meta/index.json"),
        ("graphs/_meta/receipts/*.json", "graphs/_meta/index.json"),
        ("graphs/_meta/index.json", "stage.json"),
        ("receipts/*.json", "receipts/00039.json"),
        ("receipts/0002?.json", "receipts/00039.json"),
    ]
    for begins, ends in stages:
        process = start_twinset(*command)
        deadline = time.monotonic() + STAGE_SECONDS
        while not any(meta.glob(begins)):
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -9
        assert not (meta / ends).exists()
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(whole)
    assert twinset("verify", tmp_path / "out", "--media").returncode == 0
