"""GeneCIS's triplets from recipe to dataset: captions, scene graphs, plan, images."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.captioned_images import SCENES, write_inputs
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.shards.read import read_samples
from twinset.shards.rows import KEPT, Row, read_rows
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.making.make import make_shard
from twinset.stages.run_here import build_here

pytest.importorskip("inflect", reason="inflect makes the plurals of the published rules: pip install 'twinset[text]'")
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs, with scene graphs in ``graphs`` as an earlier build has made them."""
    folder = tmp_path_factory.mktemp("inputs")
    build_here(load_recipe(str(write_inputs(folder))).only(["scene-graphs"]), str(folder / "graphs"))
    return folder


@pytest.fixture
def recipe(inputs: Path, tmp_path: Path) -> Path:
    shutil.copytree(inputs, tmp_path / "inputs")
    return tmp_path / "inputs" / "recipe.yaml"


def build(recipe: Path, out: Path, *settings: str, workers: int = 1) -> Store:
    """Build from the scene graphs that are made already; a duplicate or a missing image does not end it."""
    graphs = f"subsets.triplets.source.graphs={recipe.parent / 'graphs/_stages/scene-graphs'}"
    loaded = load_recipe(str(recipe), [graphs, "max_missing=1", *settings]).only(["triplets"])
    build_here(loaded, str(out), workers)
    return Store(str(out))


def rows_of(store: Store) -> dict[str, Row]:
    found = {}
    for name in store.names("triplets/_meta/rows"):
        with store.open(f"triplets/_meta/rows/{name}") as stream:
            found |= {row.key: row for row in read_rows(stream)}
    return found


def problems(store: Store, media: bool = False) -> list[str]:
    found = [*map(str, twinset.verify(store.root, media=media)["subsets"]["triplets"]["problems"])]
    return found


def shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.endswith("recipe.json")}


def test_a_triplet_holds_both_images_and_what_leads_from_one_to_the_other(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out")
    assert problems(store, media=True) == []
    samples: list[Any] = list(read_samples(store, "triplets"))
    assert samples and len(samples) == sum(row.verdict == KEPT for row in rows_of(store).values())
    for sample in samples:
        reference, target = (
            SCENES[int(sample.json.image_ids[part].removeprefix("i"))] for part in ("reference", "target")
        )
        assert reference[0] == target[0] and reference[1] != target[1]
        assert sample.texts["condition"] == " ".join(target[1])
        assert sample.json.provenance["target"] == {
            "subject": target[0],
            "predicate": target[1][0],
            "object": target[1][1],
            "caption_id": sample.json.image_ids["target"].replace("i", "c"),
        }
        assert sample.json.scores["concreteness"] > 4.8


def test_the_same_bytes_on_any_number_of_workers_and_from_captions(
    recipe: Path, tmp_path: Path, files_below: Any
) -> None:
    build(recipe, tmp_path / "1")
    whole = shards(files_below(tmp_path / "1"))
    assert sum(name.endswith(".tar") for name in whole) == 5
    build(recipe, tmp_path / "4", workers=4)
    assert shards(files_below(tmp_path / "4")) == whole
    # A stage of the same recipe gives what a folder gives.
    build_here(load_recipe(str(recipe), ["max_missing=1"]), str(tmp_path / "captions"))
    found = shards(files_below(tmp_path / "captions"))
    assert {name: content for name, content in found.items() if not name.startswith("_stages/")} == whole


def test_the_same_triplets_in_shards_of_any_size_and_more_keep_the_first(recipe: Path, tmp_path: Path) -> None:
    def samples(store: Store) -> dict[str, Any]:
        return {key: (row.words, row.images) for key, row in rows_of(store).items()}

    few = samples(build(recipe, tmp_path / "few"))
    assert samples(build(recipe, tmp_path / "sizes", "subsets.triplets.shard_size=3")) == few
    store = build(recipe, tmp_path / "few", "subsets.triplets.count=64")
    more = samples(store)
    assert len(more) == 64 and {key: more[key] for key in few} == few and problems(store) == []


def test_workers_of_shards_need_images_alone(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out")
    receipt = store.read("triplets/_meta/receipts/00000.json")
    store.remove("triplets/_meta/receipts/00000.json")
    shutil.rmtree(recipe.parent / "graphs")
    (recipe.parent / "ratings.txt").unlink()
    job._worker_of.cache_clear()
    assert make_shard(store.root, "triplets", 0).planned == json.loads(receipt)["planned"]


def test_captions_without_triplets_say_at_which_step(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="0 eligible subjects"):
        build(recipe, tmp_path / "out", "subsets.triplets.source.min_images=100")
    assert not (tmp_path / "out/triplets/_meta/stage.json").exists()
