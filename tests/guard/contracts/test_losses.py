"""The contract of losses: a finite number with a gradient, the same again, for examples in any order."""

from itertools import product
from typing import Any

import pytest
import torch

from twinset.training.losses.features import Features
from twinset.training.losses.names import OBJECTIVES, REGULARISERS


def features(order: list[int]) -> Features:
    """Six examples with negatives, unit vectors of 8 channels."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.nn.functional.normalize(torch.randn(4, 6, 8, generator=generator), dim=-1)
    return Features(*(part[order].clone().requires_grad_() for part in parts))


def value(loss: Any, order: list[int], given: Features | None = None) -> torch.Tensor:
    found, figures = loss(given or features(order), torch.tensor(20.0), torch.Generator().manual_seed(0))
    assert found.ndim == 0 and torch.isfinite(found) and all(isinstance(one, float) for one in figures.values())
    return found  # type: ignore[no-any-return]


ALL = [*product(["objective"], OBJECTIVES.own()), *product(["regulariser"], REGULARISERS.own())]


@pytest.mark.parametrize(("what", "name"), ALL)
def test_a_loss_keeps_the_contract(what: str, name: str) -> None:
    loss = OBJECTIVES.find(name).open() if what == "objective" else REGULARISERS.find(name).open()
    given = features([*range(6)])
    first = value(loss, [], given)
    first.backward()  # type: ignore[no-untyped-call]
    assert given.images.grad is not None and torch.isfinite(given.images.grad).all() and given.images.grad.any()
    assert value(loss, [*range(6)]) == first
    if "released" not in name and name != "hardneg":  # those sample the pairs that they compare
        assert torch.isclose(value(loss, [3, 1, 5, 0, 2, 4]), first, rtol=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES.own())
def test_an_objective_reads_the_roles_that_it_says(name: str) -> None:
    assert OBJECTIVES.find(name).negatives == (name != "infonce")
