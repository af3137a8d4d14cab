"""Twins of which each word shows in the picture, and runs of tiny fusion encoders on them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.evaluation.scorers.tiny_models import save_transformers
from tests.made_datasets import MadeDataset
from tests.made_samples import VIDEO_SUBSET, Planned
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile
from twinset.training.examples.contracts import Example
from twinset.training.fusion.settings import FusionSettings

Settings = Callable[..., FusionSettings]
TINTS = {"red": (220, 40, 30), "blue": (30, 60, 220)}


def frame(words: tuple[str, str], name: str, shade: int) -> Frame:
    """A dog is a bar at the top, a cat one on the left; the shade tells pictures of one caption apart."""
    picture = Image.new("RGB", (32, 32), (shade, shade, shade))
    box = (0, 0, 31, 15) if words[1] == "dog" else (0, 0, 15, 31)
    ImageDraw.Draw(picture).rectangle(box, fill=TINTS[words[0]])
    return Frame(name, np.asarray(picture, np.uint8), -1.0, MediaFile(f"{name}.png", 1000, "0" * 64))


def animals(subset: str, shade: int) -> Iterator[Planned]:
    """The pairs of a shade whose two captions differ in one word."""
    words, group = [*itertools.product(TINTS, ("cat", "dog"))], f"{subset}-{shade}"
    for both in itertools.combinations(words, 2):
        if sum(map(str.__ne__, *both)) == 1:
            key, texts = sample_key(subset, str(shade), *both[0], *both[1]), [f"a {' '.join(of)}" for of in both]
            made = Pair(
                key=key, group=group, split="train", change="word", captions0=(texts[0],), captions1=(texts[1],),
                image0=frame(both[0], f"{key}-0", shade), image1=frame(both[1], f"{key}-1", shade),
                provenance={"object": "animal", "frame0": 0},
            )  # fmt: skip
            yield Planned(made, identity_of(subset, shade, *both[0], *both[1]), group)


@pytest.fixture
def made_animals(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Subsets ``arms`` and ``more`` of 24 and 8 pairs to train on, and ``validation`` of 12."""
    return made.take(built(_fill))


def _fill(made: MadeDataset) -> None:
    shades = {"arms": range(60, 180, 20), "more": range(65, 105, 20), "validation": range(70, 130, 20)}
    for subset, some in shades.items():
        made.add(subset, VIDEO_SUBSET, [[pair for shade in some for pair in animals(subset, shade)]])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of tiny models by kind: blip, vilt, flava."""
    folder = tmp_path_factory.mktemp("fusion-models")
    return lambda kind: folder / kind if (folder / kind).exists() else save_transformers(folder / kind, kind)


@pytest.fixture
def settings(made_animals: MadeDataset, tiny: Callable[[str], Path]) -> Settings:
    """Settings of a run of 6 steps of 8 examples, one epoch, validated at its end."""

    def make(kind: str = "blip-itm", **changes: Any) -> FusionSettings:
        given: dict[str, Any] = {
            "model": f"{kind}:{tiny(kind.removesuffix('-itm'))}", "data": (f"{made_animals.root}:arms",),
            "validation": (f"{made_animals.root}:validation",), "batch": 8, "accumulate": 2, "epochs": 1,
            "nearest": 6, "negatives": 4, "hard": 2, "threads": 1, "checkpoint_every": 2, "lr": 1e-3,
        }  # fmt: skip
        return FusionSettings.model_validate(given | changes)

    return make


def damage(made: MadeDataset, example: Example, role: str) -> None:
    """Overwrite the bytes of an image in its tar."""
    place = example.images[role]
    with (made.root / place.tar).open("r+b") as stream:
        stream.seek(place.offset)
        stream.write(bytes(place.size))
