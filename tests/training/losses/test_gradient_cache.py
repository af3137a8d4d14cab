"""Gradient caching and gathering: the same gradients as one plain backward pass on the whole batch."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, gather
from twinset.training.losses.gradient_cache import cached_backward
from twinset.training.losses.names import REGULARISERS
from twinset.training.losses.objectives import open_loss


class TwoTowers(nn.Module):
    """Two small encoders and a learnt temperature; encoding takes what of images and texts there is."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.image, self.text = (
            nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 4)) for _ in range(2)
        )
        self.logit_scale = nn.Parameter(torch.tensor(math.log(8.0)))

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        towers = {"images": self.image, "texts": self.text, "negative_images": self.image, "negative_texts": self.text}
        features = {name: functional.normalize(towers[name](part), dim=1) for name, part in inputs.items()}
        return Features(**features), self.logit_scale.exp()


def towers(seed: int = 0, dropout: float = 0.0) -> TwoTowers:
    torch.manual_seed(seed)
    return TwoTowers(dropout).double()


def batch(n: int, negatives: bool, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    names = ["images", "texts", "negative_images", "negative_texts"][: 4 if negatives else 2]
    return {name: torch.randn(n, 6, generator=generator, dtype=torch.float64) for name in names}


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {name: part.grad for name, part in model.named_parameters() if part.grad is not None}
    return {name: part for name, part in found.items() if part is not None}


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys() and one
    for name, gradient in one.items():
        assert torch.allclose(gradient, other[name], rtol=0, atol=1e-6), name


def plain(model: TwoTowers, inputs: Mapping[str, Tensor], loss: Any) -> tuple[float, dict[str, Tensor]]:
    value, _ = loss(*model(inputs))
    value.backward()
    return value.item(), gradients(model)


def seeded(objective: str, regulariser: str | None) -> Any:
    """A loss whose samples are the same in every call."""

    def value(features: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
        loss = open_loss(objective, regulariser, 0.5)  # type: ignore[arg-type]
        return loss(features, scale, torch.Generator().manual_seed(5))

    return value


@given(
    st.integers(2, 9),
    st.integers(1, 10),
    st.sampled_from([None, *REGULARISERS.kinds()]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_chunks_of_any_size_give_the_gradient_of_the_whole_batch(
    n: int, chunk: int, regulariser: str | None, negatives: bool, seed: int
) -> None:
    loss, inputs = seeded("negative-pairs" if negatives else "infonce", regulariser), batch(n, negatives, seed)
    value, expected = plain(towers(seed), inputs, loss)
    model = towers(seed)
    cached, logged = cached_backward(model, inputs, loss, chunk)
    assert cached.item() == pytest.approx(value, abs=1e-9) and "image_accuracy" in logged
    assert_same(gradients(model), expected)


def test_accumulating_small_batches_is_not_the_same() -> None:
    loss, inputs = seeded("infonce", None), batch(8, False)
    _, expected = plain(towers(), inputs, loss)
    model = towers()
    for start in (0, 4):
        (loss(*model({name: part[start : start + 4] for name, part in inputs.items()}))[0] / 2).backward()
    assert not torch.allclose(gradients(model)["image.0.weight"], expected["image.0.weight"], atol=1e-3)


def test_dropout_draws_the_same_numbers_in_both_passes() -> None:
    """Seen by the encoder: the features of each chunk are equal in both passes, and random goes on afterwards."""
    model, seen = towers(dropout=0.5), []

    def encode(inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        features, scale = model(inputs)
        seen.append(features.images.detach())
        return features, scale

    torch.manual_seed(3)
    cached_backward(encode, batch(6, False), seeded("infonce", None), 2)
    assert len(seen) == 6 and all(map(torch.equal, seen[:3], seen[3:]))
    after = torch.rand(())
    torch.manual_seed(3)
    for start in (0, 2, 4):
        model({name: part[start : start + 2] for name, part in batch(6, False).items()})
    assert torch.equal(after, torch.rand(()))


def test_a_frozen_tower_and_a_frozen_scale_get_no_gradient() -> None:
    model, whole = towers(), towers()
    for one in (model, whole):
        one.image.requires_grad_(False)
        one.logit_scale.requires_grad_(False)
    _, expected = plain(whole, batch(5, False), seeded("infonce", "eqsim"))
    cached_backward(model, batch(5, False), seeded("infonce", "eqsim"), 2)
    assert all(name.startswith("text") for name in expected)
    assert_same(gradients(model), expected)


def test_features_in_bfloat16_are_cached_as_they_are() -> None:
    """Autocast inside the encoder: its features are bfloat16, the loss and the scale float32."""
    found = []
    for chunk in (2, 6):
        model = towers().float()

        def encode(inputs: Mapping[str, Tensor], model: TwoTowers = model) -> tuple[Features, Tensor]:
            with torch.autocast("cpu", torch.bfloat16):
                features, scale = model({name: part.float() for name, part in inputs.items()})
            return features.map(lambda part: part.bfloat16()), scale

        value, _ = cached_backward(encode, batch(6, False), seeded("infonce", None), chunk)
        found.append((value.item(), gradients(model)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-6)
    assert found[0][1].keys() == found[1][1].keys()
    for name, gradient in found[0][1].items():
        assert torch.allclose(gradient, found[1][1][name], rtol=2e-2, atol=2e-3), name  # sums of bfloat16


def test_every_chunk_but_the_last_is_kept_from_synchronising() -> None:
    order: list[str] = []

    @contextmanager
    def no_sync() -> Iterator[None]:
        order.append("closed")
        yield
        order.append("open")

    cached_backward(towers(), batch(5, False), seeded("infonce", None), 2, no_sync)
    assert order == ["closed", "open"] * 2
    cached_backward(towers(), batch(5, False), seeded("infonce", None), 5, no_sync)
    assert len(order) == 4


def test_chunks_below_one_and_uneven_inputs_are_refused() -> None:
    with pytest.raises(WrongUse, match="chunks of 0"):
        cached_backward(towers(), batch(4, False), seeded("infonce", None), 0)
    uneven = {"images": torch.zeros(3, 6), "texts": torch.zeros(2, 6)}
    with pytest.raises(WrongUse, match=r"'images': 3, 'texts': 2"):
        cached_backward(towers(), uneven, seeded("infonce", None), 1)


CASES = (("infonce", "eqsim-released", 3), ("infonce", "cyclip", 2), ("negative-pairs", "hardneg", 1))


def half_of(inputs: Mapping[str, Tensor], objective: str, rank: int) -> dict[str, Tensor]:
    names = ("images", "texts") if objective == "infonce" else tuple(inputs)
    return {name: inputs[name][rank * 3 : rank * 3 + 3] for name in names}


def train_second_of_two(index: int, folder: str, wrap: bool) -> None:
    torch.set_num_threads(1)
    torch.save(train_one_of_two(index + 1, folder, wrap), f"{folder}/second.pt")


def train_one_of_two(rank: int, folder: str, wrap: bool) -> list[tuple[Tensor, dict[str, Tensor]]]:
    """One of two processes: its half of each case's batch; the losses and averaged gradients.

    wrap: DistributedDataParallel averages them. It takes seconds to import; otherwise they are averaged here.
    """
    store = torch.distributed.FileStore(f"{folder}/meeting", 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    try:
        return [one_step(rank, wrap, *case) for case in CASES]
    finally:
        torch.distributed.destroy_process_group()


def one_step(rank: int, wrap: bool, objective: str, regulariser: Any, chunk: int) -> tuple[Tensor, dict[str, Tensor]]:
    model = towers()
    encode = torch.nn.parallel.DistributedDataParallel(model) if wrap else model
    loss = seeded(objective, regulariser)
    value, _ = cached_backward(
        encode,
        half_of(batch(6, True), objective, rank),
        lambda features, scale: loss(gather(features), scale),
        chunk,
        encode.no_sync if isinstance(encode, torch.nn.parallel.DistributedDataParallel) else nullcontext,
    )
    if not wrap:
        for gradient in gradients(model).values():
            torch.distributed.all_reduce(gradient)
            gradient /= 2
    return value, gradients(model)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [False, True])
def test_two_processes_equal_one(tmp_path: Path, wrap: bool) -> None:
    second = torch.multiprocessing.spawn(train_second_of_two, args=(str(tmp_path), wrap), nprocs=1, join=False)
    first = train_one_of_two(0, str(tmp_path), wrap)
    while not second.join():
        pass
    theirs = [first, torch.load(tmp_path / "second.pt", weights_only=True)]
    for place, (objective, regulariser, _) in enumerate(CASES):
        halves = [half_of(batch(6, True), objective, rank) for rank in (0, 1)]
        inputs = {name: torch.cat([half[name] for half in halves]) for name in halves[0]}
        value, expected = plain(towers(), inputs, seeded(objective, regulariser))  # type: ignore[arg-type]
        for results in theirs:
            assert results[place][0].item() == pytest.approx(value, abs=1e-9)
            assert_same(results[place][1], expected)


def test_one_process_gathers_nothing() -> None:
    features, _ = towers()(batch(3, False))
    assert gather(features) is features
