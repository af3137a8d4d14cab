"""A run of a fusion encoder: it resumes exactly, evaluation opens it, it learns."""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.training.fusion.conftest import Settings
from tests.waiting import wait_until
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.training.clip.data import open_data
from twinset.training.fusion.models import open_start
from twinset.training.fusion.settings import FusionSettings
from twinset.training.fusion.train import Validation, train_fusion
from twinset.training.losses.mining import load_neighbours
from twinset.training.runs.loop import OnProgress

CHECKOUT = Path(__file__).parents[3]


class Killed(Exception):
    """Instead of SIGKILL: nothing of the run catches it."""


def killed_after(step: int) -> OnProgress:
    def stop(done: int, steps: int, row: dict[str, Any]) -> None:
        if done == step:
            raise Killed

    return stop


def group_score(model: str, settings: FusionSettings) -> float:
    """Of a model as evaluation opens it, on the validation data of a run."""
    start = open_start(settings.model_copy(update={"model": model}))
    validation = open_data(settings, "both").validation
    assert validation is not None
    return Validation(validation, start).measure()["group"]


def resumes_exactly(settings: FusionSettings, out: Path) -> None:
    """Stops a run before and after its first checkpoint, and compares it with one that was not stopped."""
    straight = train_fusion(settings, out / "straight", report=False)
    with pytest.raises(Killed):
        train_fusion(settings, out / "killed", killed_after(1), report=False)
    scored = (out / "killed" / "neighbours.safetensors").stat().st_mtime_ns
    with pytest.raises(Killed):
        train_fusion(settings, out / "killed", killed_after(3), report=False)
    resumed = train_fusion(settings, out / "killed", report=False)
    assert (resumed.digest, resumed.resumed_at) == (straight.digest, 2) and len(straight.history) == 6
    assert resumed.history == straight.history  # logged values too, to the last bit
    assert resumed.best.read_bytes() == straight.best.read_bytes()
    assert (out / "killed" / "neighbours.safetensors").stat().st_mtime_ns == scored, "they were scored a second time"
    kind = settings.model.partition(":")[0]
    assert group_score(f"{kind}:{out / 'killed'}", settings) == straight.history[-1]["validation"]["group"]


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_bytes_and_evaluation_opens_it(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(regulariser="eqsim", margin=0)
    resumes_exactly(chosen, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "killed" / "history.jsonl").read_text().splitlines()]
    assert all(0 < row["active_fraction"] <= 1 and row["regulariser"] > 0 for row in rows)
    assert rows[-1]["loss"] == pytest.approx(rows[-1]["objective"] + 0.5 * rows[-1]["regulariser"])
    # Of 6 steps floor(0.6) = 0 warm up, and the rate falls by a sixth with each.
    assert [row["lr"] for row in rows] == pytest.approx([1e-3 * left / 6 for left in range(6, 0, -1)])
    found = json.loads((tmp_path / "killed" / "data.json").read_bytes())
    weights = (tmp_path / "killed" / "model.safetensors").read_bytes()
    assert found["weights"]["best.safetensors"] == hashlib.sha256(weights).hexdigest()
    assert (
        found["data"][0]["examples"] == 48
        and found["data"][0]["digest"] in (tmp_path / "killed" / "README.md").read_text()
    )
    again = train_fusion(chosen, tmp_path / "killed", lambda *_: pytest.fail("a step was taken"))
    assert again.resumed_at == 6
    with pytest.raises(WrongUse, match=r"hard is 2 there and 1 here"):
        train_fusion(settings(regulariser="eqsim", margin=0.0, hard=1), tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("vilt", {"objective": "rank", "workers": 1, "image_size": 48, "transform": "randaugment"}),
        ("flava", {"regulariser": "eqsim-released", "precision": "bfloat16", "transform": "evaluation"}),
    ],
)
def test_other_models_resume_to_the_same_bytes(
    settings: Settings, tmp_path: Path, kind: str, changes: dict[str, Any]
) -> None:
    encoder = f"random:{open_clip_config(tmp_path / 'encoder')}"
    resumes_exactly(settings(kind, neighbours_by=encoder, **changes), tmp_path)


