"""Features and neighbours of images as stages: what they hold, resumed and by other workers; and the search itself."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.generators.finished_stage import finish
from tests.tiny_encoders import save_transformers
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.neighbours import source as search
from twinset.generators.neighbours.source import ImageFeatures, ImageNeighbours, nearest
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here

SIDES = 12  # pairs of two images, of which the first is in two pairs
IMAGES = SIDES // 2 + SIDES


def photographs(folder: Path) -> None:
    drawn, rows = np.random.default_rng(0), []
    folder.mkdir()
    for number in range(SIDES):
        rows.append({"pair_id": number, "before": f"{number // 2}.png", "after": f"after-{number}.png"})
        rows[-1] |= {"caption0": f"a cat {number}", "caption1": f"a dog {number}"}
        for name in (rows[-1]["before"], rows[-1]["after"]):
            Image.fromarray(drawn.integers(0, 256, (40, 56, 3), np.uint8)).save(folder / str(name))
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def recipe(folder: Path, model: Path) -> Recipe:
    photos = {
        "kind": "image-pairs", "annotations": str(folder / "pairs.jsonl"), "media": str(folder), "licence": "CC0-1.0",
        "fields": {"id": "pair_id", "image0": "before", "image1": "after"},
    }  # fmt: skip
    features = {"kind": "image-features", "images": "photos", "model": str(model), "micro_batch": 4}
    near = {"kind": "image-neighbours", "features": "features", "neighbours": 5}
    return parse_recipe(
        {
            "name": "near",
            "stages": {"photos": {"source": photos}, "features": {"source": features, "shard_size": 7}},
            "subsets": {"near": {"source": near, "shard_size": 4}},
        }
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_transformers(tmp_path_factory.mktemp("tower") / "clip", "clip")


@pytest.fixture
def photos(tmp_path: Path) -> FinishedStage:
    photographs(tmp_path / "in")
    raw = recipe(tmp_path / "in", tmp_path).model_dump(mode="json")
    build_here(parse_recipe({"name": "photos", "subsets": {"photos": raw["stages"]["photos"]}}), str(tmp_path / "out"))
    return FinishedStage(Store(str(tmp_path / "out")), "photos")


def test_neighbours_are_those_of_each_distinct_image(photos: FinishedStage, model: Path, tmp_path: Path) -> None:
    features = ImageFeatures(kind="image-features", images="photos", model=str(model), micro_batch=4)
    assert "pillow" in features.open(Context("features")).libraries, "which decodes the images"
    context = Context("features", earlier=lambda _: photos)
    table = finish(features, tmp_path / "table", "features", context=context)
    rows = table.read(["image_sha256", "features"]).to_pylist()
    assert len(rows) == IMAGES and len({row["image_sha256"] for row in rows}) == IMAGES
    vectors = np.array([row["features"] for row in rows], np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    near = ImageNeighbours(kind="image-neighbours", features="features", neighbours=5)
    context = Context("near", earlier=lambda _: table)
    columns = ["image_sha256", "number", "neighbours", "cosines"]
    found = finish(near, tmp_path / "table", "near", context=context).read(columns).to_pylist()
    assert [row["image_sha256"] for row in found] == [row["image_sha256"] for row in rows]
    assert [row["number"] for row in found] == [*range(IMAGES)]
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :5]
    assert [row["neighbours"] for row in found] == expected.tolist()
    assert np.allclose([row["cosines"] for row in found], np.take_along_axis(cosines, expected, 1), atol=1e-6)
    with pytest.raises(WrongUse, match="holds no samples; name a stage whose samples have images"):
        list(features.open(Context("features", earlier=lambda _: table)).plan())


@pytest.mark.slow  # its workers are processes, which import torch
def test_a_build_gives_the_same_table_in_other_shards_and_processes(model: Path, tmp_path: Path) -> None:
    photographs(tmp_path / "in")
    chosen = recipe(tmp_path / "in", model)
    assert build_here(chosen, str(tmp_path / "out"), 1)["subsets"]["near"]["kept"] == IMAGES
    build_here(chosen, str(tmp_path / "again"), 2, runner="processes")
    tables = [FinishedStage(Store(str(tmp_path / name)), "near") for name in ("out", "again")]
    assert tables[0].digest == tables[1].digest


@pytest.mark.parametrize(("rows", "columns"), [(1024, 1 << 15), (3, 4)])
def test_the_search_in_blocks_is_the_whole_search(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    monkeypatch.setattr(search, "ROWS", rows)
    monkeypatch.setattr(search, "COLUMNS", columns)
    features = torch.nn.functional.normalize(torch.randn(23, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    cosines = (features @ features.T).fill_diagonal_(-torch.inf)
    for k in (1, 6, 22, 99):
        expected = cosines.topk(min(k, 22), dim=1)
        places, alike = nearest(features, k)
        assert torch.equal(places, expected.indices) and torch.allclose(alike, expected.values, atol=1e-6)
        assert torch.equal(nearest(features, k, slice(9, 14))[0], expected.indices[9:14])
