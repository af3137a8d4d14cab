"""EQ-SD from recipe to dataset, with a tiny model of random weights.

The end of a stage: what disagrees with its receipt is found, older plans leave nothing behind.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.models.diffusion.tiny_models import save_small
from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import load_recipe
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.finalise import remove_leftovers
from twinset.stages.job import Job, check_inputs
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.status import StageState, state_of

WEIGHTS = "unet/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small(tmp_path_factory.mktemp("tiny-diffusion"))


@pytest.fixture
def recipe(tiny: Path, tmp_path: Path) -> Path:
    """Six pairs in shards of two, by a model in the folder ``model`` beside the recipe."""
    shutil.copytree(tiny, tmp_path / "model")
    source = {
        "kind": "stable-diffusion",
        "model": "model",
        "vocabulary": "small-world",
        "licence": "MIT",
        "steps": 2,
        "micro_batch": 2,
    }
    subsets = {"eq-sd": {"source": source, "count": 6, "shard_size": 2}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"name": "drawn", "subsets": subsets}))
    return tmp_path / "recipe.yaml"


def build(recipe: Path, out: Path, *settings: str) -> Store:
    """Make all shards in this process, where torch is loaded once."""
    loaded, store = load_recipe(str(recipe), settings), Store(str(out))
    check_inputs(loaded, ("models",))
    prepare(Job(loaded, store), "eq-sd")
    for number in state(store).todo:
        make_shard(store.root, "eq-sd", number)
    return store


def state(store: Store) -> StageState:
    return state_of(store, "eq-sd")


def test_a_build_is_whole_and_the_same_every_time(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out")
    assert state(store).todo == [] and state(store).counts()["kept"] == 6
    assert set(state(store).done.column("micro_batch")) == {2}
    assert len({receipt.machine for receipt in state(store).done.receipts()} - {"any"}) == 1
    # Its shards alone were made here, and no card.
    (problem,) = map(str, twinset.verify(store.root, media=True)["subsets"]["eq-sd"]["problems"])
    assert "README.md: absent" in problem
    again = build(recipe, tmp_path / "again")
    for number in range(3):
        tar = f"eq-sd/test/{number:05d}.tar"
        assert store.read(tar) == again.read(tar)
    changes = {sample.json.change for sample in read_samples(store, "eq-sd")}
    assert changes == {"object", "scene", "attribute"}


def test_the_folder_of_the_weights_is_no_part_of_what_is_made_but_they_are(recipe: Path, tmp_path: Path) -> None:
    def content(*settings: str) -> str:
        return prepare(Job(load_recipe(str(recipe), settings), Store(str(tmp_path / "out"))), "eq-sd").content

    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere")
    first = content()
    assert content(f"subsets.eq-sd.source.model={tmp_path / 'elsewhere'}") == first
    assert content("subsets.eq-sd.source.micro_batch=1", "subsets.eq-sd.source.threads=2") == first
    assert content("subsets.eq-sd.source.guidance=3") != first
    with (tmp_path / "elsewhere" / WEIGHTS).open("ab") as stream:
        stream.write(b" ")
    assert content(f"subsets.eq-sd.source.model={tmp_path / 'elsewhere'}") != first


def test_a_worker_with_other_weights_refuses(recipe: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "out"))
    prepare(Job(load_recipe(str(recipe)), store), "eq-sd")
    with (tmp_path / "model" / WEIGHTS).open("ab") as stream:
        stream.write(b" ")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"differs in generator; bring .*weights of a model"):
        make_shard(store.root, "eq-sd", 0)


SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)]


def test_what_an_older_and_longer_plan_left_is_removed_and_nothing_else(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    store = Store(str(tmp_path / "out"))
    older = planned_build(store, "eq-a", [*SCENES, ("d", 30, 31)], shard_size=1, splits={"d": "train"})
    older.make_all()
    (tmp_path / "out/eq-a/_meta/plan/00001.parquet").write_bytes(b"of shards 1000 to 1999")
    newer = planned_build(store, "eq-a", SCENES[:2], shard_size=2)
    newer.make_all()
    mine = tmp_path / "out/eq-a/test/00003.idx"
    mine.write_text("an index that somebody made beside the tars")
    remove_leftovers(store, newer.state())
    assert mine.exists()
    mine.unlink()
    planned_build(Store(str(tmp_path / "fresh")), "eq-a", SCENES[:2], shard_size=2).make_all()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_a_split_of_another_name_leaves_no_tar_behind(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    store, scenes = Store(str(tmp_path / "out")), SCENES
    planned_build(store, "eq-a", scenes, shard_size=1).make_all()
    for out in (store, Store(str(tmp_path / "fresh"))):
        renamed = planned_build(out, "eq-a", scenes, shard_size=1, splits=dict.fromkeys("abc", "val"), seed=1)
        renamed.make_all()
        remove_leftovers(out, renamed.state())
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")
    assert store.names("eq-a/test") == []
