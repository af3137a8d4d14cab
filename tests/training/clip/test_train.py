"""A run: what it writes, that it resumes exactly, and what it refuses."""

import hashlib
import json
import math
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.evaluation.scorers.tiny_models import images
from tests.made_datasets import MadeDataset
from tests.training.clip.conftest import Settings
from tests.training.clip.killed_runs import Killed, killed_after
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.training.clip import train
from twinset.training.clip.train import train_clip
from twinset.training.runs import identity
from twinset.training.runs.checkpoints import Checkpoints
from twinset.training.runs.identity import History

FILES = {
    *("README.md", "best.safetensors", "data.json", "history.jsonl", "last.safetensors", "open_clip_config.json"),
    *("open_clip_model.safetensors", "report.html", "result.json", "settings.json", "tensorboard"),
}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_writes_weights_that_evaluation_opens_and_a_second_call_does_nothing(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path
) -> None:
    out, told = tmp_path / "run", []
    done = train_clip(settings(), out, lambda step, steps, row: told.append((step, steps)))
    assert told == [(step, 8) for step in range(1, 9)] and {path.name for path in out.iterdir()} == FILES
    assert (done.digest, done.resumed_at) == (sha256(out / "last.safetensors"), 0)
    assert [row["step"] for row in done.history if "validation" in row] == [4, 8]
    assert {"loss", "accuracy", "chance", "text", "image", "group"} == done.history[-1]["validation"].keys()
    best = max(row["validation"]["accuracy"] for row in done.history if "validation" in row)
    assert done.history[done.best_step - 1]["validation"]["accuracy"] == best
    # open_clip:OUT has the best weights; images go through the transform of the configuration.
    scorer: Any = open_model(f"open_clip:{out}")
    same: Any = open_model(f"open_clip:{out / 'open_clip_config.json'}:{out / 'best.safetensors'}")
    assert scorer.digest() == same.digest() and scorer.encode_images(images(1)).shape == (1, 8)
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    again = train_clip(settings(), out, lambda *_: pytest.fail("a step was taken"))
    assert (again.digest, again.best_step, again.resumed_at) == (done.digest, done.best_step, 8)
    assert again.history == done.history
    assert {path: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_from_the_weights_back_to_every_shard(settings: Settings, made_pairs: MadeDataset, tmp_path: Path) -> None:
    train_clip(settings(steps=2), tmp_path / "run", report=False)
    assert not (tmp_path / "run" / "report.html").exists() and not (tmp_path / "run" / "tensorboard").exists()
    found = json.loads((tmp_path / "run" / "data.json").read_bytes())
    assert found["weights"]["last.safetensors"] == sha256(tmp_path / "run" / "last.safetensors")
    ((training,), (validation,)) = found["data"], found["validation"]
    shards = {one["tar"]: one["sha256"] for one in training["shards"]}
    assert shards == {
        str(path.relative_to(made_pairs.root)): sha256(path) for path in (made_pairs.root / "eq-ag").rglob("*.tar")
    }
    assert validation["subset"] == "eq-gebc" and training["examples"] == 16
    card = (tmp_path / "run" / "README.md").read_text()
    assert training["digest"] in card and found["weights"]["best.safetensors"] in card


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accumulate": 2, "objective": "negative-pairs", "precision": "bfloat16", "epochs": 4},
        {"regulariser": "eqsim-v2-close-released", "regulariser_weight": 1, "margin": 0, "close": 2},
        pytest.param({"device": "gpu", "precision": "bfloat16"}, marks=pytest.mark.gpu),
    ],
    ids=["infonce", "cached features in bfloat16", "sampled negatives", "on a GPU"],
)
def test_a_killed_run_resumes_to_the_same_bytes(settings: Settings, tmp_path: Path, changes: dict[str, Any]) -> None:
    chosen = settings(**changes)
    straight = train_clip(chosen, tmp_path / "straight", report=False)
    for step in (2, 5, 8):  # before the first checkpoint, after one of step 3, and after the last step
        with pytest.raises(Killed):
            train_clip(chosen, tmp_path / "killed", killed_after(step), report=False)
    assert Checkpoints(tmp_path / "killed").steps() == [3, 6]
    resumed = train_clip(chosen, tmp_path / "killed", report=False)
    assert (resumed.digest, resumed.resumed_at) == (straight.digest, 6)
    assert sha256(resumed.best) == sha256(straight.best)
    assert resumed.history == straight.history  # logged values too, to the last bit
    assert not Checkpoints(tmp_path / "killed").folder.exists()


