"""Objectives: equal to loops over their formula, in every precision."""

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from tests.training.losses.conftest import features
from twinset.training.losses.features import Features, similarities
from twinset.training.losses.names import OBJECTIVES


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
