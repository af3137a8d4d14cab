"""Neighbours and negatives of a mixture: none of them matches too, what cannot be read is left out, steps are pure.

FIBER's RandAugment: a function of its numbers, of which each operation is reached.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch.nn import functional

from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import damage
from tests.training.fusion.conftest import Settings
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.neighbours.nearest import nearest
from twinset.training.clip.data import open_data
from twinset.training.examples.neighbours import ImageNeighbours, image_numbers
from twinset.training.examples.transforms import NUMBERS
from twinset.training.fusion import neighbours, randaugment
from twinset.training.fusion.models import open_start
from twinset.training.fusion.neighbours import FusionBatches, Part, labels_of, open_neighbours
from twinset.training.fusion.randaugment import CHANGES, RANDAUGMENT, randaugmented
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.names import ABSENT


def test_negatives_of_a_mixture_match_neither_image_nor_text(
    settings: Settings, made_animals: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = (f"{made_animals.root}:arms", f"{made_animals.root}:more*2")
    chosen = settings(data=mixture, validation=())
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    labels = labels_of(examples, chosen)
    # 24 pairs of pictures of four captions; of `more` every image is there twice.
    assert len(examples) == 48 + 2 * 16 and labels[1].max() == 3
    broken = examples[5]
    damage(made_animals, broken, "image")
    with pytest.raises(BuildFailed, match=r"1 of 80 examples cannot be read.*Fetch these tars again"):
        open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    monkeypatch.setattr(neighbours, "MAX_BROKEN", 0.1)
    found = open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    again = open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    assert (
        again.neighbours.left_out == found.neighbours.left_out == ((5, broken.where, found.neighbours.left_out[0][2]),)
    )
    assert 5 not in found.numbers and len(found.numbers) == 79 and np.array_equal(again.numbers, found.numbers)
    rows = np.arange(79)[:, None]
    places = found.neighbours.places[found.labels[0, rows[:, 0]]]  # of each example
    for kind in found.labels:
        assert (kind[places] != kind[rows])[places != ABSENT].all()
    batches = FusionBatches(chosen, examples, found, start.scorer.processor)
    parts = [part for batch in batches.stream(0, 3) for part in batch.parts]
    assert len(parts) == 6 and [batch.left_out for batch in batches.stream(0, 2)] == [
        ((broken.where, "image: other bytes than its dataset was built with"),),
        (),
    ]
    for part in parts:
        texts, images = np.array(part.texts), part.pixels["pixel_values"]
        assert (texts[part.negatives] != texts[part.rows][:, None]).all() and part.close.sum() == 2 * len(part.rows)
        assert all(
            part.texts[row] == examples_by_key(examples)[key] for row, key in zip(part.rows, part.keys, strict=True)
        )
        assert images.shape == (len(texts), 3, 32, 32)


def test_a_table_of_similar_images_gives_the_same_hard_negatives(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(validation=())
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    labels = labels_of(examples, chosen)
    images, _ = image_numbers(examples)
    features = torch.cat([
        start.scorer.image_features(start.scorer.pixels([examples.open_image(examples[int(number)], "image")]))
        for number in np.unique(labels[0], return_index=True)[1]
    ])  # fmt: skip
    near = nearest(functional.normalize(features.detach(), dim=-1), chosen.nearest)[0].numpy().astype(np.int32)
    table = ImageNeighbours(labels[0], near, "digest", chosen.nearest)
    found = open_neighbours(chosen, tmp_path / "found", start, examples, labels)
    given = open_neighbours(chosen, tmp_path / "given", start, examples, labels, table)
    assert len(images) == len(near) and np.array_equal(given.neighbours.places, found.neighbours.places)
    assert given.neighbours.examples != found.neighbours.examples
    with pytest.raises(WrongUse, match="made of other examples"):
        open_neighbours(chosen, tmp_path / "found", start, examples, labels, table)


def examples_by_key(examples: Any) -> dict[str, str]:
    return {one.key: one.texts["text"] for one in (examples[number] for number in range(len(examples)))}


def same(one: Part, other: Part) -> bool:
    arrays = [(part.rows, part.negatives, part.close, *part.pixels.values()) for part in (one, other)]
    return (one.keys, one.texts) == (other.keys, other.texts) and all(map(np.array_equal, *arrays))


@pytest.mark.slow
def test_a_step_depends_on_seed_and_step_alone(settings: Settings, tmp_path: Path) -> None:
    def parts(chosen: FusionSettings, first: int) -> list[Part]:
        batches = FusionBatches(chosen, examples, found, start.scorer.processor)
        return [part for batch in batches.stream(first, 8) for part in batch.parts]

    chosen = settings("vilt", epochs=2)
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    found = open_neighbours(chosen, tmp_path / "out", start, examples, labels_of(examples, chosen))
    straight = parts(chosen, 0)
    assert all(map(same, straight[10:], parts(chosen, 5)))
    assert all(map(same, straight, parts(chosen.model_copy(update={"workers": 2}), 0)))
    assert not same(straight[0], parts(chosen.model_copy(update={"seed": 1}), 0)[0])
    assert not same(straight[0], straight[12])  # another epoch: other order, crops and negatives


def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(40, 200, (60, 80, 3), np.uint8))


def numbers(mirror: float, *operations: float) -> Any:
    """The first try of a crop is all of the picture."""
    found = np.full(RANDAUGMENT, 0.5)
    found[:4] = 1.0, np.log(80 / 60 / 0.75) / np.log(16 / 9), 0.0, 0.0
    found[NUMBERS:] = mirror, *operations
    return found


def test_without_operations_it_is_the_crop_mirrored_and_resized() -> None:
    off = (0.0, 0.9, 0.0) * 2
    assert randaugmented(picture(), numbers(0.9, *off), None).tobytes() == picture().tobytes()
    assert randaugmented(picture(), numbers(0.1, *off), None).tobytes() == ImageOps.mirror(picture()).tobytes()
    assert randaugmented(picture(), numbers(0.9, *off), (32, 24)).size == (32, 24)


@pytest.mark.parametrize("name", CHANGES)
def test_each_operation_is_reached_and_keeps_the_size(name: str) -> None:
    which = ([*CHANGES].index(name) + 0.5) / len(CHANGES)
    found = [randaugmented(picture(), numbers(0.9, which, 0.1, sign, 0.0, 0.9, 0.0), None) for sign in (0.1, 0.9)]
    assert all(one.size == (80, 60) and one.mode == "RGB" for one in found)
    assert (found[0].tobytes() != picture().tobytes()) == (name != "Identity")
    signed = name.startswith(("Shear", "Translate", "Rotate"))
    assert (found[0].tobytes() != found[1].tobytes()) == signed
    if signed:
        assert (128, 128, 128) in {colour for _, colour in found[0].getcolors(10_000)}  # type: ignore[misc]


def test_levels_are_those_of_fiber() -> None:
    """Level 7 of 10: enhanced by 1.36, sheared by 0.21, shifted by 7 pixels, rotated by 21 degrees."""
    found = (randaugment.ENHANCED, randaugment.SHEARED, randaugment.SHIFTED, randaugment.ROTATED)
    assert found == pytest.approx((1.36, 0.21, 7, 21))
