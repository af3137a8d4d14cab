"""Losses equal loops over their formulas: values, gradients, in every precision, in chunks as in whole batches.

EqSim, of dual and of fusion encoders, equals a transcription. Hard negatives follow the softmax; of fusion encoders
they are texts of similar images, as the matching head orders them; negatives are distinct, hard ones first.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from twinset.contracts.errors import WrongUse
from twinset.training.losses.eqsim import EqSim
from twinset.training.losses.features import Features, similarities
from twinset.training.losses.fusion import CHANGES, PairScores, match_hard_negatives, rank_texts, score_pairs
from twinset.training.losses.gradient_cache import cached_backward
from twinset.training.losses.mining import sample_negatives, score_neighbours, texts_of_neighbours
from twinset.training.losses.names import ABSENT, OBJECTIVES, REGULARISERS, fusion_form
from twinset.training.losses.objectives import InfoNCE, open_loss
from twinset.training.losses.sampling import HardNegatives, sample_hard, sample_pairs

SCALE = torch.tensor(7.0, dtype=torch.float64)


def features(n: int, seed: int, parts: int = 2, d: int = 5) -> Features:
    """Random features of unit length of n examples. parts: 2, or 3 or 4 with negative images and negative texts."""
    generator = torch.Generator().manual_seed(seed)
    return Features(*functional.normalize(torch.randn(parts, n, d, generator=generator, dtype=torch.float64), dim=2))


def cross_entropy(row: Sequence[float], answer: int) -> float:
    return math.log(sum(math.exp(logit) for logit in row)) - row[answer]


def slow(name: str, given: Features, scale: float) -> float:
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
@settings(max_examples=30)
def test_an_objective_equals_its_formula_in_loops(name: str, n: int, seed: int, scale: float) -> None:
    given = features(n, seed, parts=4)
    loss, logged = OBJECTIVES.find(name).open()(given, torch.tensor(scale, dtype=torch.float64))
    assert loss.item() == pytest.approx(slow(name, given, scale), abs=1e-6)
    chance = {"infonce": 1 / n, "negative-pairs": 1 / n / 2}.get(name, (1 / n + 1 / n / 2) / 2)
    assert set(logged) == {"image_accuracy", "text_accuracy", "chance"} and logged["chance"] == pytest.approx(chance)


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


KINDS = st.sampled_from([None, *REGULARISERS.own()])


@given(st.integers(2, 9), st.integers(0, 10), KINDS, st.sampled_from([2, 4]), st.integers(0, 99))
@settings(max_examples=20)
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


Cells = Sequence[Sequence[Tensor]]
PAIRS = [(v1, v2) for v1 in ("all", "distant", "none") for v2 in ("all", "close", "none") if (v1, v2) != ("none",) * 2]
FORMS = ["paper", "released"]
MARGINS = st.sampled_from([1e-9, 1e-3, 0.04, 0.1])


def average(values: Sequence[Tensor]) -> Tensor:
    return torch.stack([*values]).mean() if values else torch.zeros((), dtype=torch.float64)


def side(squares: Sequence[Tensor], margin: float, form: str) -> Tensor:
    """A term of EqSim: the mean of hinges, or the hinge of the mean."""
    if form == "released":
        return (average(squares) - margin).relu()
    return average([(square - margin).relu() for square in squares])


def total(v1: Sequence[Tensor], v2: Sequence[tuple[Tensor, Tensor]], form: str, margins: tuple[float, float]) -> Tensor:
    """EqSim of squares of v1, and of those of v2 for a text and for an image. margins: of v1 and of v2."""
    sides = (side(squares, margins[1], form) for squares in zip(*v2, strict=True))
    return sum(sides, side(v1, margins[0], form))


def of_v2(s: Cells, i: int, j: int) -> tuple[Tensor, Tensor]:
    text = ((s[i][i] - s[i][j]) - (s[j][j] - s[j][i])) ** 2
    return text, ((s[i][i] - s[j][i]) - (s[j][j] - s[i][j])) ** 2


def close_of(cosines: list[list[float]]) -> set[tuple[int, int]]:
    """Pairs i < j of which one is among the 8 nearest of the other, in either direction (EqBen C)."""
    n, close = len(cosines), set()
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        texts = sorted(rest, key=lambda j: -cosines[i][j])[:8]
        images = sorted(rest, key=lambda j: -cosines[j][i])[:8]
        close |= {(min(i, j), max(i, j)) for j in texts + images}
    return close


def transcribed(given: Features, v1: str, v2: str, form: str, margin: float, margin_v1: float, seed: int) -> Tensor:
    """EqSim as loops over pairs (EqBen, sections 3, 5.4 and C), or as its released code samples and averages them."""
    n = len(given)
    logits = [[SCALE * (given.images[i] * given.texts[j]).sum() for j in range(n)] for i in range(n)]
    s = [[logit.exp() / sum(column.exp() for column in row) for logit in row] for row in logits]
    pairs = sorted(itertools.combinations(range(n), 2))
    close = sorted(close_of((given.images @ given.texts.T).tolist()))
    chosen = {"all": pairs, "close": close, "distant": [pair for pair in pairs if pair not in close], "none": []}
    cells = [(s[i][j] - s[j][i]) ** 2 for i, j in chosen[v1]]
    if form == "released":
        sampled = sample_pairs(SCALE * similarities(given.images, given.texts), 4, torch.Generator().manual_seed(seed))
        chosen["close"] = [(i, j) for i in range(n) for of_row in sampled for j in of_row[i].tolist()]
        masked = {pair for i, j in chosen["close"] for pair in ((i, j), (j, i)) if v1 == "distant"}
        every = [*itertools.product(range(n), repeat=2)] if v1 != "none" else []
        cells = [(s[i][j] - s[j][i]) ** 2 * ((i, j) not in masked) for i, j in every]  # also masked ones count
    return total(cells, [of_v2(s, i, j) for i, j in chosen[v2]], form, (margin_v1, margin))


def same(value: Tensor, expected: Tensor, inputs: Sequence[Tensor]) -> None:
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)
    if expected.requires_grad:
        gradients = (torch.autograd.grad(loss, inputs, materialize_grads=True) for loss in (value, expected))
        assert all(torch.allclose(*pair, rtol=0, atol=1e-6) for pair in zip(*gradients, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("v1", "v2"), PAIRS)
@given(st.integers(2, 11), st.integers(0, 999), MARGINS, MARGINS)
@settings(max_examples=5)
def test_eqsim_equals_its_transcription(
    v1: Any, v2: Any, form: Any, n: int, seed: int, margin: float, margin_v1: float
) -> None:
    given = features(n, seed).map(lambda part: part.requires_grad_())
    value, logged = EqSim(v1, v2, form, margin, margin_v1)(given, SCALE, torch.Generator().manual_seed(seed))
    same(value, transcribed(given, v1, v2, form, margin, margin_v1, seed), [given.images, given.texts])
    assert set(logged) == {f"active_{name}" for name, pairs in (("v1", v1), ("v2", v2)) if pairs != "none"}
    assert all(0 <= share <= 1 + 1e-9 for share in logged.values())


def scores(n: int, m: int, seed: int) -> tuple[PairScores, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(n * (1 + 3 * m), generator=generator, dtype=torch.float64).mul(2).split([n] + [n * m] * 3)
    own, *others = (part.requires_grad_() for part in parts)
    return PairScores(own, *(part.view(n, m) for part in others)), torch.rand(n, m, generator=generator) < 0.5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("v1", "v2"), PAIRS)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 999), MARGINS)
@settings(max_examples=5)
def test_eqsim_of_a_matching_head(v1: Any, v2: Any, form: Any, n: int, m: int, seed: int, margin: float) -> None:
    """v2 on all negatives as released is FIBER's ``hard_itm``."""
    given, close = scores(n, m, seed)
    first, sides = [], list[tuple[Tensor, Tensor]]()
    for i, j in itertools.product(range(n), range(m)):
        own, text = given.own[i].sigmoid(), given.changed_text[i, j].sigmoid()
        image, wrong = given.changed_image[i, j].sigmoid(), given.both[i, j].sigmoid()
        if v1 == "all" or (v1 == "distant" and not close[i, j]):
            first.append((text - image) ** 2)
        if v2 == "all" or (v2 == "close" and close[i, j]):
            sides.append((((own - text) - (wrong - image)) ** 2, ((own - image) - (wrong - text)) ** 2))
    expected = total(first, sides, form, (margin / 2, margin))
    value, _ = fusion_form("eqsim").open(v1=v1, v2=v2, form=form, margin=margin, margin_v1=margin / 2)(given, close)
    same(value, expected, [getattr(given, name) for name in ("own", *CHANGES)])


