"""AdamW's two groups, the learning rate, and moments that survive a checkpoint.

What a run remembers over a kill besides its weights: the best of its validations, and what could not be read.
The settings of a run: BiVLC's recipe by default, and what is refused.
Validation: batches of one size, and groups that count alike.
"""

import functools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.scorers.tiny_models import open_clip_network
from tests.made_datasets import MadeDataset
from tests.training.clip.conftest import Settings
from tests.training.clip.killed_runs import Killed, killed_after
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.models.encoders.open_clip_files import find_architecture, find_checkpoint
from twinset.shards.storage import layout
from twinset.training.clip import train
from twinset.training.clip.data import open_data
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.steps import learning_rate, new_optimiser
from twinset.training.clip.train import train_clip
from twinset.training.clip.validation import Validation, batch_size, mean_of_groups
from twinset.training.losses.names import OBJECTIVES
from twinset.training.runs.checkpoints import Checkpoints, Receipt, moments, restore_moments
from twinset.training.runs.settings import checked


def test_no_answer_of_a_batch_is_among_its_wrong_answers(settings: Settings) -> None:
    chosen = settings(objective="negative-pairs")
    examples = open_data(chosen, chosen.twins).training
    read = [examples[place] for place in range(len(examples))]
    images = [one.images[role] for one in read for role in ("image", "negative_image")]
    assert len(read) == 8 and len({(place.tar, place.offset) for place in images}) == len(images) == 16


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


def last_receipt(out: Path) -> Receipt:
    found = Checkpoints(out).last()
    assert found is not None
    return found[0]


