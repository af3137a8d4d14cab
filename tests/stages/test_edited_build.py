"""EQ-SD from recipe to dataset, with a tiny model of random weights.

The end of a stage: what disagrees with its receipt is found, older plans leave nothing behind.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import twinset
from tests.models.diffusion.tiny_models import save_small
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.finalise import disagreeing, forget, remove_leftovers
from twinset.stages.job import Job, check_devices, check_inputs
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.run_here import build_here
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


def test_asking_for_more_keeps_the_first_ones(recipe: Path, tmp_path: Path) -> None:
    """... byte for byte, also those of a shard and of a network's pass that could not be filled."""
    # What rounds differently is a grey level in few pixels, more with guidance; JPEG could hide it.
    batches = ("subsets.eq-sd.shard_size=4", "subsets.eq-sd.source.micro_batch=4")
    batches += ("subsets.eq-sd.source.guidance=15", "subsets.eq-sd.encoding.format=png")
    first = build(recipe, tmp_path / "out", "subsets.eq-sd.count=5", *batches)
    receipt, samples = first.read("eq-sd/_meta/receipts/00000.json"), list(read_samples(first, "eq-sd"))
    build(recipe, tmp_path / "out", "subsets.eq-sd.count=8", *batches)
    assert first.read("eq-sd/_meta/receipts/00000.json") == receipt
    more = list(read_samples(first, "eq-sd"))
    assert (len(samples), len(more)) == (5, 8) and more[:5] == samples


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


def test_a_model_that_is_not_there_is_said_before_any_work(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "model" / WEIGHTS).unlink()
    with pytest.raises(WrongUse, match=rf"subsets\.eq-sd\.source\.model: .* lacks {WEIGHTS}: put them into"):
        build(recipe, tmp_path / "out")
    with pytest.raises(WrongUse, match=r"source\.model: .*neither a folder here nor in the Hugging Face cache"):
        build(recipe, tmp_path / "out", "subsets.eq-sd.source.model=nobody/nothing")
    assert not (tmp_path / "out").exists()


def test_a_plan_needs_the_model_only_where_it_is_written(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model" / WEIGHTS).unlink()
    assert main(["plan", str(recipe)]) == 0
    assert main(["plan", str(recipe), "--out", str(tmp_path / "out")]) == 2
    assert f"subsets.eq-sd.source.model: the model {tmp_path / 'model'} lacks {WEIGHTS}" in capsys.readouterr().err


def test_a_gpu_that_is_not_there_is_said_before_any_work(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu = ["--set", "subsets.eq-sd.source.device=gpu"]
    assert main(["build", str(recipe), "--out", str(tmp_path / "out"), *gpu]) == 2
    assert "subsets.eq-sd.source.device is gpu, but torch finds no CUDA device here" in capsys.readouterr().err
    asked = load_recipe(str(recipe), gpu[1:])
    with pytest.raises(WrongUse, match="no CUDA device here"):
        check_devices(asked)
    check_devices(load_recipe(str(recipe)))
    # Whoever plans for workers of another machine needs none.
    assert prepare(Job(asked, Store(str(tmp_path / "out"))), "eq-sd").planned == 6


def test_a_full_graphics_card_does_not_stop_a_build(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt

    draw, asked = PromptToPrompt.__call__, []

    def small(self: Any, edits: Any, noise: Any, **settings: Any) -> Any:
        asked.append(len(edits))
        if len(edits) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return draw(self, edits, noise, **settings)

    monkeypatch.setattr(PromptToPrompt, "__call__", small)
    done = state(build(recipe, tmp_path / "out")).done
    assert asked == [2, 1, 1] * 3 and sum(done.column("kept")) == 6
    assert {(one.micro_batch, bool(one.requested_runtime)) for one in done.receipts()} == {(1, True)}


@pytest.mark.slow  # it loads the model in a child; the demo does so too
def test_the_card_says_what_was_not_checked(recipe: Path, tmp_path: Path) -> None:
    """... by a whole build, whose child process loads the model."""
    build_here(load_recipe(str(recipe), ["subsets.eq-sd.count=2"]), str(tmp_path / "out"))
    store = Store(str(tmp_path / "out"))
    text = store.read("eq-sd/README.md").decode()
    assert "Nothing has checked that the pictures show" in text and "prompt-to-prompt" in text
    assert "hertz2023prompt" in text and "model: path/to/model" in text and str(tmp_path) not in text
    assert json.loads(store.read("eq-sd/_meta/croissant.json"))


SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)]


@pytest.mark.parametrize("file", ["eq-a/test/00001.tar", "eq-a/_meta/rows/00001.parquet"])
@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_a_tar_or_rows_that_disagree_with_their_receipt_are_found(
    tmp_path: Path, planned_build: Any, file: str, damage: str
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-a", SCENES, 1)
    build.make_all()
    state, path = build.state(), tmp_path / "out" / file
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:600] + bytes([whole[600] ^ 1]) + whole[601:])
    assert disagreeing(build.store, state)[1] == [1]
    forget(build.store, "eq-a", [1])
    build.make_all()
    assert path.read_bytes() == whole and disagreeing(build.store, build.state())[1] == []


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
    removed = remove_leftovers(store, newer.state())
    assert "eq-a/train/00003.tar" in removed and "eq-a/_meta/plan/00001.parquet" in removed
    assert mine.exists()
    mine.unlink()
    planned_build(Store(str(tmp_path / "fresh")), "eq-a", SCENES[:2], shard_size=2).make_all()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_tars_that_somebody_keeps_beside_the_splits_stay(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-a", SCENES, 1)
    build.make_all()
    backup = tmp_path / "out/eq-a/backup/00000.tar"
    backup.parent.mkdir()
    backup.write_bytes(b"somebody's")
    assert remove_leftovers(build.store, build.state()) == []
    assert backup.exists()


def test_a_split_of_another_name_leaves_no_tar_behind(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    store, scenes = Store(str(tmp_path / "out")), SCENES
    planned_build(store, "eq-a", scenes, shard_size=1).make_all()
    for out in (store, Store(str(tmp_path / "fresh"))):
        renamed = planned_build(out, "eq-a", scenes, shard_size=1, splits=dict.fromkeys("abc", "val"), seed=1)
        renamed.make_all()
        remove_leftovers(out, renamed.state())
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")
    assert store.names("eq-a/test") == []
