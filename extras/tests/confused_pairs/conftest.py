"""A stage of photographs, with the features that two encoders gave them."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from extras.tests.confused_pairs.encoded_photos import (
    FIRST_SECOND,
    IMAGES,
    context,
    encoded,
    table,
)
from twinset.contracts.recipe import parse_recipe
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> FinishedStage:
    """A built stage of noise; every fourth image is of another split."""
    folder, drawn = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for number in range(IMAGES):
        name = f"{number:02d}.png"
        Image.fromarray(drawn.integers(0, 256, (20, 30, 3), np.uint8)).save(folder / name)
        split = "train" if number % 4 == 3 else "test"
        rows += [
            {"caption_id": f"{name}#{n}", "image": name, "caption": f"{n} of {name}", "split": split} for n in (0, 1)
        ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "image-captions", "captions": str(folder / "captions.jsonl"), "images": str(folder)}
    raw = {"name": "n", "subsets": {"photos": {"source": {**source, "licence": "CC0-1.0"}, "shard_size": 15}}}
    build_here(parse_recipe(raw), str(folder / "out"))
    return FinishedStage(Store(str(folder / "out")), "photos")


@pytest.fixture
def stages(photos: FinishedStage, tmp_path: Path) -> Context:
    first, second = (table(tmp_path, name, encoded(photos, *how)) for name, how in FIRST_SECOND.items())
    return context(photos, first, second)
