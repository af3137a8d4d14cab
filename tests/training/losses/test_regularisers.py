"""Regularisers equal loops over their formulas, with injected samples."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.losses.made_features import SCALE, features
from twinset.training.losses.eqsim import EqSim, EqSimReleased, normalised
from twinset.training.losses.features import similarities
from twinset.training.losses.objectives import open_regulariser
from twinset.training.losses.regularisers import HardNegatives
from twinset.training.losses.sampling import sample_pairs

Rows = list[list[float]]
SIZES, SEEDS = st.integers(2, 9), st.integers(0, 999)


def softmax_rows(logits: Rows) -> Rows:
    rows = []
    for row in logits:
        total = sum(math.exp(logit) for logit in row)
        rows.append([math.exp(logit) / total for logit in row])
    return rows


def scaled(rows: Rows, scale: float) -> Rows:
    return [[scale * one for one in row] for row in rows]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def slow_close(cosines: Rows, k: int) -> set[tuple[int, int]]:
    """Pairs i < j that are close: top k in either direction."""
    n, close = len(cosines), set()
    for i in range(n):
        others = [j for j in range(n) if j != i]
        texts = sorted(others, key=lambda j: -cosines[i][j])[:k]
        images = sorted(others, key=lambda j: -cosines[j][i])[:k]
        close |= {(min(i, j), max(i, j)) for j in texts + images}
    return close


def slow_eqsim(cosines: Rows, scale: float, settings: dict[str, Any]) -> tuple[float, float]:
    """The paper's EqSim as loops over pairs i < j; the value, and the fraction of hinges that are open."""
    s = softmax_rows(scaled(cosines, scale)) if settings["normalise"] == "softmax" else cosines
    pairs = set(itertools.combinations(range(len(s)), 2))
    close = pairs if settings["close"] is None else slow_close(cosines, settings["close"])
    first = pairs - close if settings["form"] == "hybrid" and settings["v1_pairs"] == "distant" else pairs
    hinges: list[list[float]] = []
    if settings["form"] != "v2":
        hinges.append([max((s[i][j] - s[j][i]) ** 2 - settings["margin"], 0) for i, j in first])
    if settings["form"] != "v1":
        text = [((s[i][i] - s[i][j]) - (s[j][j] - s[j][i])) ** 2 for i, j in close]
        image = [((s[i][i] - s[j][i]) - (s[j][j] - s[i][j])) ** 2 for i, j in close]
        hinges += [[max(square - settings["margin"], 0) for square in side] for side in (text, image)]
    everything = [hinge for side in hinges for hinge in side]
    return sum(mean(side) for side in hinges), mean([float(hinge > 0) for hinge in everything])


def slow_released(s: Rows, images: Rows, texts: Rows, form: str, margin: float, margin_v1: float) -> float:
    """The released EqSim as loops over rows and what was sampled for them."""
    n = len(s)
    sampled = [(i, int(j)) for i in range(n) for j in images[i] + texts[i]]
    masked = {(i, j) for i, j in sampled} | {(j, i) for i, j in sampled} if form == "hybrid" else set()
    value = 0.0
    if form != "v1":
        text = [((s[i][i] - s[i][j]) - (s[j][j] - s[j][i])) ** 2 for i, j in sampled]
        image = [((s[i][i] - s[j][i]) - (s[j][j] - s[i][j])) ** 2 for i, j in sampled]
        value += max(mean(text) - margin, 0) + max(mean(image) - margin, 0)
    if form != "v2":
        cells = [0.0 if (i, j) in masked else (s[i][j] - s[j][i]) ** 2 for i in range(n) for j in range(n)]
        value += max(mean(cells) - margin_v1, 0)
    return value


@given(
    SIZES,
    SEEDS,
    st.fixed_dictionaries(
        {
            "form": st.sampled_from(["v1", "v2", "hybrid"]),
            "margin": st.sampled_from([1e-9, 0.01, 0.1]),
            "close": st.sampled_from([None, 1, 2, 8]),
            "normalise": st.sampled_from(["softmax", "cosine"]),
            "v1_pairs": st.sampled_from(["distant", "all"]),
        }
    ),
)
@settings(max_examples=150, deadline=None)
def test_eqsim_of_the_paper_equals_loops(n: int, seed: int, settings: dict[str, Any]) -> None:
    given = features(n, seed)
    value, logged = EqSim(**settings)(given, SCALE)
    expected, active = slow_eqsim((given.images @ given.texts.T).tolist(), float(SCALE), settings)
    assert value.item() == pytest.approx(expected, abs=1e-6)
    assert logged["active_fraction"] == pytest.approx(active, abs=1e-6)


