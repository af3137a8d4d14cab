"""Similar images of the examples of a run: read from a table, and mixed into batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.finished_stage import write_index
from tests.made_datasets import MadeDataset
from twinset.contracts.errors import WrongUse
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import train_clip
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.neighbours import image_numbers, open_image_neighbours
from twinset.training.losses.names import ABSENT

NEAR = 4


def table(folder: Path, hashes: list[int]) -> str:
    """A table in which the neighbours of an image are the next ones; returns its place."""
    numbers = np.random.default_rng(0).permutation(len(hashes))
    rows = [
        {
            "key": str(number), "image_sha256": f"{sha256:016x}".ljust(64, "0"), "number": int(number),
            "neighbours": [int(numbers[(row + shift) % len(hashes)]) for shift in range(1, NEAR + 1)],
        }
        for row, (sha256, number) in enumerate(zip(hashes, numbers, strict=True))
    ]  # fmt: skip
    order = sorted(rows, key=lambda row: int(str(row["key"])))
    types = (pa.string(), pa.string(), pa.int32(), pa.list_(pa.int32()))
    schema = pa.schema(list(zip(rows[0], types, strict=True)))
    write_index(pa.Table.from_pylist(order, schema), folder, "near", len(rows))
    return f"{folder}:near"


@pytest.fixture
def examples(made_pairs: MadeDataset) -> ExampleSet:
    return open_examples([f"{made_pairs.root}:eq-ag", f"{made_pairs.root}:eq-youcook2"], "pairs")


def test_neighbours_are_looked_up_by_the_bytes_of_images(examples: ExampleSet, tmp_path: Path) -> None:
    images, numbers = image_numbers(examples)
    for number in range(len(examples)):
        assert examples[number].images["image"].sha256 == f"{images[numbers[number]]:016x}"
    # Of twice as many images, every second is trained on: its neighbours are those at a distance of 2 and 4.
    hashes = [one for image in images.tolist() for one in (image, image ^ 1)]
    found = open_image_neighbours(table(tmp_path, hashes), examples, 3)
    n = len(images)
    for row in range(n):
        assert found.places[row].tolist() == [(row + 1) % n, (row + 2) % n, ABSENT, ABSENT]
    assert np.array_equal(found.image, numbers) and found.nearest == 3
    with pytest.raises(WrongUse, match=rf"near lacks 1 of the {n} images that are trained on; build it"):
        open_image_neighbours(table(tmp_path / "few", images[1:].tolist()), examples, 3)
    with pytest.raises(WrongUse, match="holds no stage"):
        open_image_neighbours(str(tmp_path / "none" / "near"), examples, 3)


def test_half_a_batch_are_neighbours_of_the_other_half(examples: ExampleSet, tmp_path: Path) -> None:
    found = open_image_neighbours(table(tmp_path, image_numbers(examples)[0].tolist()), examples, 3)
    seeds = np.random.default_rng(1).permutation(len(examples))
    batches = found.mixed(seeds, 4, np.random.default_rng(0)).reshape(-1, 2, 4)
    assert np.array_equal(batches[:, 0].ravel(), seeds[: len(seeds) // 4 * 4])
    near = 0
    for some, others in batches:
        images = found.image[np.concatenate([some, others])]
        assert len({*images[4:]}) == 4 and not {*images[4:]} & {*images[:4]}
        near += sum(image in found.places[own, :3] for own, image in zip(images[:4], images[4:], strict=True))
    assert near >= 0.9 * len(seeds) // 4 * 4
    assert np.array_equal(batches.ravel(), found.mixed(seeds, 4, np.random.default_rng(0)))


def test_a_run_with_neighbours_is_bound_to_their_table_and_resumes(
    made_pairs: MadeDataset, tmp_path: Path, tiny_clip: dict[str, Any]
) -> None:
    images, _ = image_numbers(open_examples([f"{made_pairs.root}:eq-ag"], "pairs", twins="first"))
    given: dict[str, Any] = tiny_clip | {
        "data": (f"{made_pairs.root}:eq-ag",), "twins": "first", "batch": 4, "epochs": 2, "warmup": 0, "threads": 1,
        "objective": "negclip", "neighbours": table(tmp_path / "table", images.tolist()), "lr": 1e-3,
    }  # fmt: skip
    settings = ClipSettings.model_validate(given)
    done = train_clip(settings, tmp_path / "run", report=False)
    assert len(done.history) == 2 * (8 // 2)
    again = ClipSettings.model_validate(given | {"workers": 2})
    assert train_clip(again, tmp_path / "again", report=False).digest == done.digest
    plain = train_clip(ClipSettings.model_validate(given | {"neighbours": None}), tmp_path / "plain", report=False)
    assert plain.digest != done.digest and len(plain.history) == 2 * (8 // 4)
    other = table(tmp_path / "other", [*images.tolist(), 1])
    with pytest.raises(WrongUse, match=r"data\.neighbours is "):
        train_clip(ClipSettings.model_validate(given | {"neighbours": other}), tmp_path / "run", report=False)
    with pytest.raises(WrongUse, match="half of a batch of 8 are to be neighbours, each image once, and there are 5"):
        train_clip(ClipSettings.model_validate(given | {"batch": 8}), tmp_path / "large", report=False)


@pytest.fixture
def tiny_clip(tmp_path: Path) -> dict[str, Any]:
    from tests.evaluation.scorers.tiny_models import open_clip_config

    return {"model": str(open_clip_config(tmp_path / "model")), "weights": None}
