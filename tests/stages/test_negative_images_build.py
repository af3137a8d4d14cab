"""Images of negative captions from recipe to shards, with a tiny model of random weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.models.diffusion.tiny_models import save_small
from twinset.contracts.recipe import load_recipe
from twinset.models.diffusion.model import Model
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.run_here import build_here
from twinset.stages.status import StageState, state_of

pytestmark = pytest.mark.usefixtures("no_cards")
NAME = "trohn-img"
CAPTIONS = {
    str(number): {"filename": f"{number}.jpg", "caption": f"a {one} cat", "negative_caption": f"a {one} dog"}
    for number, one in enumerate(("red", "green", "blue"))
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipe, the model, and in ``out`` the tables that images are planned from."""
    folder = tmp_path_factory.mktemp("images")
    save_small(folder)
    (folder / "replace_obj.json").write_text(json.dumps(CAPTIONS))
    engine = {"kind": "diffusion", "model": "./model", "licence": "MIT", "steps": 2, "micro_batch": 2}
    images = {"kind": "negative-images", "negatives": "prompts", "engine": engine, "images_per_caption": 2}
    stages = {
        "negatives": {"source": {"kind": "replayed-negatives", "captions": "replace_obj.json"}},
        "prompts": {"source": {"kind": "negative-prompts", "negatives": "negatives"}},
    }
    recipe = {"name": "drawn", "stages": stages, "subsets": {NAME: {"source": images, "shard_size": 2}}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    build_here(load_recipe(str(folder / "recipe.yaml")).only(["prompts"]), str(folder / "out"))
    return folder


@pytest.fixture
def planned(built: Path, tmp_path: Path) -> Store:
    """The images, planned."""
    return plan(built, tmp_path / "out")


def plan(built: Path, out: Path, **engine: Any) -> Store:
    """The images planned into a new folder, with some settings of the engine."""
    shutil.copytree(built / "out", out)
    store, asked = Store(str(out)), [f"subsets.{NAME}.source.engine.{name}={value}" for name, value in engine.items()]
    prepare(Job(load_recipe(str(built / "recipe.yaml"), asked), store), NAME)
    job._worker_of.cache_clear()
    return store


def state(store: Store) -> StageState:
    return state_of(store, NAME)


def tars(store: Store) -> list[bytes]:
    return [store.read(f"{NAME}/test/{number:05d}.tar") for number in range(3)]


def test_a_build_that_goes_on_equals_one_that_was_never_stopped(planned: Store, monkeypatch: Any) -> None:
    assert state(planned).todo == [0, 1, 2]
    for number in state(planned).todo:
        make_shard(planned.root, NAME, number)
    whole = tars(planned)
    samples: list[Any] = list(read_samples(planned, NAME))
    assert [one.texts["caption"] for one in samples] == [
        f"A {one} dog." for one in ("red", "green", "blue") for _ in "01"
    ]
    assert [one.json.provenance["number"] for one in samples] == [0, 1] * 3
    assert len({one.images["image"] for one in samples}) == 6
    planned.remove(f"{NAME}/_meta/receipts/00001.json")
    job._worker_of.cache_clear()  # as in another process
    assert state(planned).todo == [1]

    denoise, calls = Model.denoise, 0

    def killed(self: Model, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("as if the machine went away")
        return denoise(self, *given)

    monkeypatch.setattr(Model, "denoise", killed)
    with pytest.raises(ConnectionError):
        make_shard(planned.root, NAME, 1)
    assert state(planned).todo == [1]
    make_shard(planned.root, NAME, 1)
    assert state(planned).todo == [] and tars(planned) == whole


def test_a_shard_for_which_memory_runs_out_is_drawn_in_smaller_passes(planned: Store, monkeypatch: Any) -> None:
    denoise = Model.denoise

    def full(self: Model, noise: Any, *given: Any) -> Any:
        if len(noise) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return denoise(self, noise, *given)

    monkeypatch.setattr(Model, "denoise", full)
    receipt = make_shard(planned.root, NAME, 0)
    assert (receipt.micro_batch, receipt.kept) == (1, 2) and receipt.requested_runtime != receipt.runtime


ON_GPU = pytest.param("gpu", marks=pytest.mark.gpu)


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
def test_the_same_bytes_twice(built: Path, tmp_path: Path, device: str) -> None:
    stores = [plan(built, tmp_path / out, device=device) for out in ("out", "again")]  # each loads the model
    for store in stores:
        for number in range(3):
            make_shard(store.root, NAME, number)
        job._worker_of.cache_clear()
    assert tars(stores[0]) == tars(stores[1])
