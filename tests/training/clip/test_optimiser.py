"""AdamW's two groups, the learning rate, and moments that survive a checkpoint."""

import math
from typing import Any

import pytest
import torch

from tests.evaluation.scorers.tiny_models import open_clip_network
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.steps import learning_rate, new_optimiser
from twinset.training.runs.checkpoints import moments, restore_moments

SETTINGS = ClipSettings(data=("nowhere",), lr=1e-3)


def test_matrices_decay_and_norms_biases_and_the_scale_do_not() -> None:
    network = open_clip_network()
    names = {id(value): name for name, value in network.named_parameters()}
    decay, keep = (
        {names[id(value)] for value in group["params"]} for group in new_optimiser(network, SETTINGS).param_groups
    )
    assert decay | keep == set(names.values()) and not decay & keep
    assert {"text_projection", "token_embedding.weight", "visual.conv1.weight", "positional_embedding"} <= decay
    assert {"logit_scale", "ln_final.weight", "visual.class_embedding", "visual.ln_pre.bias"} <= keep
    assert all(dict(network.named_parameters())[name].ndim >= 2 for name in decay)
    assert [group["weight_decay"] for group in new_optimiser(network, SETTINGS).param_groups] == [0.1, 0.0]


def test_a_norm_with_a_matrix_does_not_decay() -> None:
    class LayerNorm2d(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 2))

    network = torch.nn.Sequential(LayerNorm2d(), torch.nn.Linear(2, 2))
    decay, keep = (group["params"] for group in new_optimiser(network, SETTINGS).param_groups)
    assert [value.shape for value in decay] == [(2, 2)] and decay[0] is network[1].weight
    assert keep[0] is network[0].weight


def test_the_rate_rises_linearly_and_falls_as_a_cosine_to_nothing() -> None:
    rates = [learning_rate(step, 150, SETTINGS) for step in range(150)]
    assert rates[0] == pytest.approx(1e-3 / 50) and rates[49] == rates[50] == pytest.approx(1e-3)
    assert rates[100] == pytest.approx(5e-4)
    assert rates[149] == pytest.approx(1e-3 * (1 + math.cos(math.pi * 99 / 100)) / 2) and rates[149] < 1e-6
    assert learning_rate(9, 10, SETTINGS) == pytest.approx(1e-3 / 5)  # shorter than its warm-up


def steps(network: Any, optimiser: Any, count: int, first: int) -> None:
    for step in range(first, first + count):
        generator = torch.Generator().manual_seed(step)
        for value in network.parameters():
            value.grad = torch.randn(value.shape, generator=generator)
        optimiser.step()


def test_an_optimiser_with_restored_moments_goes_on_as_if_it_had_never_stopped() -> None:
    straight = open_clip_network()
    optimiser = new_optimiser(straight, SETTINGS)
    steps(straight, optimiser, 3, 0)
    stopped = open_clip_network(1)
    stopped.load_state_dict(straight.state_dict())
    held = {name: value.clone() for name, value in moments(straight, optimiser).items()}
    steps(straight, optimiser, 2, 3)
    resumed = new_optimiser(stopped, SETTINGS)
    restore_moments(stopped, resumed, held, 3)
    steps(stopped, resumed, 2, 3)
    for name, value in stopped.state_dict().items():
        assert torch.equal(value, straight.state_dict()[name]), name
