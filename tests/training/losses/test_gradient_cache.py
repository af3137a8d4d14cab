"""Gradient caching: the same gradients as one plain backward pass on the whole batch."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from twinset.training.losses.features import Features
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
    st.integers(0, 10),
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