def test_both_heads_train_on_images_of_another_size(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(objective="joint", regulariser="eqsim", margin=0, image_size=48, transform="randaugment")
    resumes_exactly(chosen, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "killed" / "history.jsonl").read_text().splitlines()]
    for row in rows:
        assert row["objective"] == pytest.approx(row["match"] + row["contrast"])
    held = json.loads((tmp_path / "killed" / "config.json").read_bytes())["vision_config"]["image_size"]
    size = json.loads((tmp_path / "killed" / "preprocessor_config.json").read_bytes())["size"]
    assert held == 48 and size == {"height": 48, "width": 48}
    with safe_open(tmp_path / "killed" / "model.safetensors", "np") as file:
        assert file.get_tensor("vision_model.embeddings.position_embedding").shape[1] == 3 * 3 + 1


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("vilt", {"objective": "joint"}, "has no contrastive head, which joint trains; name blip-itm:"),
        ("flava", {"image_size": 48}, "reads images of one size; name blip-itm: or vilt:, or leave image_size out"),
        ("blip-itm", {"image_size": 50}, "image_size: 50 pixels are no multiple of the patches' 16"),
    ],
)
def test_what_a_model_cannot_do_is_refused(
    settings: Settings, tmp_path: Path, kind: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongUse, match=message):
        train_fusion(settings(kind, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_learns_which_words_belong_to_which_picture(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(
        regulariser="eqsim", epochs=30, accumulate=1, lr=1e-2, lr_times=1, transform="evaluation", validate_every=60
    )
    done = train_fusion(chosen, tmp_path / "run")
    losses = [row["objective"] for row in done.history]
    # One of nine pairs matches: who knows no more has the entropy of that, 0.349.
    assert losses[0] > 0.6 and sum(losses[-20:]) / 20 < 0.3
    assert group_score(f"blip-itm:{tmp_path / 'run'}", chosen) >= 45 > group_score(chosen.model, chosen)
    assert max(row["active_fraction"] for row in done.history) > 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "objective match + 0.5 · eqsim" in page and (tmp_path / "run" / "tensorboard").is_dir()


@pytest.mark.slow
def test_the_command_is_killed_and_ends_with_the_same_bytes(settings: Settings, tmp_path: Path) -> None:
    chosen = settings()
    names = ("batch", "accumulate", "epochs", "nearest", "negatives", "hard", "threads", "checkpoint_every", "lr")
    said = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in names]
    said += ["--model", chosen.model, "--data", chosen.data[0], "--validation", chosen.validation[0], "--json"]
    command = [sys.executable, "-m", "twinset.cli.main", "train", "fusion", *said, "--out", str(tmp_path / "run")]
    history = tmp_path / "run" / "history.jsonl"
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        wait_until(lambda: history.exists() and history.read_bytes().count(b"\n") >= 3, child, 0.001)
        os.kill(child.pid, signal.SIGKILL)
    assert not (tmp_path / "run" / "result.json").exists()
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["resumed_at"] in (2, 4) and found["model"] == f"blip-itm:{tmp_path / 'run'}"
    assert found["sha256"] == train_fusion(chosen, tmp_path / "straight", report=False).digest
    assert open_model(found["model"]).threshold == 0


def test_neighbours_of_other_examples_and_settings_that_do_not_fit_are_refused(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        train_fusion(settings(validation=()), tmp_path / "run", killed_after(1), report=False)
    path = tmp_path / "run" / "neighbours.safetensors"
    with safe_open(path, "np") as file:
        held = load_neighbours(path, file.metadata()["examples"])
    dataclasses.replace(held, examples="others").save(path)
    with pytest.raises(WrongUse, match=r"neighbours\.safetensors: made of other examples.*score neighbours again"):
        train_fusion(settings(validation=()), tmp_path / "run", report=False)
    # 48 examples with 12 of each caption: 36 of another one.
    with pytest.raises(WrongUse, match=r"48 examples, of which 3[0-6] or more differ.*smaller --batch"):
        train_fusion(settings(negatives=37), tmp_path / "few")
    with pytest.raises(WrongUse, match="is not trained by its matching head; name blip-itm:"):
        train_fusion(settings(model=f"random:{open_clip_config(tmp_path / 'encoder')}"), tmp_path / "few")
    assert not (tmp_path / "few").exists()
