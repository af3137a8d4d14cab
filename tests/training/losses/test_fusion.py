"""Losses of fusion encoders: equal to loops over their formulas; a real matching head learns with them."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from twinset.training.losses.fusion import (
    CHANGES,
    FusionLoss,
    PairScores,
    contrast_negatives,
    match_hard_negatives,
    rank_texts,
    score_pairs,
)
from twinset.training.losses.names import fusion_form, fusion_regularisers
from twinset.training.losses.objectives import open_fusion_loss


def scores(n: int, m: int, seed: int) -> tuple[PairScores, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    own, *others = (
        torch.randn(n * (1 + 3 * m), generator=generator, dtype=torch.float64).mul(2).split([n] + [n * m] * 3)
    )
    close = torch.rand(n, m, generator=generator) < 0.5
    return PairScores(own, *(part.view(n, m) for part in others)), close


def sigmoid(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=40)
def test_objectives_equal_loops(n: int, m: int, seed: int) -> None:
    given, _ = scores(n, m, seed)
    rank, match = [], []
    for i in range(n):
        own = given.own[i].item()
        wrong_texts, wrong_images = given.changed_text[i].tolist(), given.changed_image[i].tolist()
        rank.append(math.log(math.exp(own) + sum(map(math.exp, wrong_texts))) - own)
        match += [-math.log(sigmoid(own)), *(-math.log(1 - sigmoid(score)) for score in wrong_texts + wrong_images)]
    assert rank_texts(given)[0].item() == pytest.approx(mean(rank), abs=1e-6)
    # n own pairs, n · m changed texts and n · m changed images: one mean over all.
    assert match_hard_negatives(given)[0].item() == pytest.approx(mean(match), abs=1e-6)


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=20)
def test_the_contrastive_loss_of_negatives_equals_loops(n: int, m: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    images, texts = torch.nn.functional.normalize(torch.randn(2, n + m, 5, generator=generator).double(), dim=2)
    rows = torch.arange(n)
    negatives = torch.stack([torch.randperm(n + m, generator=generator)[:m] for _ in range(n)])
    losses = []
    for i in range(n):
        own = float(images[i] @ texts[i]) / 0.07
        for one, other in ((images, texts), (texts, images)):
            wrong = [float(one[i] @ other[j]) / 0.07 for j in negatives[i].tolist()]
            losses.append(math.log(math.exp(own) + sum(map(math.exp, wrong))) - own)
    loss, logged = contrast_negatives(images, texts, rows, negatives)
    assert loss.item() == pytest.approx(mean(losses), abs=1e-6) and logged["contrast"] == pytest.approx(mean(losses))


def slow_eqsim(given: PairScores, close: Tensor, form: str, margin: float, margin_v1: float, how: Any) -> Tensor:
    """EqSim (EqBen, section 3 and C) as loops over negatives; of the released form FIBER's ``hard_itm``."""
    first, sides = [], list[tuple[Tensor, Tensor]]()
    for i, j in itertools.product(*map(range, close.shape)):
        near = bool(close[i, j])
        own, both = how(given.own[i]), how(given.both[i, j])
        text, image = how(given.changed_text[i, j]), how(given.changed_image[i, j])
        if form in ("eqsim", "eqsim-v1-all") or (form == "eqsim-figure-4" and not near):
            first.append(((text - image) ** 2 - margin_v1).relu())
        if form in ("eqsim-v2-all", "eqsim-released") or (form != "eqsim-v1-all" and near):
            sides.append((((own - text) - (both - image)) ** 2, ((own - image) - (both - text)) ** 2))
    both_sides = [[side[which] for side in sides] for which in (0, 1)]
    if form == "eqsim-released":
        return sum(((average(squares) - margin).relu() for squares in both_sides), torch.zeros(()))
    return average(first) + sum(average([(one - margin).relu() for one in squares]) for squares in both_sides)