@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=20)
def test_losses_of_a_matching_head_equal_loops(n: int, m: int, seed: int) -> None:
    given, _ = scores(n, m, seed)
    rank, match = [], []
    for i in range(n):
        own, texts, images = given.own[i].item(), given.changed_text[i].tolist(), given.changed_image[i].tolist()
        rank.append(math.log(math.exp(own) + sum(map(math.exp, texts))) - own)
        # n own pairs, n · m changed texts and n · m changed images: one mean over all.
        match += [math.log(1 + math.exp(-own)), *(math.log(1 + math.exp(score)) for score in texts + images)]
    assert rank_texts(given)[0].item() == pytest.approx(sum(rank) / n, abs=1e-6)
    assert match_hard_negatives(given)[0].item() == pytest.approx(sum(match) / len(match), abs=1e-6)


def test_pairs_are_scored_as_image_and_text_of_their_names() -> None:
    def score(images: Tensor, texts: Tensor) -> Tensor:
        return (100 * images + texts).to(torch.bfloat16)

    rows, negatives = torch.tensor([1]), torch.tensor([[2, 0]])
    pairs = score_pairs(score, rows, negatives)
    assert pairs.own.tolist() == [101] and pairs.own.dtype == torch.float32
    changed = pairs.changed_text.tolist(), pairs.changed_image.tolist(), pairs.both.tolist()
    assert changed == ([[102, 100]], [[201, 1]], [[202, 0]])
    part = score_pairs(score, rows, negatives, CHANGES[1:2])
    assert part.changed_image.tolist() == [[201, 1]] and part.changed_text.shape == part.both.shape == (1, 0)