def test_how_a_run_is_executed_may_change_and_what_it_trains_may_not(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        train_clip(settings(), tmp_path / "run", killed_after(4), report=False)
    with pytest.raises(WrongUse, match=r"lr is 0\.001 there and 0\.01 here.*former.*another --out"):
        train_clip(settings(lr=0.01), tmp_path / "run")
    with pytest.raises(WrongUse, match=r"data\.data is .* there"):
        train_clip(settings(data=(f"{made_pairs.root}:eq-youcook2",)), tmp_path / "run")
    with pytest.raises(WrongUse, match="former --threads, or accept it with --allow-mixed-runtimes"):
        train_clip(settings(threads=2), tmp_path / "run")
    assert train_clip(settings(checkpoint_every=0), tmp_path / "run", report=False).resumed_at == 3


def test_a_folder_of_something_else_or_of_a_running_training_is_left_alone(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "PATIENCE", 0.2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(WrongUse, match="holds other files"):
        train_clip(settings(), tmp_path / "other")
    with History(tmp_path / "run"), pytest.raises(WrongUse, match="another process trains into it"):
        train_clip(settings(), tmp_path / "run")


def test_ctrl_c_tells_after_which_step_the_run_goes_on(settings: Settings, tmp_path: Path) -> None:
    def stop(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as found:
        train_clip(settings(), tmp_path / "run", stop, report=False)
    assert found.value.__notes__ == ["run the same command again: it goes on after step 3"]


def test_a_killed_worker_ends_the_run_which_resumes_to_the_same_bytes(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(workers=1, steps=12)

    def kill(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == 4:
            (worker,) = multiprocessing.active_children()
            worker.kill()

    with pytest.raises(BuildFailed, match=r"was killed, .* fewer --workers .*run the same command again to resume"):
        train_clip(chosen, tmp_path / "run", kill, report=False)
    assert Checkpoints(tmp_path / "run").steps()[0] == 3 and not multiprocessing.active_children()
    resumed = train_clip(chosen, tmp_path / "run", report=False)
    assert resumed.resumed_at >= 3
    assert resumed.digest == train_clip(settings(steps=12), tmp_path / "straight", report=False).digest


def test_a_checkpoint_without_a_tensor_is_refused(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train_clip(settings(), tmp_path / "run", killed_after(4), report=False)
    checkpoints = Checkpoints(tmp_path / "run")
    found = checkpoints.last()
    assert found is not None
    receipt, tensors = found
    del tensors["model.logit_scale"]
    checkpoints.write(receipt.step, tensors, receipt.identity, receipt.runtime, receipt.best)
    with pytest.raises(WrongUse, match=r"checkpoints: step 3 is not of this network \('model.logit_scale'\); remove"):
        train_clip(settings(), tmp_path / "run", report=False)


def test_training_and_validation_share_no_group_and_the_same_images_are_told(
    settings: Settings, made_pairs: MadeDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(WrongUse, match=r"validation: \d+ groups or tars of it are trained on too"):
        train_clip(settings(validation=(f"{made_pairs.root}:eq-ag",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    train_clip(settings(steps=1), tmp_path / "run", report=False)
    assert "9 images of it are trained on too, byte by byte" in caplog.text


def test_a_loss_that_is_not_finite_ends_the_run_with_step_and_keys(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal = train.Stepper.inputs

    def poisoned(self: Any, batch: Any) -> Any:
        found = normal(self, batch)
        if batch.step == 4:
            found["image"] = found["image"].clone()
            found["image"][2] = math.nan
            names.append(batch.keys[2])
        return found

    names: list[str] = []
    monkeypatch.setattr(train.Stepper, "inputs", poisoned)
    with pytest.raises(BuildFailed, match=r"step 5: the loss is nan.*features of 1 examples are not finite") as told:
        train_clip(settings(validation=()), tmp_path / "run", report=False)
    assert f"the examples are {names[0]}. Train again" in str(told.value)
    found = Checkpoints(tmp_path / "run").last()
    assert found is not None and found[0].step == 3
    assert all(torch.isfinite(value).all() for value in found[1].values())


def test_without_validation_the_last_weights_are_the_best(settings: Settings, tmp_path: Path) -> None:
    done = train_clip(settings(validation=(), steps=3), tmp_path / "run", report=False)
    assert sha256(done.best) == done.digest and done.best_step == 3


def test_training_learns_what_it_reads(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(epochs=25, validation=(), transform="evaluation", batch=8)
    done = train_clip(chosen, tmp_path / "run", report=False)
    losses = [row["loss"] for row in done.history]
    assert np.mean(losses[-4:]) < 0.7 * np.mean(losses[:4])
    assert load_file(done.last)["logit_scale"].ndim == 0
    assert all(row["loss"] > 0 and row["gradient_norm"] > 0 for row in done.history)


def test_a_regulariser_that_trains_nothing_is_said_once_and_stays_in_result_and_page(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = settings(regulariser="eqsim", margin=100)
    with pytest.raises(Killed):
        train_clip(chosen, tmp_path / "run", killed_after(5), report=False)
    done = train_clip(chosen, tmp_path / "run")
    assert done.idle == {"active_v2": 8} and all(row["active_v1"] > 0 for row in done.history)
    said = [record.message for record in caplog.records if "has no gradient" in record.message]
    assert len(said) == 1 and said[0].startswith("active_v2 (step 8): 0 for 8 steps running.")
    for name in ("README.md", "report.html"):
        assert "Part of the loss trained nothing." in (tmp_path / "run" / name).read_text()
    assert train_clip(chosen, tmp_path / "run").idle == done.idle