@pytest.mark.slow
def test_a_best_that_no_checkpoint_names_yet_costs_none_that_one_names(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine rounds differently: after the kill step 4 is not the best any more."""
    accuracies: Iterator[float]
    monkeypatch.setattr(Validation, "measure", lambda *_: {"loss": 1.0, "accuracy": next(accuracies)})
    chosen, out = settings(validate_every=2), tmp_path / "run"
    accuracies = iter([50, 60])
    with pytest.raises(Killed):
        train_clip(chosen, out, killed_after(5), report=False)
    best, shown = last_receipt(out).best, (out / "best.safetensors").read_bytes()
    assert best is not None and best["step"] == 2
    accuracies = iter([40, 40, 40])
    resumed = train_clip(settings(validate_every=2, threads=2, allow_mixed_runtimes=True), out, report=False)
    assert (resumed.resumed_at, resumed.best_step) == (3, 2) and resumed.best.read_bytes() != shown
    result = json.loads((out / "result.json").read_bytes())
    assert result["sha256"]["best.safetensors"] == best["sha256"]["best.safetensors"]
    assert not (out / "checkpoints").exists()


def test_of_best_weights_those_that_a_checkpoint_names_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)

    def kept() -> list[int]:
        return sorted(int(path.name[:8]) for path in checkpoints.folder.glob("*-best.safetensors"))

    def best_of(step: int) -> dict[str, Any]:
        files = {"best.safetensors": {"a": torch.tensor(step)}}
        return {"step": step, "value": step, "sha256": checkpoints.write_best(step, files)}

    first = best_of(2)
    checkpoints.write(3, {"a": torch.zeros(1)}, "identity", "runtime", first)
    best_of(4)
    best_of(5)
    assert kept() == [2, 5]
    shown = tmp_path / "best.safetensors"
    shown.unlink()
    checkpoints.show_best(first)
    assert shown.read_bytes() == (checkpoints.folder / "00000002-best.safetensors").read_bytes()
    last = best_of(6)
    for step in (6, 7):
        checkpoints.write(step, {"a": torch.zeros(1)}, "identity", "runtime", last)
    assert kept() == [6]
    with pytest.raises(BuildFailed, match=r"best\.safetensors: not what step 2 wrote; train into a new --out"):
        checkpoints.show_best(first)


def test_what_could_not_be_read_is_remembered(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "Batches", functools.partial(train.Batches, max_broken=0.5))
    tar, out = made_pairs.root / layout.tar("eq-ag", "test", 0), tmp_path / "run"
    whole = tar.read_bytes()
    tar.write_bytes(whole.replace(b"\xff\xd8\xff", b"\0\0\0", 2))
    with pytest.raises(Killed):
        train_clip(settings(validation=()), out, killed_after(4), report=False)
    tar.write_bytes(whole)
    rows = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    broken = last_receipt(out).broken
    assert broken and {tuple(said) for row in rows[:3] for said in row.get("left_out", [])} == {
        (where, why) for _, where, why in broken
    }
    with pytest.raises(Killed):
        train_clip(settings(validation=()), out, killed_after(7), report=False)
    assert last_receipt(out).step == 6 and last_receipt(out).broken == broken
    monkeypatch.setattr(train, "Batches", functools.partial(train.Batches, max_broken=0.05))
    with pytest.raises(BuildFailed, match=f"^{len(broken)} of 16 examples cannot be read"):
        train_clip(settings(validation=()), out, report=False)


def test_the_defaults_are_bivlcs_recipe() -> None:
    found = ClipSettings(data=("out/demo",))
    assert (found.model, found.weights, found.lr, found.betas, found.eps) == (
        "ViT-B-32",
        "openai",
        1e-6,
        (0.9, 0.98),
        1e-6,
    )
    assert (found.weight_decay, found.warmup, found.epochs, found.seed, found.batch) == (0.1, 50, 10, 42, 400)
    assert ClipSettings(data=("out/demo",), objective="negative-pairs").batch == 200


@pytest.mark.parametrize("objective", OBJECTIVES.kinds())
def test_both_sides_of_a_pair_are_examples_only_where_neither_is_a_negative(objective: str) -> None:
    without = "negative_text" not in OBJECTIVES.find(objective).roles
    assert ClipSettings(data=("d",), objective=objective).twins == ("both" if without else "first")
    if not without:
        with pytest.raises(WrongUse, match=f"^twins: with {objective} the sides .* Choose first"):
            checked(ClipSettings, {"data": ["d"], "objective": objective, "twins": "both"})


def test_a_folder_brings_its_weights_unless_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "open_clip_model.safetensors").write_bytes(b"")
    held = ClipSettings(data=("d",), model=str(tmp_path))
    assert held.weights == str(tmp_path / "open_clip_model.safetensors")
    assert ClipSettings(data=("d",), model=str(tmp_path), weights=None).weights is None


def test_a_model_of_an_installed_package_brings_its_weights() -> None:
    held = ClipSettings(data=("d",), model="small-clip")
    assert held.model == "small-clip" and held.weights is not None
    assert find_architecture("small-clip").model["embed_dim"] == 64
    assert find_checkpoint("open_clip:small-clip", ["small-clip"])[1] == Path(held.weights)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "data: "),
        ({"data": ["d"], "learning_rate": 1}, "learning_rate: unknown; name one of "),
        ({"data": ["d"], "regulariser_weight": 1}, "names no regulariser"),
        ({"data": ["d"], "margin": 0.1}, "^margin: is a setting of a regulariser"),
        ({"data": ["d"], "regulariser": "hardneg", "close": 4}, "^close: hardneg does not read it; it has no settings"),
        ({"data": ["d"], "regulariser": "eqsim-v1-all", "margin": 0}, "margin: .* it has margin_v1, normalise"),
        ({"data": ["d"], "regulariser": "eqsim-released", "normalise": "cosine"}, "normalise: eqsim-released does not"),
        ({"data": ["d"], "regulariser": "eqsim", "normalise": "sigmoid"}, "normalise: .*'softmax' or 'cosine'"),
        ({"data": ["d"], "regulariser": "eqsim-v1"}, "did you mean 'eqsim-v1-all'"),
        ({"data": ["d"], "best_by": "group"}, "set validation"),
        ({"data": ["d"], "batch": 10, "accumulate": 3}, "3 parts do not divide a batch of 10"),
        ({"data": ["d"], "betas": [0.9, 1]}, "from 0 to below 1"),
        ({"data": ["d"], "lr": float("nan")}, "lr: "),
        ({"data": ["d"], "epochs": "0"}, "^epochs: Input should be greater than 0, not '0'$"),
        ({"data": ["d"], "batch": 4, "accumulate": 8}, "^accumulate: "),
        ({"data": ["d"], "threads": 100_000}, "threads: .*256"),
        ({"data": ["d"], "workers": 100_000}, "workers: .*256"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        checked(ClipSettings, given)


def test_a_regulariser_brings_its_weight_and_settings() -> None:
    def settings_of(**given: Any) -> tuple[float, dict[str, Any]]:
        found = checked(ClipSettings, {"data": ["d"], **given})
        return found.regulariser_weight, found.regulariser_options()

    every = {"margin": 0.1, "margin_v1": 0.0, "close": 8, "normalise": "softmax"}
    assert settings_of() == (0, {})
    assert settings_of(regulariser="eqsim") == (0.5, every)
    assert settings_of(regulariser="eqsim", close="4", margin=None) == (0.5, every | {"close": 4})
    assert settings_of(regulariser="eqsim-v1-all") == (0.5, {"margin_v1": 0.0, "normalise": "softmax"})
    released = {"margin": 0.1, "margin_v1": 0.0, "close": 4}
    assert settings_of(regulariser="eqsim-released", regulariser_weight=1) == (1, released)


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"objective": "negative-texts", "regulariser": "hardneg", "lr": 1e-3}, {"objective", "regulariser", "lr"}),
        ({"batch": 200}, {"batch"}),
    ],
)
def test_what_another_setting_decides_is_a_default_of_the_run(given: dict[str, Any], changed: set[str]) -> None:
    chosen = checked(ClipSettings, {"data": ["d"], **given})
    defaults = chosen.defaults()
    assert {name for name, value in chosen.model_dump(mode="json").items() if value != defaults[name]} == changed


@given(examples=st.integers(2, 2000), largest=st.integers(2, 400))
@settings(max_examples=50)
def test_batches_leave_out_less_than_one_example_each(examples: int, largest: int) -> None:
    size = batch_size(examples, largest)
    assert 2 <= size <= min(examples, largest)
    assert examples % size < max(2, examples // size)


@pytest.mark.parametrize(("examples", "size"), [(8, 2), (7, 2), (3, 2), (2, 2)])
def test_no_batch_is_of_one_example_which_would_always_be_right(examples: int, size: int) -> None:
    assert batch_size(examples, 2) == size


def test_each_group_counts_once() -> None:
    assert mean_of_groups(np.array([True, True, True, False]), ["a", "a", "a", "b"]) == 50