@given(st.integers(2, 9), st.integers(0, 999))
@settings(max_examples=20)
def test_hard_negatives_equal_loops(n: int, seed: int) -> None:
    given = features(n, seed)
    logits = SCALE * similarities(given.images, given.texts)
    images, texts = sample_pairs(logits, 4, torch.Generator().manual_seed(seed))
    rows, losses, above = logits.tolist(), [], []
    for i, own in enumerate(row[i] for i, row in enumerate(rows)):
        for wrong in ([rows[i][j] for j in texts[i].tolist()], [rows[j][i] for j in images[i].tolist()]):
            losses.append(math.log(math.exp(own) + sum(map(math.exp, wrong))) - own)
            above += [float(logit >= own) for logit in wrong]
    value, logged = HardNegatives()(given, SCALE, torch.Generator().manual_seed(seed))
    assert value.item() == pytest.approx(sum(losses) / len(losses), abs=1e-6)
    assert logged["hard_above_own"] == pytest.approx(sum(above) / len(above), abs=1e-6)


def test_samples_are_distinct_never_the_own_pair_and_follow_the_softmax() -> None:
    logits = torch.tensor([[9.0, 2.0, 1.0, 0.0], [0.0, 9.0, 0.0, 0.0], [-500.0, 500.0, 0.0, -500.0], [0.0] * 4])
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([sample_hard(logits, 2, generator) for _ in range(4000)])
    assert all(len(set(row)) == 2 and i not in row for draw in draws[:50].tolist() for i, row in enumerate(draw))
    first = draws[:, 0, 0].bincount(minlength=4) / 4000
    p = torch.tensor([2.0, 1.0, 0.0]).softmax(0)
    assert torch.allclose(first[1:], p, atol=0.03)
    # Second of two without replacement: p(1 then 2) = p1 · p2 / (1 − p1).
    in_turn = ((draws[:, 0, 0] == 1) & (draws[:, 0, 1] == 2)).float().mean()
    assert in_turn.item() == pytest.approx((p[0] * p[1] / (1 - p[0])).item(), abs=0.03)
    assert set(draws[:, 2, 0].tolist()) == {1}, "its softmax is 1 and 0; the second is sampled all the same"
    assert sample_hard(logits, 9).shape == (4, 3)


