"""EQ-SD from recipe to dataset, with a tiny model of random weights. Older plans leave nothing behind."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.models.diffusion.tiny_models import save_small
from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import load_recipe
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.finalise import remove_leftovers
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import state_of


def test_the_folder_of_the_weights_is_no_part_of_what_is_made_but_they_are(tmp_path: Path) -> None:
    save_small(tmp_path)
    source = {"kind": "stable-diffusion", "model": "model", "vocabulary": "small-world", "licence": "MIT"}
    subset = {"source": {**source, "steps": 2, "micro_batch": 2}, "count": 6, "shard_size": 2}
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"name": "drawn", "subsets": {"eq-sd": subset}}))

    def content(*settings: str) -> str:
        return prepare(Job(load_recipe(str(recipe), settings), store), "eq-sd").content

    store = Store(str(tmp_path / "out"))
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere")
    first, elsewhere = content(), f"subsets.eq-sd.source.model={tmp_path / 'elsewhere'}"
    tars = []
    for place in (elsewhere, "name=drawn"):
        assert content(place, "subsets.eq-sd.source.threads=2") == content(place) == first
        job._worker_of.cache_clear()
        for number in range(3):
            store.remove(f"eq-sd/_meta/receipts/{number:05d}.json")
            make_shard(store.root, "eq-sd", number)
        tars.append([store.read(f"eq-sd/test/{number:05d}.tar") for number in range(3)])
    assert tars[0] == tars[1] and state_of(store, "eq-sd").counts()["kept"] == 6
    assert {sample.json.change for sample in read_samples(store, "eq-sd")} == {"object", "scene", "attribute"}
    assert content("subsets.eq-sd.source.guidance=3") != first == content()
    for folder in ("elsewhere", "model"):
        with (tmp_path / folder / "unet/diffusion_pytorch_model.safetensors").open("ab") as stream:
            stream.write(b" ")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"differs in generator; bring .*weights of a model"):
        make_shard(store.root, "eq-sd", 0)
    assert content(elsewhere) != first


SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)]


def test_what_an_older_and_longer_plan_left_is_removed_and_nothing_else(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    store = Store(str(tmp_path / "out"))
    older = planned_build(store, "eq-a", [*SCENES, ("d", 30, 31)], shard_size=1, splits={"d": "train"})
    older.make_all()
    (tmp_path / "out/eq-a/_meta/plan/00001.parquet").write_bytes(b"of shards 1000 to 1999")
    mine = [tmp_path / "out/eq-a" / name for name in ("test/00003.idx", "backup/00000.tar")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("somebody's")
    for out in (store, Store(str(tmp_path / "fresh"))):
        newer = planned_build(out, "eq-a", SCENES[:2], shard_size=2, splits={"a": "val"})
        newer.make_all()
        remove_leftovers(out, newer.state())
    for path in mine:
        path.unlink()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh") and store.names("eq-a/train") == []
