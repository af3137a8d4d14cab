"""Triplets of which a reference and a condition name the target, and runs of a tiny model on them."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from tests.made_samples import MINED_SUBSET, Planned
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.kinds.samples import Frame, MediaFile
from twinset.generators.triplets.source import Triplet
from twinset.training.combiner.settings import CombinerSettings

COLOURS = ("red", "green", "blue", "yellow", "white", "black")
GROUNDS = ("gray", "brown", "pink", "navy", "olive", "teal", "orange", "purple")
Settings = Callable[..., CombinerSettings]


def frame(ground: str, colour: str) -> Frame:
    """A square of a colour on a ground."""
    picture = Image.new("RGB", (32, 32), ground)
    ImageDraw.Draw(picture).rectangle((8, 8, 24, 24), fill=colour)
    name = f"{ground}-{colour}"
    return Frame(name, np.asarray(picture, np.uint8), -1.0, MediaFile(f"{name}.jpg", 1000, "0" * 64))


def recoloured() -> list[Planned]:
    """The ground of the reference stays, and the condition names the colour of the target: 8 x 6 x 5 triplets."""
    planned = []
    for ground, (before, after) in itertools.product(GROUNDS, itertools.permutations(COLOURS, 2)):
        key = sample_key("recoloured", ground, before, after)
        images = {"reference": f"{ground}-{before}", "target": f"{ground}-{after}", "distractor": ""}
        captions = {role: name.replace("-", " ") for role, name in images.items()}
        made = Triplet(
            key=key, group=key, split="train", condition=f"{after} square", reference=frame(ground, before),
            target=frame(ground, after), distractor=None, captions=captions, image_ids=images,
            provenance={"target": {"subject": "square"}}, scores={"concreteness": 4.9},
        )  # fmt: skip
        planned.append(Planned(made, identity_of(ground, before, after), key))
    return planned


@pytest.fixture
def made_recoloured(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """240 triplets of 48 images in two subsets, ``recoloured`` of 192 and ``others`` of 48."""
    return made.take(built(_fill))


def _fill(made: MadeDataset) -> None:
    planned = recoloured()
    random.Random(0).shuffle(planned)
    made.add("recoloured", MINED_SUBSET, [planned[48:]])
    made.add("others", MINED_SUBSET, [planned[:48]])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a tiny model with random weights, on the data that is named; features in a cache of its own."""
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    config = str(open_clip_config(tmp_path / "model", embed_dim=32))

    def make(place: str, **changes: Any) -> CombinerSettings:
        given: dict[str, Any] = {
            "model": config, "weights": None, "data": (place,), "batch": 2, "epochs": 2, "projection": 12, "hidden": 20,
            "lr": 1e-3, "threads": 1,
        }  # fmt: skip
        return CombinerSettings.model_validate(given | changes)

    return make