def test_a_weight_of_zero_is_the_control_and_others_add_the_regulariser() -> None:
    gradients, states = [], []
    for name, weight in ((None, 0.0), ("eqsim", 0.0), ("eqsim", 0.5)):
        given, generator = features(6, 5).map(lambda part: part.requires_grad_()), torch.Generator().manual_seed(0)
        options = {} if name is None else {"margin": 0.0, "form": "released"}
        total, logged = open_loss("infonce", name, weight, **options)(given, SCALE, generator)
        total.backward()
        gradients.append(given.images.grad)
        states.append(generator.get_state())
    assert torch.equal(*gradients[:2]) and not torch.equal(*gradients[1:])  # type: ignore[arg-type]
    assert torch.equal(*states[1:])
    objective = InfoNCE()(given, SCALE)[0].item()
    extra = EqSim(form="released", margin=0.0)(given, SCALE, torch.Generator().manual_seed(0))[0].item()
    assert total.item() == pytest.approx(objective + 0.5 * extra)
    assert logged["objective"] == pytest.approx(objective) and logged["regulariser"] == pytest.approx(extra)


def test_with_negative_pairs_the_regulariser_sees_the_twins() -> None:
    twins = features(3, 0, parts=4)
    for name, seen in (("negative-pairs", twins.all_pairs()), ("infonce", Features(twins.images, twins.texts))):
        _, logged = open_loss(name, "eqsim", 1.0)(twins, SCALE)
        assert logged["regulariser"] == pytest.approx(EqSim()(seen, SCALE)[0].item())


def test_terms_and_forms_that_there_are_not_are_refused() -> None:
    with pytest.raises(WrongUse, match="v1 and v2 are both none"):
        EqSim("none", "none")(features(2, 0), SCALE)
    with pytest.raises(WrongUse, match="hardneg has no form for fusion encoders"):
        fusion_form("hardneg")


@given(st.integers(2, 9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=20)
def test_all_texts_of_the_nearest_images_are_hard_negatives(images: int, captions: int, k: int, seed: int) -> None:
    """With five captions an image, 128 images give 640 texts, not 26 images 128 (EqBen C)."""
    rng = np.random.default_rng(seed)
    image = rng.permutation(np.repeat(np.arange(images), captions))
    labels = np.stack([image, rng.integers(0, 4 * images, len(image))])
    near = np.stack([rng.permutation(np.delete(np.arange(images), own))[:k] for own in range(images)]).astype(np.int32)
    near[0, -1] = ABSENT
    places = texts_of_neighbours(near, labels)
    for number in range(images):
        own = set(labels[1, image == number].tolist())
        there = [example for place in near[number] if place != ABSENT for example in np.flatnonzero(image == place)]
        expected = [example for example in there if labels[1, example] not in own]
        assert places[number].tolist() == expected + [ABSENT] * (places.shape[1] - len(expected))


def test_the_fine_step_orders_by_the_matching_head() -> None:
    table, calls = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)), []

    def score(images: Tensor, texts: Tensor) -> Tensor:
        calls.append(len(images))
        return table[images, texts]

    coarse = np.array([[(row + shift) % 6 for shift in (1, 3, 4)] for row in range(6)])
    coarse[2, 2] = ABSENT
    ordered = score_neighbours(score, coarse, np.stack([np.arange(6)] * 2), 4)
    assert max(calls) <= 4 and sum(calls) == 17
    for row in range(6):
        there = sorted(set(coarse[row].tolist()) - {ABSENT}, key=lambda place, row=row: -float(table[row, place]))
        assert ordered[row].tolist() == there + [ABSENT] * (3 - len(there))


def test_negatives_that_are_not_hard_are_uniform_over_the_rest() -> None:
    places = np.stack([(row + 1 + np.arange(5)) % 12 for row in range(12)])
    near, labels, rng = places, np.stack([np.arange(12)] * 2), np.random
    drawn, close = sample_negatives(near, np.full(3000, 3), rng.default_rng(0), 4, 2, labels)
    assert close.tolist() == [[True, True, False, False]] * 3000 and (drawn[:, :2] == torch.tensor([4, 5])).all()
    counts = np.bincount(drawn[:, 2:].ravel(), minlength=12)
    rest = np.delete(np.arange(12), [3, 4, 5])
    assert counts[[3, 4, 5]].sum() == 0 and np.allclose(counts[rest] / 6000, 1 / 9, atol=0.015)
