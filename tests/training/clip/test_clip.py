"""A run of a dual encoder: it resumes exactly, in several processes too, learns, and is opened again.

Its settings: BiVLC's recipe by default, and what is refused. Its validation: batches of one size, groups count alike.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluation.scorers.opened import FAST
from tests.made_datasets import MadeDataset
from tests.tiny_encoders import images, open_clip_config
from tests.training.runs.contract import resumes_exactly, rows_of, sha256, trains_alike_in_two_processes
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.open_clip_files import find_checkpoint
from twinset.training.clip.data import open_data
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.train import ClipTask
from twinset.training.clip.validation import batch_size, twin_figures
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.names import OBJECTIVES
from twinset.training.runs.processes import Process
from twinset.training.runs.settings import checked
from twinset.training.runs.trainer import train

Settings = Callable[..., ClipSettings]
FILES = {
    *("README.md", "data.json", "history.jsonl", "last.safetensors", "open_clip_config.json", "result.json"),
    *("open_clip_model.safetensors", "report.html", "settings.json"),
}


@pytest.fixture
def settings(made_pairs: MadeDataset, tmp_path: Path) -> Settings:
    """Settings of a run of 8 steps of 4 examples, two epochs, on 16 twins, validated on 8 others."""
    config = str(open_clip_config(tmp_path / "model"))

    def make(**changes: Any) -> ClipSettings:
        given: dict[str, Any] = {
            "model": config, "weights": None, "data": (f"{made_pairs.root}:eq-ag",), "batch": 4, "epochs": 2,
            "validation": (f"{made_pairs.root}:eq-gebc",), "lr": 1e-3, "warmup": 2, "threads": 1, "checkpoint_every": 3,
        }  # fmt: skip
        return ClipSettings.model_validate(given | changes)

    return make


def test_a_run_writes_what_evaluation_opens(settings: Settings, made_pairs: MadeDataset, tmp_path: Path) -> None:
    out, reports = tmp_path / "run", list[tuple[int, int]]()
    done = train(ClipTask, settings(), out, lambda step, steps, row: reports.append((step, steps)))
    assert reports == [(step, 8) for step in range(1, 9)] and {path.name for path in out.iterdir()} == FILES
    figures = {row["step"]: row["validation"] for row in rows_of(out) if "validation" in row}
    assert [*figures] == [4, 8] and done["validation"] == figures[8]
    assert figures[done["best_step"]]["accuracy"] == max(figure["accuracy"] for figure in figures.values())
    # open_clip:OUT has the best weights; images go through the transform of the configuration.
    best: Any = open_model(f"open_clip:{out / 'open_clip_config.json'}:{done['best']}", FAST)
    assert open_model(done["model"], FAST).digest() == best.digest() and best.encode_images(images(1)).shape == (1, 8)
    facts = json.loads((out / "data.json").read_bytes())
    assert facts["weights"]["last.safetensors"] == sha256(done["last"]) == done["sha256"]
    ((training,), (validation,)) = facts["data"], facts["validation"]
    tars = (made_pairs.root / "eq-ag").rglob("*.tar")
    shards = {shard["tar"]: shard["sha256"] for shard in training["shards"]}
    assert shards == {str(path.relative_to(made_pairs.root)): sha256(path) for path in tars}
    assert validation["subset"] == "eq-gebc" and training["examples"] == 16
    for name in ("README.md", "report.html", "data.json"):  # what is published names no folder of this machine
        assert tmp_path.name not in (out / name).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accumulate": 2, "objective": "negative-pairs", "precision": "bfloat16", "epochs": 4},
        {"regulariser": "eqsim", "v1": "none", "form": "released", "regulariser_weight": 1, "margin": 0},
        pytest.param({"device": "gpu", "precision": "bfloat16"}, marks=pytest.mark.gpu),
    ],
    ids=["infonce", "cached features in bfloat16", "sampled negatives", "on a GPU"],
)
def test_a_killed_run_resumes_to_the_same_bytes(settings: Settings, tmp_path: Path, changes: dict[str, Any]) -> None:
    # Before the first checkpoint, after that of step 3, and after the last step.
    resumes_exactly(ClipTask, settings(**changes), tmp_path, (2, 5, 8))


@pytest.mark.slow
def test_two_processes_train_as_one_does(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(objective="negative-pairs", regulariser="hardneg", accumulate=2, epochs=4)
    options = ("model", "objective", "regulariser", "batch", "accumulate", "epochs", "lr", "warmup", "threads")
    trains_alike_in_two_processes(ClipTask, "clip", chosen, options, tmp_path)


@pytest.mark.slow
def test_training_learns_what_it_reads(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(epochs=25, validation=(), transform="evaluation", batch=8)
    done = train(ClipTask, chosen, tmp_path / "run")
    losses = [row["loss"] for row in rows_of(tmp_path / "run")]
    assert np.mean(losses[-4:]) < 0.7 * np.mean(losses[:4])
    assert done["best_step"] == len(losses) == 50


def test_training_and_validation_share_no_group_and_the_same_images_are_told(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(WrongUse, match=r"validation: \d+ groups or tars of it are trained on too"):
        train(ClipTask, settings(validation=(f"{made_pairs.root}:eq-ag",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    ClipTask(settings(steps=1, warmup=1), tmp_path / "run", Process(0, 1, "cpu", ""))
    assert "9 images of it are trained on too, byte by byte" in caplog.text
    assert "the learning rate never reaches" in caplog.text


def test_a_network_that_normalises_over_a_batch_reads_it_whole(settings: Settings, tmp_path: Path) -> None:
    layers = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None}
    resnet = settings(model=str(open_clip_config(tmp_path, "resnet.json", embed_dim=32, vision_cfg=layers)))
    assert ClipTask(resnet, tmp_path / "run", Process(0, 1, "cpu", "")).network.training
    parts = resnet.model_copy(update={"accumulate": 2})
    for chosen, world in ((parts, 1), (resnet, 2)):
        with pytest.raises(WrongUse, match=r"resnet\.json normalises over a batch"):
            ClipTask(chosen, tmp_path / "run", Process(0, world, "cpu", ""))


def test_no_answer_of_a_batch_is_among_its_wrong_answers(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(objective="negative-pairs")
    examples = open_data(chosen, chosen.twins, tmp_path / "run").training
    read = [examples[place] for place in range(len(examples))]
    places = [example.images[role] for example in read for role in ("image", "negative_image")]
    assert len(read) == 8 and len({(place.tar, place.offset) for place in places}) == len(places) == 16
    for name in OBJECTIVES.kinds():
        roles = OBJECTIVES.find(name).roles
        assert ClipSettings(data=("d",), objective=name).twins == ("first" if "negative_text" in roles else "both")


def test_the_defaults_are_bivlcs_recipe() -> None:
    recipe = ClipSettings(data=("out/demo",))
    assert (recipe.model, recipe.weights) == ("ViT-B-32", "openai")
    assert (recipe.lr, recipe.betas, recipe.eps, recipe.weight_decay) == (1e-6, (0.9, 0.98), 1e-6, 0.1)
    assert (recipe.warmup, recipe.epochs, recipe.seed, recipe.batch) == (50, 10, 42, 400)
    twins = ClipSettings(data=("out/demo",), objective="negative-pairs", regulariser="eqsim")
    assert twins.batch == twins.defaults()["batch"] == 200
    assert FusionSettings(model="m", data=("d",)).defaults()["accumulate"] == 1024 / 8
    assert twins.defaults() == twins.model_dump(mode="json") | {"objective": "infonce", "regulariser": None}


def test_a_folder_and_an_installed_package_bring_their_weights(tmp_path: Path) -> None:
    (tmp_path / "open_clip_model.safetensors").write_bytes(b"")
    assert ClipSettings(data=("d",), model=str(tmp_path)).weights == str(tmp_path / "open_clip_model.safetensors")
    assert ClipSettings(data=("d",), model=str(tmp_path), weights=None).weights is None
    small = ClipSettings(data=("d",), model="small-clip")
    assert small.weights is not None
    assert find_checkpoint("open_clip:small-clip", ["small-clip"])[1] == Path(small.weights)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"regulariser": "hardneg", "v1": "all"}, "^v1: is no setting of the regulariser hardneg"),
        ({"batch": 10, "accumulate": 3}, "3 parts do not divide a batch of 10"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        checked(ClipSettings, {"data": ["d"], **wrong})


def test_a_regulariser_brings_its_weight_and_settings() -> None:
    given = {"data": ["d"], "regulariser": "eqsim", "v1": "none", "margin": "0.04"}
    chosen = checked(ClipSettings, given)
    expected = {"v1": "none", "v2": "close", "form": "paper", "margin": 0.04, "margin_v1": 0.0}
    assert (chosen.regulariser_weight, chosen.regulariser_options()) == (0.5, expected)
    assert ClipSettings(data=("d",)).regulariser_weight == 0
    assert ClipSettings(data=("d",), regulariser="hardneg").regulariser_weight == 1


def test_batches_of_validation_leave_out_less_than_one_example_each() -> None:
    sizes = {400: 400, 401: 200, 1000: 333, 2000: 400, 3: 3, 2: 2}
    assert {examples: batch_size(examples, 400) for examples in sizes} == sizes
    assert batch_size(3, 2) == 2  # in a batch of one its text would always be right
    with pytest.raises(WrongUse, match="validation: one example"):
        batch_size(1, 400)


def test_twins_are_right_by_strict_comparison_and_each_group_counts_once() -> None:
    right, tie, wrong = [[3, 1], [1, 3]], [[3, 3], [1, 5]], [[1, 3], [3, 1]]
    scores = np.array([right, right, tie, wrong], np.float32).transpose(1, 2, 0)
    figures = twin_figures(scores, ["a", "a", "a", "b"])
    assert figures == pytest.approx({"text": 100 / 3, "image": 50, "group": 100 / 3})