def average(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean() if values else torch.zeros((), dtype=torch.float64)


FORMS = fusion_regularisers()
PARTS = ("own", "changed_text", "changed_image", "both")


@pytest.mark.parametrize("form", FORMS)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 999), st.sampled_from([1e-9, 0.04, 0.1]), st.booleans())
@settings(max_examples=15)
def test_eqsim_equals_loops(form: str, n: int, m: int, seed: int, margin: float, logits: bool) -> None:
    given, close = scores(n, m, seed)
    parts = [getattr(given, name).requires_grad_() for name in PARTS]
    asked: dict[str, Any] = {"margin": margin, "margin_v1": margin / 2}
    if form != "eqsim-released":
        asked["normalise"] = "logits" if logits else "sigmoid"
    known = fusion_form(form).settings
    value, logged = open_fusion_loss(form, **{k: v for k, v in asked.items() if k in known})(given, close)
    how = torch.clone if asked.get("normalise") == "logits" else torch.sigmoid
    expected = slow_eqsim(given, close, form, margin, margin / 2, how)
    assert value.item() == pytest.approx(expected.item(), abs=1e-6) and 0 <= logged["active_fraction"] <= 1
    if expected.requires_grad:
        pairs = zip(
            *(torch.autograd.grad(one, parts, materialize_grads=True) for one in (value, expected)), strict=True
        )
        assert all(torch.allclose(*both, rtol=0, atol=1e-6) for both in pairs)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_agree_with_finite_differences_and_vanish_below_the_margin(form: str) -> None:
    given, close = scores(3, 2, 1)
    parts = [getattr(given, name).requires_grad_() for name in PARTS]

    def regulariser(margin: float) -> FusionLoss:
        read = fusion_form(form).settings
        return open_fusion_loss(form, **{name: margin for name in ("margin", "margin_v1") if name in read})

    def value(*parts: Tensor) -> Tensor:
        loss = regulariser(1e-4)(PairScores(*parts), close)[0]
        return loss + rank_texts(PairScores(*parts))[0] + match_hard_negatives(PairScores(*parts))[0]

    assert torch.autograd.gradcheck(value, parts)
    loss, logged = regulariser(4.0)(PairScores(*parts), close)
    assert loss.item() == 0 and not any(logged.values())
    gradients = torch.autograd.grad(loss, parts, materialize_grads=True)
    assert all(not gradient.any() for gradient in gradients)


def test_pairs_are_scored_as_image_and_text_of_their_names() -> None:
    def score(images: Tensor, texts: Tensor) -> Tensor:
        return (100 * images + texts).to(torch.bfloat16)

    found = score_pairs(score, torch.tensor([1, 2]), torch.tensor([[2, 0, 4], [3, 1, 0]]))
    assert found.own.tolist() == [101, 202] and found.own.dtype == torch.float32
    exact = score_pairs(lambda images, texts: 100.0 * images + texts, torch.tensor([1]), torch.tensor([[2, 0, 4]]))
    assert exact.changed_text.tolist() == [[102, 100, 104]]
    assert exact.changed_image.tolist() == [[201, 1, 401]] and exact.both.tolist() == [[202, 0, 404]]
    part = score_pairs(
        lambda images, texts: 100.0 * images + texts, torch.tensor([1]), torch.tensor([[2, 0]]), CHANGES[1:2]
    )
    assert part.changed_image.tolist() == [[201, 1]] and part.changed_text.shape == part.both.shape == (1, 0)


@pytest.mark.slow  # importing BLIP takes seconds
def test_a_matching_head_of_blip_learns_in_a_few_steps() -> None:
    """The loss of a tiny BLIP falls over steps of AdamW until each image prefers its own text."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**small, "vocab_size": 20, "max_position_embeddings": 8, "encoder_hidden_size": 16, "sep_token_id": 1}
    vision = {**small, "image_size": 16, "patch_size": 8}
    config = transformers.BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=8)
    model = transformers.BlipForImageTextRetrieval(config).train()
    pixels, tokens = torch.randn(6, 3, 16, 16), torch.randint(2, 20, (6, 4))

    def score(images: Tensor, texts: Tensor) -> Tensor:
        logits = model(input_ids=tokens[texts], pixel_values=pixels[images], use_itm_head=True).itm_score
        return logits[:, 1] - logits[:, 0]

    rows, negatives = torch.arange(4), torch.tensor([[1, 4], [2, 5], [3, 4], [0, 5]])
    close = torch.tensor([[True, False]]).expand(4, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    history = []
    for _ in range(24):
        found = score_pairs(score, rows, negatives)
        ranking, matching = rank_texts(found), match_hard_negatives(found)
        regulariser = open_fusion_loss("eqsim-figure-4", margin=0.0)(found, close)[0]
        loss = ranking[0] + matching[0] + 0.5 * regulariser
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        history.append((loss.item(), ranking[1]["text_accuracy"]))
    assert history[-1][0] < 0.5 * history[0][0]
    assert history[-1][1] == 1.0 > history[0][1]
