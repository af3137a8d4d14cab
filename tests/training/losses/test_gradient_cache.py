"""Gradient caching and gathering: the same gradients as one plain backward pass on the whole batch.

Regularisers equal loops over their formulas, with injected samples.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import normalize

from tests.training.losses.made_features import SCALE, features
from twinset.contracts.errors import WrongUse
from twinset.training.losses.eqsim import softmax_of
from twinset.training.losses.features import Features, gather, similarities
from twinset.training.losses.gradient_cache import cached_backward
from twinset.training.losses.names import REGULARISERS
from twinset.training.losses.objectives import open_loss, open_regulariser
from twinset.training.losses.regularisers import HardNegatives
from twinset.training.losses.sampling import sample_pairs


class TwoTowers(nn.Module):
    """Two small encoders and a learnt temperature; encoding takes what of images and texts there is."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.image, self.text = (
            nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 4)) for _ in range(2)
        )
        self.logit_scale = nn.Parameter(torch.tensor(math.log(8.0)))

    def forward(self, inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        towers = {"images": self.image, "texts": self.text, "negative_images": self.image, "negative_texts": self.text}
        features = {name: functional.normalize(towers[name](part), dim=1) for name, part in inputs.items()}
        return Features(**features), self.logit_scale.exp()


def towers(seed: int = 0, dropout: float = 0.0) -> TwoTowers:
    torch.manual_seed(seed)
    return TwoTowers(dropout).double()


def batch(n: int, negatives: bool, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    names = ["images", "texts", "negative_images", "negative_texts"][: 4 if negatives else 2]
    return {name: torch.randn(n, 6, generator=generator, dtype=torch.float64) for name in names}


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {name: part.grad for name, part in model.named_parameters() if part.grad is not None}
    return {name: part for name, part in found.items() if part is not None}


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys() and one
    for name, gradient in one.items():
        assert torch.allclose(gradient, other[name], rtol=0, atol=1e-6), name


def plain(model: TwoTowers, inputs: Mapping[str, Tensor], loss: Any) -> tuple[float, dict[str, Tensor]]:
    value, _ = loss(*model(inputs))
    value.backward()
    return value.item(), gradients(model)


def seeded(objective: str, regulariser: str | None) -> Any:
    """A loss whose samples are the same in every call."""

    def value(features: Features, scale: Tensor) -> tuple[Tensor, dict[str, float]]:
        loss = open_loss(objective, regulariser, 0.5)  # type: ignore[arg-type]
        return loss(features, scale, torch.Generator().manual_seed(5))

    return value


@given(
    st.integers(2, 9),
    st.integers(1, 10),
    st.sampled_from([None, *REGULARISERS.kinds()]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_chunks_of_any_size_give_the_gradient_of_the_whole_batch(
    n: int, chunk: int, regulariser: str | None, negatives: bool, seed: int
) -> None:
    loss, inputs = seeded("negative-pairs" if negatives else "infonce", regulariser), batch(n, negatives, seed)
    value, expected = plain(towers(seed), inputs, loss)
    model = towers(seed)
    cached, logged = cached_backward(model, inputs, loss, chunk)
    assert cached.item() == pytest.approx(value, abs=1e-9) and "image_accuracy" in logged
    assert_same(gradients(model), expected)


def test_accumulating_small_batches_is_not_the_same() -> None:
    loss, inputs = seeded("infonce", None), batch(8, False)
    _, expected = plain(towers(), inputs, loss)
    model = towers()
    for start in (0, 4):
        (loss(*model({name: part[start : start + 4] for name, part in inputs.items()}))[0] / 2).backward()
    assert not torch.allclose(gradients(model)["image.0.weight"], expected["image.0.weight"], atol=1e-3)


def test_dropout_draws_the_same_numbers_in_both_passes() -> None:
    """Seen by the encoder: the features of each chunk are equal in both passes, and random goes on afterwards."""
    model, seen = towers(dropout=0.5), []

    def encode(inputs: Mapping[str, Tensor]) -> tuple[Features, Tensor]:
        features, scale = model(inputs)
        seen.append(features.images.detach())
        return features, scale

    torch.manual_seed(3)
    cached_backward(encode, batch(6, False), seeded("infonce", None), 2)
    assert len(seen) == 6 and all(map(torch.equal, seen[:3], seen[3:]))
    after = torch.rand(())
    torch.manual_seed(3)
    for start in (0, 2, 4):
        model({name: part[start : start + 2] for name, part in batch(6, False).items()})
    assert torch.equal(after, torch.rand(()))


def test_a_frozen_tower_and_a_frozen_scale_get_no_gradient() -> None:
    model, whole = towers(), towers()
    for one in (model, whole):
        one.image.requires_grad_(False)
        one.logit_scale.requires_grad_(False)
    _, expected = plain(whole, batch(5, False), seeded("infonce", "eqsim"))
    cached_backward(model, batch(5, False), seeded("infonce", "eqsim"), 2)
    assert all(name.startswith("text") for name in expected)
    assert_same(gradients(model), expected)


def test_features_in_bfloat16_are_cached_as_they_are() -> None:
    """Autocast inside the encoder: its features are bfloat16, the loss and the scale float32."""
    found = []
    for chunk in (2, 6):
        model = towers().float()

        def encode(inputs: Mapping[str, Tensor], model: TwoTowers = model) -> tuple[Features, Tensor]:
            with torch.autocast("cpu", torch.bfloat16):
                features, scale = model({name: part.float() for name, part in inputs.items()})
            return features.map(lambda part: part.bfloat16()), scale

        value, _ = cached_backward(encode, batch(6, False), seeded("infonce", None), chunk)
        found.append((value.item(), gradients(model)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-6)
    assert found[0][1].keys() == found[1][1].keys()
    for name, gradient in found[0][1].items():
        assert torch.allclose(gradient, found[1][1][name], rtol=2e-2, atol=2e-3), name  # sums of bfloat16


def test_every_chunk_but_the_last_is_kept_from_synchronising() -> None:
    order: list[str] = []

    @contextmanager
    def no_sync() -> Iterator[None]:
        order.append("closed")
        yield
        order.append("open")

    cached_backward(towers(), batch(5, False), seeded("infonce", None), 2, no_sync)
    assert order == ["closed", "open"] * 2
    cached_backward(towers(), batch(5, False), seeded("infonce", None), 5, no_sync)
    assert len(order) == 4


def test_chunks_below_one_and_uneven_inputs_are_refused() -> None:
    with pytest.raises(WrongUse, match="chunks of 0"):
        cached_backward(towers(), batch(4, False), seeded("infonce", None), 0)
    uneven = {"images": torch.zeros(3, 6), "texts": torch.zeros(2, 6)}
    with pytest.raises(WrongUse, match=r"'images': 3, 'texts': 2"):
        cached_backward(towers(), uneven, seeded("infonce", None), 1)


CASES = (("infonce", "eqsim-released", 3), ("infonce", "cyclip", 2), ("negative-pairs", "hardneg", 1))


def half_of(inputs: Mapping[str, Tensor], objective: str, rank: int) -> dict[str, Tensor]:
    names = ("images", "texts") if objective == "infonce" else tuple(inputs)
    return {name: inputs[name][rank * 3 : rank * 3 + 3] for name in names}


def train_second_of_two(index: int, folder: str, wrap: bool) -> None:
    torch.set_num_threads(1)
    torch.save(train_one_of_two(index + 1, folder, wrap), f"{folder}/second.pt")


def train_one_of_two(rank: int, folder: str, wrap: bool) -> list[tuple[Tensor, dict[str, Tensor]]]:
    """One of two processes: its half of each case's batch; the losses and averaged gradients.

    wrap: DistributedDataParallel averages them. It takes seconds to import; otherwise they are averaged here.
    """
    store = torch.distributed.FileStore(f"{folder}/meeting", 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    try:
        return [one_step(rank, wrap, *case) for case in CASES]
    finally:
        torch.distributed.destroy_process_group()


def one_step(rank: int, wrap: bool, objective: str, regulariser: Any, chunk: int) -> tuple[Tensor, dict[str, Tensor]]:
    model = towers()
    encode = torch.nn.parallel.DistributedDataParallel(model) if wrap else model
    loss = seeded(objective, regulariser)
    value, _ = cached_backward(
        encode,
        half_of(batch(6, True), objective, rank),
        lambda features, scale: loss(gather(features), scale),
        chunk,
        encode.no_sync if isinstance(encode, torch.nn.parallel.DistributedDataParallel) else nullcontext,
    )
    if not wrap:
        for gradient in gradients(model).values():
            torch.distributed.all_reduce(gradient)
            gradient /= 2
    return value, gradients(model)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [False, True])
def test_two_processes_equal_one(tmp_path: Path, wrap: bool) -> None:
    second = torch.multiprocessing.spawn(train_second_of_two, args=(str(tmp_path), wrap), nprocs=1, join=False)
    first = train_one_of_two(0, str(tmp_path), wrap)
    while not second.join():
        pass
    theirs = [first, torch.load(tmp_path / "second.pt", weights_only=True)]
    for place, (objective, regulariser, _) in enumerate(CASES):
        halves = [half_of(batch(6, True), objective, rank) for rank in (0, 1)]
        inputs = {name: torch.cat([half[name] for half in halves]) for name in halves[0]}
        value, expected = plain(towers(), inputs, seeded(objective, regulariser))  # type: ignore[arg-type]
        for results in theirs:
            assert results[place][0].item() == pytest.approx(value, abs=1e-9)
            assert_same(results[place][1], expected)


def test_one_process_gathers_nothing() -> None:
    features, _ = towers()(batch(3, False))
    assert gather(features) is features


Rows = list[list[float]]
SIZES, SEEDS = st.integers(2, 9), st.integers(0, 999)


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


def softmax_cells(given: Features) -> list[list[Tensor]]:
    """S as single numbers with gradients."""
    n = len(given)
    logits = [[SCALE * (given.images[i] * given.texts[j]).sum() for j in range(n)] for i in range(n)]
    return [[one.exp() / sum(other.exp() for other in row) for one in row] for row in logits]


def cosine_cells(given: Features) -> list[list[Tensor]]:
    return [[(image * text).sum() for text in given.texts] for image in given.images]


def total(values: list[Tensor]) -> Tensor:
    return torch.stack(values).sum() if values else torch.zeros((), dtype=torch.float64)


def average(values: list[Tensor]) -> Tensor:
    return total(values) / max(len(values), 1)


def slow_v1(s: list[list[Tensor]], i: int, j: int) -> Tensor:
    return (s[i][j] - s[j][i]) ** 2


def slow_v2(s: list[list[Tensor]], i: int, j: int) -> tuple[Tensor, Tensor]:
    text = ((s[i][i] - s[i][j]) - (s[j][j] - s[j][i])) ** 2
    return text, ((s[i][i] - s[j][i]) - (s[j][j] - s[i][j])) ** 2


def slow_eqsim(given: Features, form: str, margin: float, margin_v1: float, k: int, s: Any) -> list[list[Tensor]]:
    """The paper's EqSim as loops over pairs i < j (EqBen, section 3, 5.4): hinges of v1, then of both sides of v2."""
    pairs = set(itertools.combinations(range(len(given)), 2))
    close = slow_close((given.images @ given.texts.T).tolist(), k)
    first = {"eqsim": pairs, "eqsim-v1-all": pairs, "eqsim-figure-4": pairs - close}.get(form, set())
    second = {"eqsim-v1-all": set[Any](), "eqsim-v2-all": pairs}.get(form, close)
    sides = [slow_v2(s, i, j) for i, j in sorted(second)]
    hinges = [[(slow_v1(s, i, j) - margin_v1).relu() for i, j in sorted(first)]]
    return hinges + [[(side[which] - margin).relu() for side in sides] for which in (0, 1)]


def slow_released(s: Any, images: Rows, texts: Rows, form: str, margin: float, margin_v1: float) -> Tensor:
    """EqSim's released code as loops over rows and what was sampled for them."""
    n, value = len(s), torch.zeros((), dtype=torch.float64)
    sampled = [(i, int(j)) for i in range(n) for j in images[i] + texts[i]]
    masked = {(i, j) for i, j in sampled} | {(j, i) for i, j in sampled} if form == "eqsim-released" else set()
    if form == "eqsim-v2-all-released":
        sampled = [*itertools.combinations(range(n), 2)]
    if form != "eqsim-v1-all-released":
        sides = [slow_v2(s, i, j) for i, j in sampled]
        value = value + sum((average([side[which] for side in sides]) - margin).relu() for which in (0, 1))
    if "v2" not in form:
        cells = [slow_v1(s, i, j) * ((i, j) not in masked) for i in range(n) for j in range(n)]
        value = value + (average(cells) - margin_v1).relu()
    return value


def same(value: Tensor, expected: Tensor, given: Features) -> None:
    """Equal values, and gradients of images and texts, to 1e-6."""
    assert value.item() == pytest.approx(expected.item(), abs=1e-6)
    found, slow = (
        torch.autograd.grad(one, given.tensors()) if one.requires_grad else [torch.zeros(len(given))] * 2
        for one in (value, expected)
    )
    assert all(torch.allclose(*both, rtol=0, atol=1e-6) for both in zip(found, slow, strict=True))


PAPERS = ("eqsim", "eqsim-v1-all", "eqsim-v2-all", "eqsim-v2-close", "eqsim-figure-4")
RELEASED = ("eqsim-released", "eqsim-v1-all-released", "eqsim-v2-all-released", "eqsim-v2-close-released")
MARGINS = st.sampled_from([1e-9, 1e-3, 0.04, 0.1])


@pytest.mark.parametrize("form", PAPERS)
@given(SIZES, SEEDS, MARGINS, MARGINS, st.sampled_from([1, 2, 8]), st.sampled_from(["softmax", "cosine"]))
@settings(max_examples=15)
def test_eqsim_of_the_paper_equals_loops(
    form: str, n: int, seed: int, margin: float, margin_v1: float, close: int, how: str
) -> None:
    given = features(n, seed).map(lambda part: part.requires_grad_())
    asked = {"margin": margin, "margin_v1": margin_v1, "close": close, "normalise": how}
    value, logged = open_regulariser(form, **{k: v for k, v in asked.items() if k in REGULARISERS.find(form).settings})(
        given, SCALE
    )
    cells = softmax_cells(given) if how == "softmax" else cosine_cells(given)
    hinges = slow_eqsim(given, form, margin, margin_v1, close, cells)
    same(value, total([average(side) for side in hinges]), given)
    active = [[float(hinge > 0) for hinge in side] for side in hinges]
    assert logged["active_fraction"] == pytest.approx(mean([*itertools.chain(*active)]), abs=1e-6)
    if form in ("eqsim", "eqsim-figure-4"):
        assert logged["active_v1"] == pytest.approx(mean(active[0]), abs=1e-6)
        assert logged["active_v2"] == pytest.approx(mean(active[1] + active[2]), abs=1e-6)


@pytest.mark.parametrize("form", RELEASED)
@given(SIZES, SEEDS, MARGINS, st.integers(1, 5))
@settings(max_examples=15)
def test_eqsim_as_released_equals_loops_with_injected_samples(
    form: str, n: int, seed: int, margin: float, k: int
) -> None:
    given = features(n, seed).map(lambda part: part.requires_grad_())
    scores = softmax_of(similarities(given.images, given.texts), SCALE)
    images, texts = sample_pairs(scores.log(), k, torch.Generator().manual_seed(seed))
    regulariser = REGULARISERS.find(form).open(margin=margin, margin_v1=margin / 10)
    value, _ = regulariser.on(scores, (images, texts))
    expected = slow_released(softmax_cells(given), images.tolist(), texts.tolist(), form, margin, margin / 10)
    same(value, expected, given)


@pytest.mark.parametrize("name", [*PAPERS, *RELEASED])
@pytest.mark.parametrize("own", [0.0, 0.35])
def test_on_random_features_every_form_has_pairs_above_its_margins(name: str, own: float) -> None:
    """256 images and texts at CLIP's largest scale, whose own cosines are about ``own``: at 0.35 half of the images
    prefer their own text. Run with ``-s`` it prints the active fractions.

    The released margin of v2 is on a mean, which lies below it where no pair is matched: there v2 trains nothing.
    """
    random = features(256, 0, 64)
    texts = own * random.images + (1 - own**2) ** 0.5 * random.texts
    given = Features(random.images, texts).map(lambda part: normalize(part.float(), dim=1).requires_grad_())
    value, logged = open_regulariser(name)(given, torch.tensor(100.0), torch.Generator().manual_seed(0))
    print(f"\n{own} {name:26} {value.item():9.6f}  " + "  ".join(f"{key} {one:.4f}" for key, one in logged.items()))
    if own or name in PAPERS or "v2" not in name:
        value.backward()
        assert all(part.grad is not None and part.grad.abs().max() > 0 for part in given.tensors())
        assert logged["active_fraction"] > 0
    if own or name in PAPERS:
        assert all(share > 0 for share in logged.values())


@given(SIZES, SEEDS, st.integers(1, 5))
@settings(max_examples=60)
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
@settings(max_examples=40)
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
