"""Losses of fusion encoders: equal to loops over their formulas; a real matching head learns with them.

Regularisers: margins, gradients, samples, half precision, and the sum that is logged.
"""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.training.losses.made_features import SCALE, features
from twinset.contracts.errors import WrongUse
from twinset.training.losses.eqsim import EqSim, EqSimReleased, close_pairs
from twinset.training.losses.features import Features
from twinset.training.losses.fusion import (
    CHANGES,
    FusionLoss,
    PairScores,
    contrast_negatives,
    match_hard_negatives,
    rank_texts,
    score_pairs,
)
from twinset.training.losses.names import REGULARISERS, fusion_form, fusion_regularisers
from twinset.training.losses.objectives import open_fusion_loss, open_loss, open_objective, open_regulariser
from twinset.training.losses.sampling import sample_hard


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


def two_pairs(gap: float) -> Tensor:
    """Similarities of two pairs that differ from equivariance by gap: S_12 − S_21 = gap, S_11 = S_22."""
    return torch.tensor([[0.6, 0.2 + gap / 2], [0.2 - gap / 2, 0.6]], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("form", [("all", None), (None, "close"), (None, "all"), ("all", "close")])
@pytest.mark.parametrize("released", [False, True])
def test_the_gradient_vanishes_below_the_margin(form: Any, released: bool) -> None:
    """All residuals of both forms are ± gap here, so that gap² against the margin decides."""
    sample = torch.tensor([[1], [0]])
    for gap, active in ((0.19, 0.0), (0.21, 1.0)):
        scores = two_pairs(gap)
        if released:  # the mean of v1 is over 4 cells, of which 2 are gap²
            value, logged = EqSimReleased(*form, margin=0.04, margin_v1=0.02).on(scores, (sample, sample))
        else:
            eye = torch.eye(2, dtype=torch.float64)
            regulariser = EqSim(*form, margin=0.04, margin_v1=0.04, normalise="cosine")
            value, logged = regulariser(Features(eye, scores.T), SCALE)
        value.backward()
        assert logged["active_fraction"] == pytest.approx(active)
        assert scores.grad is not None and bool((scores.grad != 0).any()) == (active > 0)
        assert (value.item() > 0) == (active > 0)


def test_the_released_margin_is_on_the_mean_and_the_papers_on_each_pair() -> None:
    """One pair far above the margin among many at rest: released, it gets no gradient; in the paper's form it does."""
    n = 8
    scores = torch.full((n, n), 0.1, dtype=torch.float64).fill_diagonal_(0.8)
    scores[0, 1] += 0.6
    scores.requires_grad_()
    released, logged = EqSimReleased(None, "all").on(scores, None)
    assert released.item() == 0 and logged == {"active_fraction": 0}
    paper, more = EqSim(None, "all", normalise="cosine")(Features(torch.eye(n, dtype=torch.float64), scores.T), SCALE)
    assert paper.item() > 0 and more["active_fraction"] == pytest.approx(2 / (n * (n - 1)))


def test_with_the_margin_of_v2_the_v1_of_distant_pairs_never_acts() -> None:
    """Its squares are at most 1/81 where 8 pairs are close, below 0.04 and 0.1: why v1 has a margin of its own."""
    given = features(64, 0, 64)
    for margin, acts in ((0.04, False), (0.0, True)):
        _, logged = open_regulariser("eqsim-figure-4", margin_v1=margin)(given, torch.tensor(100.0))
        assert (logged["active_v1"] > 0) == acts and logged["active_v2"] > 0


@pytest.mark.parametrize("name", REGULARISERS.kinds())
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    given = features(5, 11)
    regulariser = open_regulariser(
        name, **{key: 1e-4 for key in REGULARISERS.find(name).settings if key.startswith("margin")}
    )

    def value(images: Tensor, texts: Tensor, scale: Tensor) -> Tensor:
        return regulariser(Features(images, texts), scale, torch.Generator().manual_seed(0))[0]

    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    inputs = (given.images.requires_grad_(), given.texts.requires_grad_(), scale)
    assert value(*inputs).item() > 0
    assert torch.autograd.gradcheck(value, inputs)


@pytest.mark.parametrize("name", REGULARISERS.kinds())
def test_large_batches_in_half_precision_stay_finite_and_exact(name: str) -> None:
    rough = features(400, 3, 16).map(lambda part: part.bfloat16().requires_grad_())
    values = []
    for scale in (torch.tensor(100.0), torch.tensor(100.0, dtype=torch.float64)):
        given = rough.map(lambda part, scale=scale: part.to(scale.dtype))  # type: ignore[misc]
        with torch.autocast("cpu", torch.bfloat16):
            value, logged = open_regulariser(name)(given, scale, torch.Generator().manual_seed(1))
        value.backward()
        values.append(value.item())
        assert all(0 <= number < 1e4 for number in logged.values()) and logged
    assert values[0] == pytest.approx(values[1], rel=1e-4, abs=1e-7)
    assert all(part.grad is not None and part.grad.isfinite().all() for part in rough.tensors())


def test_a_batch_of_one_pair() -> None:
    for name in ("eqsim", "eqsim-v1-all", "eqsim-v2-all", "eqsim-v2-close", "eqsim-v1-all-released"):
        value, logged = open_regulariser(name)(features(1, 0), SCALE)  # type: ignore[arg-type]
        assert value.item() == 0 and logged["active_fraction"] == 0
    with pytest.raises(WrongUse, match="batch of one"):
        open_regulariser("hardneg")(features(1, 0), SCALE)


def test_samples_are_distinct_never_the_own_pair_and_follow_the_softmax() -> None:
    logits = torch.tensor([[9.0, 2.0, 1.0, 0.0], [0.0, 9.0, 0.0, 0.0], [-500.0, 500.0, 0.0, -500.0], [0.0] * 4])
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([sample_hard(logits, 2, generator) for _ in range(4000)])
    assert all(len(set(row)) == 2 and i not in row for draw in draws[:50].tolist() for i, row in enumerate(draw))
    first = draws[:, 0, 0].bincount(minlength=4) / 4000
    assert torch.allclose(first[1:], torch.tensor([2.0, 1.0, 0.0]).softmax(0), atol=0.03)
    # Second of two without replacement: p(1 then 2) = p1 · p2 / (1 − p1).
    p = torch.tensor([2.0, 1.0, 0.0]).softmax(0)
    both = ((draws[:, 0, 0] == 1) & (draws[:, 0, 1] == 2)).float().mean()
    assert both.item() == pytest.approx((p[0] * p[1] / (1 - p[0])).item(), abs=0.03)
    assert set(draws[:, 2, 0].tolist()) == {1}, "its softmax is 1 and 0; the second is sampled all the same"
    assert sample_hard(logits, 9).shape == (4, 3)
    with pytest.raises(WrongUse, match="samples=0"):
        sample_hard(logits, 0)


def test_close_pairs_grow_with_k_and_are_symmetric() -> None:
    cosines = features(9, 4).images @ features(9, 4).texts.T
    masks = [close_pairs(cosines, k) for k in (1, 3, 8)]
    assert all(torch.equal(mask, mask.T) and not mask.diagonal().any() for mask in masks)
    assert masks[0].sum() < masks[1].sum() < masks[2].sum() == 72
    with pytest.raises(WrongUse, match="close=0"):
        close_pairs(cosines, 0)


def test_the_sum_adds_the_weighted_regulariser_and_logs_both() -> None:
    given = features(6, 5)
    generator = torch.Generator().manual_seed(0)
    total, logged = open_loss("infonce", "hardneg", 0.3, samples=2)(given, SCALE, generator)
    objective = open_objective("infonce")(given, SCALE)[0].item()
    extra = open_regulariser("hardneg", samples=2)(given, SCALE, torch.Generator().manual_seed(0))[0].item()
    assert total.item() == pytest.approx(objective + 0.3 * extra)
    assert logged["objective"] == pytest.approx(objective) and logged["regulariser"] == pytest.approx(extra)
    assert {"image_accuracy", "hard_above_own"} < set(logged)


def test_weight_zero_leaves_the_gradient_and_draws_the_same_samples() -> None:
    gradients, states = [], []
    for name, weight in ((None, 0.0), ("eqsim-released", 0.0), ("eqsim-released", 0.5)):
        given, generator = features(6, 5).map(lambda part: part.requires_grad_()), torch.Generator().manual_seed(0)
        options = {} if name is None else {"margin": 0.0}
        open_loss("infonce", name, weight, **options)(given, SCALE, generator)[0].backward()  # type: ignore[arg-type]
        gradients.append(given.images.grad)
        states.append(generator.get_state())
    assert torch.equal(*gradients[:2]) and not torch.equal(*gradients[1:])  # type: ignore[arg-type]
    assert torch.equal(*states[1:])


def test_with_negative_pairs_the_regulariser_sees_the_twins() -> None:
    one, two = features(3, 0), features(3, 1)
    twins = Features(one.images, one.texts, two.images, two.texts)
    together = Features(torch.cat([one.images, two.images]), torch.cat([one.texts, two.texts]))
    _, logged = open_loss("negative-pairs", "cyclip", 1.0)(twins, SCALE)
    assert logged["regulariser"] == pytest.approx(open_regulariser("cyclip")(together, SCALE)[0].item())
    _, logged = open_loss("infonce", "cyclip", 1.0)(twins, SCALE)
    assert logged["regulariser"] == pytest.approx(open_regulariser("cyclip")(one, SCALE)[0].item())


def test_wrong_names_and_options_are_refused() -> None:
    with pytest.raises(WrongUse, match="no regulariser 'eqsim-v2' here; did you mean 'eqsim-v2-all'"):
        open_regulariser("eqsim-v2")
    with pytest.raises(WrongUse, match="hardneg has no form for fusion encoders; name one of eqsim, "):
        open_fusion_loss("hardneg")
    with pytest.raises(WrongUse, match=r"cyclip.*margin.*docs/training.md"):
        open_regulariser("cyclip", margin=0.1)
