"""Objectives: equal to loops over their formula, in every precision, with gradients that agree."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from twinset.contracts.errors import WrongUse
from twinset.training.losses.features import Features, concatenate, similarities
from twinset.training.losses.names import OBJECTIVES, Objective
from twinset.training.losses.objectives import open_loss, open_objective

PARTS = {"image": "images", "text": "texts", "negative_image": "negative_images", "negative_text": "negative_texts"}


def features(n: int, seed: int, name: str = "negative-pairs", d: int = 6) -> Features:
    generator = torch.Generator().manual_seed(seed)
    parts = {
        PARTS[role]: torch.randn(n, d, generator=generator, dtype=torch.float64) for role in OBJECTIVES.find(name).roles
    }
    return Features(**parts).map(lambda part: functional.normalize(part, dim=1))


def cross_entropy(row: list[float], answer: int) -> float:
    return math.log(sum(math.exp(logit) for logit in row)) - row[answer]


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def slow(name: str, given: Features, scale: float) -> float:
    """The loss written as loops."""
    images, texts = given.images.tolist(), given.texts.tolist()
    if name == "negative-pairs":
        assert given.negative_images is not None and given.negative_texts is not None
        images, texts = images + given.negative_images.tolist(), texts + given.negative_texts.tolist()
    columns = list(texts)
    if name in ("negative-texts", "negclip"):
        assert given.negative_texts is not None
        columns += given.negative_texts.tolist()
    total = 0.0
    for i, image in enumerate(images):
        total += cross_entropy([scale * dot(image, text) for text in columns], i) / len(images) / 2
    for i, text in enumerate(texts):
        total += cross_entropy([scale * dot(image, text) for image in images], i) / len(texts) / 2
    return total


@given(st.sampled_from(OBJECTIVES.kinds()), st.integers(2, 9), st.integers(0, 999), st.sampled_from([1.0, 14.3, 60.0]))
@settings(max_examples=60)
def test_an_objective_equals_its_formula_in_loops(name: str, n: int, seed: int, scale: float) -> None:
    given = features(n, seed, name)
    loss, logged = open_objective(name)(given, torch.tensor(scale, dtype=torch.float64))
    assert loss.item() == pytest.approx(slow(name, given, scale), abs=1e-6)
    chance = {"infonce": 1 / n, "negative-pairs": 1 / n / 2}.get(name, (1 / n + 1 / n / 2) / 2)
    assert set(logged) == {"image_accuracy", "text_accuracy", "chance"} and logged["chance"] == pytest.approx(chance)


@pytest.mark.parametrize("name", OBJECTIVES.kinds())
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    given = features(4, 0, name)
    parts = [part.requires_grad_() for part in given.tensors()]
    names = [PARTS[role] for role in OBJECTIVES.find(name).roles]
    scale = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)

    def value(scale: Tensor, *parts: Tensor) -> Tensor:
        return open_objective(name)(Features(**dict(zip(names, parts, strict=True))), scale)[0]

    assert torch.autograd.gradcheck(value, (scale, *parts))


def test_an_objective_without_its_class_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.training.losses.names.INFONCE", Objective("json:nope", ("image", "text")))
    with pytest.raises(WrongUse, match=r"objective 'infonce' cannot be opened: AttributeError: .* correct its package"):
        open_objective("infonce")


def test_accuracy_counts_rows_whose_best_column_is_their_own() -> None:
    eye = torch.eye(4)
    loss, logged = open_objective("infonce")(Features(eye, eye[[0, 1, 3, 2]]), torch.tensor(10.0))
    assert logged == {"image_accuracy": 0.5, "text_accuracy": 0.5, "chance": 0.25} and loss > 4
    # A negative text that equals the image takes the answer from the image's row, not from the text's.
    harder = Features(eye, functional.normalize(eye + 0.1), None, eye)
    found = open_objective("negclip")(harder, torch.tensor(10.0))[1]
    assert (found["image_accuracy"], found["text_accuracy"]) == (0, 1)


def test_only_negative_pairs_pushes_a_caption_away_from_the_negative_image() -> None:
    for name, pushed in (("negative-texts", False), ("negative-pairs", True)):
        given = features(3, 1)
        assert given.negative_images is not None
        given.negative_images.requires_grad_()
        given.texts.requires_grad_()
        open_loss(name)(given, torch.tensor(5.0))[0].backward()  # type: ignore[arg-type]
        assert (given.negative_images.grad is not None) == pushed


@pytest.mark.parametrize("name", OBJECTIVES.kinds())
def test_half_precision_and_large_scales_and_batches_stay_finite(name: str) -> None:
    exact = features(512, 2, name, 32)
    scale = torch.tensor(100.0)
    reference = open_objective(name)(exact, scale.double())[0].item()
    single = exact.map(lambda part: part.float())
    with torch.autocast("cpu", torch.bfloat16):  # autocast would take the matrix product in bfloat16
        assert open_objective(name)(single, scale)[0].item() == pytest.approx(reference, rel=1e-5)
    rough = exact.map(lambda part: part.bfloat16().requires_grad_())
    loss = open_objective(name)(rough, scale)[0]
    loss.backward()
    # Features rounded to 8 bits move the loss; the loss of these rounded features is exact.
    rounded = open_objective(name)(rough.map(lambda part: part.detach().double()), scale.double())[0].item()
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(rounded, rel=1e-5)
    assert all(part.grad is not None and part.grad.isfinite().all() for part in rough.tensors())


def test_similarities_of_bfloat16_are_float32() -> None:
    one = features(3, 0).images.bfloat16()
    assert similarities(one, one).dtype == torch.float32
    assert torch.equal(similarities(one, one), one.float() @ one.float().T)


def test_a_batch_without_its_negatives_is_refused_by_name() -> None:
    plain = features(3, 0, "infonce")
    with pytest.raises(WrongUse, match="negative texts"):
        open_objective("negative-texts")(plain, torch.tensor(1.0))
    with pytest.raises(WrongUse, match="negative images"):
        open_objective("negative-pairs")(features(3, 0, "negclip"), torch.tensor(1.0))
    with pytest.raises(WrongUse, match=r"images.*\(3, 6\).*texts.*\(2, 6\)"):
        Features(plain.images, plain.texts[:2])
    with pytest.raises(WrongUse, match="no objective 'siglip' here; did you mean"):
        open_objective("siglip")


def test_chunks_join_to_the_batch() -> None:
    for name in OBJECTIVES.kinds():
        whole = features(5, 3, name)
        joined = concatenate([whole.map(lambda part: part[:2]), whole.map(lambda part: part[2:])])
        assert all(map(torch.equal, whole.tensors(), joined.tensors()))
        assert len(joined.tensors()) == len(OBJECTIVES.find(name).roles)
