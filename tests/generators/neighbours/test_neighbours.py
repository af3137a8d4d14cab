"""Features and neighbours of images as stages: what they hold, and the search itself."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.generators.finished_stage import finish
from tests.tiny_encoders import save_transformers
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.generators.neighbours import source as search
from twinset.generators.neighbours.source import ImageFeatures, ImageNeighbours, nearest
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here

SIDES = 12  # pairs of two images, of which the first is in two pairs
IMAGES = SIDES // 2 + SIDES


@pytest.fixture
def photos(tmp_path: Path) -> FinishedStage:
    drawn, rows, folder = np.random.default_rng(0), [], tmp_path / "in"
    folder.mkdir()
    for number in range(SIDES):
        names = {"image0": f"{number // 2}.png", "image1": f"after-{number}.png"}
        rows.append({"id": number, **names, "caption0": f"a cat {number}", "caption1": f"a dog {number}"})
        for name in names.values():
            Image.fromarray(drawn.integers(0, 256, (40, 56, 3), np.uint8)).save(folder / name)
    (folder / "pairs.json").write_text(json.dumps(rows))
    places = {"annotations": str(folder / "pairs.json"), "media": str(folder)}
    source = {"kind": "image-pairs", "licence": "CC0-1.0", **places}
    build_here(parse_recipe({"name": "near", "subsets": {"photos": {"source": source}}}), str(tmp_path / "out"))
    return FinishedStage(Store(str(tmp_path / "out")), "photos")


def test_neighbours_are_those_of_each_distinct_image(photos: FinishedStage, tmp_path: Path) -> None:
    model = save_transformers(tmp_path / "clip", "clip")
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
    neighbours = finish(near, tmp_path / "table", "near", context=context).read(columns).to_pylist()
    assert [row["image_sha256"] for row in neighbours] == [row["image_sha256"] for row in rows]
    assert [row["number"] for row in neighbours] == [*range(IMAGES)]
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :5]
    assert [row["neighbours"] for row in neighbours] == expected.tolist()
    assert np.allclose([row["cosines"] for row in neighbours], np.take_along_axis(cosines, expected, 1), atol=1e-6)
    with pytest.raises(WrongUse, match="holds no samples; name a stage whose samples have images"):
        list(features.open(Context("features", earlier=lambda _: table)).plan())


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
