"""Gradient caching: the same gradients as one plain backward pass on the whole batch."""

import math
from collections.abc import Mapping

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


class TwoTowers(nn.Module):
    """Two small encoders and a learnt temperature; encoding takes what of images and texts there is."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.image, self.text = (nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(2))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(8.0)))
        self.double()

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        towers = {name: self.image if name.endswith("images") else self.text for name in inputs}
        features = {name: functional.normalize(towers[name](part), dim=1) for name, part in inputs.items()}
        return Features(**features), self.logit_scale.exp()


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
    whole, model = TwoTowers(seed), TwoTowers(seed)  # which seed torch
    compared = open_loss("negative-pairs" if negatives else "infonce", regulariser, 0.5)
    names = ["images", "texts", "negative_images", "negative_texts"][: 4 if negatives else 2]
    inputs = {name: torch.randn(n, 6, dtype=torch.float64) for name in names}

    def loss(features: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
        return compared(features, scale, torch.Generator().manual_seed(5))

    value, _ = loss(*whole(inputs))
    value.backward()  # type: ignore[no-untyped-call]
    cached, logged = cached_backward(model, inputs, loss, chunk)
    assert cached.item() == pytest.approx(value.item(), abs=1e-9) and "image_accuracy" in logged
    for found, expected in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, rtol=0, atol=1e-6)