@given(SIZES, SEEDS, st.sampled_from(["v1", "v2", "hybrid"]), st.sampled_from([0.0, 0.02, 0.1]), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_eqsim_as_released_equals_loops_with_injected_samples(
    n: int, seed: int, form: Any, margin: float, k: int
) -> None:
    given = features(n, seed)
    scores = normalised(similarities(given.images, given.texts), SCALE, "softmax")
    images, texts = sample_pairs(scores.log(), k, torch.Generator().manual_seed(seed))
    value, _ = EqSimReleased(form, margin, margin / 10).on(scores, (images, texts))
    expected = slow_released(scores.tolist(), images.tolist(), texts.tolist(), form, margin, margin / 10)
    assert value.item() == pytest.approx(expected, abs=1e-6)


@given(SIZES, SEEDS)
@settings(max_examples=30, deadline=None)
def test_eqsim_as_released_on_all_pairs_is_the_mean_over_pairs(n: int, seed: int) -> None:
    given = features(n, seed)
    s = softmax_rows(scaled((given.images @ given.texts.T).tolist(), float(SCALE)))
    pairs = list(itertools.combinations(range(n), 2))
    text = mean([((s[i][i] - s[i][j]) - (s[j][j] - s[j][i])) ** 2 for i, j in pairs])
    image = mean([((s[i][i] - s[j][i]) - (s[j][j] - s[i][j])) ** 2 for i, j in pairs])
    value, _ = EqSimReleased("v2", margin=0.01, samples=None)(given, SCALE)
    assert value.item() == pytest.approx(max(text - 0.01, 0) + max(image - 0.01, 0), abs=1e-6)
    hybrid, _ = EqSimReleased("hybrid", margin=0.01, samples=None)(given, SCALE)
    assert hybrid.item() == pytest.approx(value.item(), abs=1e-9), "no pair is left for v1"


@given(SIZES, SEEDS, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_hard_negatives_equal_loops_with_injected_samples(n: int, seed: int, k: int) -> None:
    given = features(n, seed)
    logits = SCALE * similarities(given.images, given.texts)
    images, texts = sample_pairs(logits, k, torch.Generator().manual_seed(seed))
    rows, losses, above = logits.tolist(), [], []
    for i in range(n):
        own = rows[i][i]
        for wrong in ([rows[i][j] for j in texts[i].tolist()], [rows[j][i] for j in images[i].tolist()]):
            losses.append(math.log(math.exp(own) + sum(map(math.exp, wrong))) - own)
            above += [float(other >= own) for other in wrong]
    value, logged = HardNegatives(k).on(logits, (images, texts))
    assert value.item() == pytest.approx(mean(losses), abs=1e-6)
    assert logged["hard_above_own"] == pytest.approx(mean(above), abs=1e-6)


@given(SIZES, SEEDS, st.floats(1, 100))
@settings(max_examples=40, deadline=None)
def test_cyclip_equals_its_formula_and_its_released_code(n: int, seed: int, scale: float) -> None:
    given = features(n, seed)
    images, texts = given.images.tolist(), given.texts.tolist()

    def dot(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    cells = list(itertools.product(range(n), repeat=2))
    cross = sum((dot(images[j], texts[k]) - dot(images[k], texts[j])) ** 2 for j, k in cells) / n
    within = sum((dot(images[j], images[k]) - dot(texts[j], texts[k])) ** 2 for j, k in cells) / n
    factor = torch.tensor(scale, dtype=torch.float64)
    assert open_regulariser("cyclip")(given, factor)[0].item() == pytest.approx(cross + within, abs=1e-6)
    released = open_regulariser("cyclip-released")(given, factor)[0].item()
    assert released == pytest.approx(cross, abs=1e-6)
    logits = [[scale * dot(image, text) for text in texts] for image in images]
    theirs = mean([(logits[j][k] - logits[k][j]) ** 2 for j, k in cells]) / scale**2 * n
    assert released == pytest.approx(theirs, abs=1e-6)
