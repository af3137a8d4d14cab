"""Gradient caching and gathering: the same gradients as one plain backward pass on the whole batch."""

import math
from collections.abc import Mapping
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

Gradients = dict[str, Tensor]


class TwoTowers(nn.Module):
    """Two small encoders and a learnt temperature; encoding takes what of images and texts there is."""

    def __init__(self, seed: int = 0, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.image, self.text = (
            nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 4)) for _ in range(2)
        )
        self.logit_scale = nn.Parameter(torch.tensor(math.log(8.0)))
        self.double()

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        towers = {name: self.image if name.endswith("images") else self.text for name in inputs}
        features = {name: functional.normalize(towers[name](part), dim=1) for name, part in inputs.items()}
        return Features(**features), self.logit_scale.exp()

    def gradients(self) -> Gradients:
        return {name: part.grad for name, part in self.named_parameters() if part.grad is not None}


def batch(n: int, negatives: bool, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    names = ["images", "texts", "negative_images", "negative_texts"][: 4 if negatives else 2]
    return {name: torch.randn(n, 6, generator=generator, dtype=torch.float64) for name in names}


def assert_same(found: Gradients, expected: Gradients) -> None:
    assert found.keys() == expected.keys() and found
    for name, gradient in found.items():
        assert torch.allclose(gradient, expected[name], rtol=0, atol=1e-6), name


def plain(model: TwoTowers, inputs: Mapping[str, Tensor], loss: Any) -> tuple[float, Gradients]:
    value, _ = loss(*model(inputs))
    value.backward()
    return value.item(), model.gradients()


def seeded(objective: str, regulariser: str | None) -> Any:
    """A loss whose samples are the same in every call."""
    return lambda features, scale: open_loss(objective, regulariser, 0.5)(
        features, scale, torch.Generator().manual_seed(5)
    )


@given(
    st.integers(2, 9),
    st.integers(1, 10),
    st.sampled_from([None, *REGULARISERS.own()]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_chunks_of_any_size_give_the_gradient_of_the_whole_batch(
    n: int, chunk: int, regulariser: str | None, negatives: bool, seed: int
) -> None:
    loss, inputs = seeded("negative-pairs" if negatives else "infonce", regulariser), batch(n, negatives, seed)
    value, expected = plain(TwoTowers(seed), inputs, loss)
    model = TwoTowers(seed)
    cached, logged = cached_backward(model, inputs, loss, chunk)
    assert cached.item() == pytest.approx(value, abs=1e-9) and "image_accuracy" in logged
    assert_same(model.gradients(), expected)


def test_each_chunk_is_encoded_twice_with_the_same_dropout() -> None:
    model, seen = TwoTowers(dropout=0.5), list[Tensor]()
    model.image[2].register_forward_hook(lambda module, given, output: seen.append(output.detach()))
    cached_backward(model, batch(6, False), seeded("infonce", None), 2)
    assert [len(part) for part in seen] == [2] * 6
    first, second = (sorted(part.numpy().tobytes() for part in of_pass) for of_pass in (seen[:3], seen[3:]))
    assert first == second and len({*first}) == 3


def test_a_frozen_tower_and_a_frozen_scale_get_no_gradient() -> None:
    model, whole = TwoTowers(), TwoTowers()
    for network in (model, whole):
        network.image.requires_grad_(False)
        network.logit_scale.requires_grad_(False)
    _, expected = plain(whole, batch(5, False), seeded("infonce", "eqsim"))
    cached_backward(model, batch(5, False), seeded("infonce", "eqsim"), 2)
    assert all(name.startswith("text") for name in expected)
    assert_same(model.gradients(), expected)


def test_chunks_below_one_are_refused() -> None:
    with pytest.raises(WrongUse, match="chunks of 0"):
        cached_backward(TwoTowers(), batch(4, False), seeded("infonce", None), 0)


CASES = (("infonce", "eqsim", 3), ("infonce", "hardneg", 2), ("negative-pairs", "eqsim", 1))


def half_of(inputs: Mapping[str, Tensor], objective: str, rank: int) -> dict[str, Tensor]:
    names = ("images", "texts") if objective == "infonce" else tuple(inputs)
    return {name: inputs[name][rank * 3 : rank * 3 + 3] for name in names}


def train_second_of_two(index: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.save(train_one_of_two(index + 1, folder), f"{folder}/second.pt")


def train_one_of_two(rank: int, folder: str) -> list[tuple[Tensor, Gradients]]:
    """One of two processes: its half of each case's batch; the losses, and gradients as means over both."""
    store, results = torch.distributed.FileStore(f"{folder}/meeting", 2), []
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    try:
        for objective, regulariser, chunk in CASES:
            model, loss = TwoTowers(), seeded(objective, regulariser)
            inputs = half_of(batch(6, True), objective, rank)
            value, _ = cached_backward(model, inputs, lambda found, scale, loss=loss: loss(gather(found), scale), chunk)
            for gradient in model.gradients().values():
                torch.distributed.all_reduce(gradient)
                gradient /= 2
            results.append((value, model.gradients()))
    finally:
        torch.distributed.destroy_process_group()
    return results


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    second = torch.multiprocessing.spawn(train_second_of_two, args=(str(tmp_path),), nprocs=1, join=False)
    first = train_one_of_two(0, str(tmp_path))
    while not second.join():
        pass
    theirs = [first, torch.load(tmp_path / "second.pt", weights_only=True)]
    for place, (objective, regulariser, _) in enumerate(CASES):
        halves = [half_of(batch(6, True), objective, rank) for rank in (0, 1)]
        inputs = {name: torch.cat([half[name] for half in halves]) for name in halves[0]}
        value, expected = plain(TwoTowers(), inputs, seeded(objective, regulariser))
        for results in theirs:
            assert results[place][0].item() == pytest.approx(value, abs=1e-9)
            assert_same(results[place][1], expected)
