"""The settings of a run: BiVLC's recipe by default, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.open_clip_files import find_architecture, find_checkpoint
from twinset.training.clip.settings import ClipSettings
from twinset.training.losses.names import OBJECTIVES
from twinset.training.runs.settings import checked


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
    without = "negative_text" not in OBJECTIVES.get(objective).roles
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
        ({"data": ["d"], "regulariser": "eqsim-v1"}, "did you mean 'eqsim-v1-all' or "),
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
