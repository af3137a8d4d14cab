"""Objectives: equal to loops over their formula, in every precision; gradients of chunks are those of the batch."""

import math
from collections.abc import Mapping, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from twinset.training.losses.features import Features, similarities
from twinset.training.losses.gradient_cache import cached_backward
from twinset.training.losses.names import OBJECTIVES, REGULARISERS
from twinset.training.losses.objectives import open_loss

SCALE = torch.tensor(7.0, dtype=torch.float64)


def features(n: int, seed: int, parts: int = 2, d: int = 5) -> Features:
    """Random features of unit length of n examples. parts: 2, or 3 or 4 with negative images and negative texts."""
    generator = torch.Generator().manual_seed(seed)
    return Features(*functional.normalize(torch.randn(parts, n, d, generator=generator, dtype=torch.float64), dim=2))


def cross_entropy(row: Sequence[float], answer: int) -> float:
    return math.log(sum(math.exp(logit) for logit in row)) - row[answer]


def slow(name: str, given: Features, scale: float) -> float:
    """The loss written as loops."""
    images, texts = given.images.tolist(), given.texts.tolist()
    assert given.negative_images is not None and given.negative_texts is not None
    if name == "negative-pairs":
        images, texts = images + given.negative_images.tolist(), texts + given.negative_texts.tolist()
    columns = texts + (given.negative_texts.tolist() if name in ("negative-texts", "negclip") else [])
    logits = [[scale * sum(a * b for a, b in zip(image, text, strict=True)) for text in columns] for image in images]
    n = len(images)
    of_images = [cross_entropy(row, i) for i, row in enumerate(logits)]
    of_texts = [cross_entropy([row[i] for row in logits], i) for i in range(n)]
    return sum(of_images + of_texts) / n / 2


@given(st.sampled_from([*OBJECTIVES.own()]), st.integers(2, 9), st.integers(0, 999), st.sampled_from([1.0, 14.3, 60.0]))
@settings(max_examples=60)
def test_an_objective_equals_its_formula_in_loops(name: str, n: int, seed: int, scale: float) -> None:
    given = features(n, seed, parts=4)
    loss, logged = OBJECTIVES.find(name).open()(given, torch.tensor(scale, dtype=torch.float64))
    assert loss.item() == pytest.approx(slow(name, given, scale), abs=1e-6)
    chance = {"infonce": 1 / n, "negative-pairs": 1 / n / 2}.get(name, (1 / n + 1 / n / 2) / 2)
    assert set(logged) == {"image_accuracy", "text_accuracy", "chance"} and logged["chance"] == pytest.approx(chance)


def test_accuracy_counts_rows_whose_best_column_is_their_own() -> None:
    eye = torch.eye(4)
    loss, logged = OBJECTIVES.find("infonce").open()(Features(eye, eye[[0, 1, 3, 2]]), torch.tensor(10.0))
    assert logged == {"image_accuracy": 0.5, "text_accuracy": 0.5, "chance": 0.25} and loss > 4
    # A negative text that equals the image takes the answer from the image's row, not from the text's.
    harder = Features(eye, functional.normalize(eye + 0.1), None, eye)
    logged = OBJECTIVES.find("negclip").open()(harder, torch.tensor(10.0))[1]
    assert (logged["image_accuracy"], logged["text_accuracy"]) == (0, 1)


@pytest.mark.parametrize("name", OBJECTIVES.own())
def test_half_precision_and_large_scales_and_batches_stay_finite_and_exact(name: str) -> None:
    rough = features(512, 2, parts=4, d=32).map(lambda part: part.bfloat16().requires_grad_())
    with torch.autocast("cpu", torch.bfloat16):  # which would take the matrix product in bfloat16
        loss = OBJECTIVES.find(name).open()(rough, torch.tensor(100.0))[0]
    loss.backward()  # type: ignore[no-untyped-call]
    rounded = rough.map(lambda part: part.detach().double())
    expected = OBJECTIVES.find(name).open()(rounded, torch.tensor(100.0, dtype=torch.float64))[0].item()
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(expected, rel=1e-5)
    assert rough.images.grad is not None and rough.images.grad.isfinite().all()
    assert similarities(rough.images, rough.texts).dtype == torch.float32


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
        encoded = {name: functional.normalize(towers[name](part), dim=1) for name, part in inputs.items()}
        return Features(**encoded), self.logit_scale.exp()


@given(
    st.integers(2, 9),
    st.integers(0, 10),
    st.sampled_from([None, *REGULARISERS.own()]),
    st.sampled_from([2, 4]),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_chunks_give_the_whole_gradient(n: int, chunk: int, regulariser: str | None, parts: int, seed: int) -> None:
    whole, model = TwoTowers(seed), TwoTowers(seed)  # which seed torch
    compared = open_loss("negative-pairs" if parts == 4 else "infonce", regulariser, 0.5)
    names = ["images", "texts", "negative_images", "negative_texts"][:parts]
    inputs = {name: torch.randn(n, 6, dtype=torch.float64) for name in names}

    def loss(given: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
        return compared(given, scale, torch.Generator().manual_seed(5))

    value, _ = loss(*whole(inputs))
    value.backward()  # type: ignore[no-untyped-call]
    cached, logged = cached_backward(model, inputs, loss, chunk)
    assert cached.item() == pytest.approx(value.item(), abs=1e-9) and "image_accuracy" in logged
    for weight, expected in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, expected.grad, rtol=0, atol=1e-6)
