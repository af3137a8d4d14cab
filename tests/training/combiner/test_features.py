"""Batches of a frozen encoder's features: those of the encoder, in the order of the epoch, without broken ones."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import Settings, damage
from twinset.contracts.errors import BuildFailed
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Running
from twinset.training.combiner.data import Triplets, open_data
from twinset.training.combiner.features import FeatureBatches
from twinset.training.examples.ordering import order
from twinset.training.runs.processes import Process

Makes = Callable[..., FeatureBatches]


@pytest.fixture
def encoder(settings: Settings) -> DualEncoder:
    found = open_model(f"random:{settings('x').model}", Running(threads=1))
    assert isinstance(found, DualEncoder)
    return found


@pytest.fixture
def makes(encoder: DualEncoder, tmp_path: Path) -> Iterator[Makes]:
    """Batches of two triplets with a store of their own."""
    store = FeatureStore(tmp_path / "features", "encoder")
    yield lambda triplets, **more: FeatureBatches(
        triplets, encoder, store, 4, 2, 0, Process(more.pop("rank", 0), more.pop("world", 1), "cpu", ""), **more
    )
    store.close()


@pytest.fixture
def triplets(made_triplets: MadeDataset, settings: Settings) -> Triplets:
    """All eight."""
    data = settings(f"{made_triplets.root}:triplets", validation=(f"{made_triplets.root}:two-images",))
    return open_data(data).training


def test_features_are_the_encoders_in_the_order_of_the_epoch(
    triplets: Triplets, encoder: DualEncoder, makes: Makes
) -> None:
    batches = makes(triplets)
    assert batches.steps_per_epoch == 4
    for step, batch in enumerate(batches.stream(0, 8)):
        chosen = order(8, 0, step // 4)[step % 4 * 2 :][:2].tolist()
        examples = [triplets[number] for number in chosen]
        assert batch.keys == tuple(one.key for one in examples) and batch.epoch == step // 4
        for role in ("reference", "target"):
            prepared = [encoder.prepare(triplets.open_image(one, role)) for one in examples]
            assert np.allclose(batch.images[role].numpy(), encoder.image_features(prepared), atol=1e-6)
        texts = encoder.text_features([one.texts["condition"] for one in examples])
        assert np.allclose(batch.texts["condition"].numpy(), texts, atol=1e-6)


def test_processes_share_each_batch(triplets: Triplets, makes: Makes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "wait", lambda self: None)
    whole, *parts = (makes(triplets, rank=rank, world=world) for rank, world in ((0, 1), (0, 2), (1, 2)))
    for step in range(8):
        first, second = (one.at(step) for one in parts)
        assert first.keys + second.keys == whole.at(step).keys and len(first.keys) == 1
        both = torch.cat([first.images["target"], second.images["target"]])
        assert torch.equal(both, whole.at(step).images["target"])


def test_a_broken_triplet_is_in_no_batch_and_is_named_once(
    made_triplets: MadeDataset, triplets: Triplets, makes: Makes
) -> None:
    damage(made_triplets, triplets[3], "target")
    batches = makes(triplets, max_broken=0.5)
    assert batches.steps_per_epoch == 3
    seen = list(batches.stream(0, 30))
    assert triplets[3].key not in {key for batch in seen for key in batch.keys}
    assert [len(batch.left_out) for batch in seen] == [1] + 29 * [0]
    assert triplets[3].where in seen[0].left_out[0][0] and seen[0].left_out[0][1] == "unreadable image"
    batches.check_resumed(batches.left_out)
    with pytest.raises(BuildFailed, match=r"cannot be read now, and could when this run began.*a new --out"):
        batches.check_resumed([])
    with pytest.raises(BuildFailed, match="1 of 8 triplets cannot be read"):
        makes(triplets)


def test_a_dataset_that_is_rebuilt_ends_the_next_epoch(
    made_triplets: MadeDataset, triplets: Triplets, makes: Makes
) -> None:
    receipt = made_triplets.root / "triplets/_meta/receipts/00000.json"
    stream = makes(triplets).stream(0, 8)
    for _ in range(4):
        next(stream)
    sha256 = made_triplets.receipts["triplets"][0].tar_sha256
    assert sha256 in receipt.read_text()
    receipt.write_text(receipt.read_text().replace(sha256, "0" * 64))
    with pytest.raises(BuildFailed, match="rebuilt since this training began"):
        next(stream)
