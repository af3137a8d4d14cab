"""A Combiner learns conditions, resumes to the same bytes, and is opened by evaluation as it was validated."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import Settings, damage
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Composer, Running
from twinset.training.combiner import train as of_train
from twinset.training.combiner.data import HeldOut, open_data
from twinset.training.combiner.features import FeatureBatches
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.train import PASS, train_combiner
from twinset.training.runs.loop import OnProgress, Trained


def train(settings: CombinerSettings, out: Path, **more: Any) -> Trained:
    """A run without reports, with a cache beside it."""
    return train_combiner(settings, out, report=False, cache=out.parent / "cache", **more)


def recall(model: str, settings: CombinerSettings, cache: Path) -> float:
    """recall@1 in percent of a model on the validation of a run, asked as evaluation asks."""
    import numpy as np

    from twinset.evaluation.features.score_table import ranks

    running = Running(batch=PASS, threads=1)
    scorer = open_model(model, running)
    assert isinstance(scorer, Composer)
    similarities = similarities_of(scorer, cache, running)
    assert isinstance(similarities, ByFeatures)
    queries = list(open_data(settings).validation.examples())
    similarities.prepare(queries)
    found = [ranks(similarities.gallery(one), one.targets, one.excluded) for one in queries]
    similarities.close()
    return 100 * float(np.mean([one["higher"] + one["tied"] == 0 for one in found]))


@pytest.mark.parametrize("frozen", ["none", "image", "text", "both"])
def test_evaluation_opens_what_was_trained_and_finds_the_same_recall(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, frozen: str
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", frozen=frozen)
    trained = train_combiner(chosen, tmp_path / "run", cache=tmp_path / "cache")
    assert recall(trained.model, chosen, tmp_path / "cache") == trained.best_value
    assert trained.best_value == max(row["validation"]["recall@1"] for row in trained.history if "validation" in row)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"settings.json", "result.json", "data.json", "README.md", "report.html", "tensorboard"} <= names
    assert ("best_clip.safetensors" in names) is (frozen != "both") and not any("checkpoint" in name for name in names)
    assert "3 triplets of its data are held out" in (tmp_path / "run/README.md").read_text()
    assert "recall@1" in (tmp_path / "run/report.html").read_text() and trained.model.startswith("combiner:")
    left = tmp_path / "run/checkpoints/00000001.safetensors"
    left.parent.mkdir()
    left.write_bytes(b"of a run that was killed while it removed its checkpoints")
    again = train(chosen, tmp_path / "run")
    assert not left.parent.exists()
    assert again.resumed_at == len(trained.history) and again.digest == trained.digest


def test_the_command_says_which_model_evaluation_opens(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets")
    said = [
        "train",
        "combiner",
        "--data",
        chosen.data[0],
        "--model",
        chosen.model,
        "--weights",
        "random",
        "--frozen=both",
    ]
    said += ["--batch", "2", "--epochs", "1", "--projection", "12", "--hidden", "20", "--held-out", "0.3"]
    said += ["--threads", "1", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "run")]
    assert main(said) == 0
    *_, page, model = capsys.readouterr().out.splitlines()
    assert Path(page).is_file() and open_model(model, Running(threads=1)).name == model
    assert main([*said, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == model and found["resumed_at"] == found["steps"] == 2
    assert main([*said, "--dropout", "1"]) == 2 and "dropout: Input should be less than 1" in capsys.readouterr().err


class Stop(Exception):
    """Ends a run in the middle, as a kill does for all that is on disk."""


def stopping(after: int) -> OnProgress:
    def stop(step: int, steps: int, row: Any) -> None:
        if step == after:
            raise Stop

    return stop


def test_steps_in_place_of_epochs_end_a_run_within_one(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    data = f"{made_triplets.root}:triplets"
    whole = train(settings(data, frozen="both", epochs=3), tmp_path / "epochs")
    same = train(settings(data, frozen="both", epochs=0, steps=len(whole.history)), tmp_path / "steps")
    assert same.digest == whole.digest and len(whole.history) == 6
    short = train(settings(data, frozen="both", steps=5), tmp_path / "short")
    assert [row["epoch"] for row in short.history] == [1, 1, 2, 2, 3] and "validation" in short.history[-1]
    assert len({row["lr"] for row in short.history}) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"frozen": "both"}, {"workers": 1}, {"accumulate": 2, "precision": "bfloat16", "frozen": "image"}]
)
def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, changes: dict[str, Any]
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", checkpoint_every=1, epochs=3, **changes)
    whole = train(chosen, tmp_path / "whole")

    with pytest.raises(Stop):
        train(chosen, tmp_path / "parts", on_progress=stopping(4))
    resumed = train(chosen, tmp_path / "parts")
    assert resumed.resumed_at == 3 and len(whole.history) == 6
    assert resumed.digest == whole.digest and resumed.history == whole.history
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "parts")]
    assert results[0] == results[1]


def test_a_combiner_learns_conditions_and_of_shuffled_ones_it_does_not(
    made_recoloured: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    learning: dict[str, Any] = {
        "frozen": "both", "batch": 48, "epochs": 35, "lr": 2e-3, "projection": 64, "hidden": 128, "dropout": 0.1,
        "held_out": 0.2, "validate_every": 1000,
    }  # fmt: skip
    data = f"{made_recoloured.root}:recoloured"
    matched = settings(data, **learning)
    trained = train(matched, tmp_path / "matched")
    shuffled = train(settings(data, **learning, conditions="shuffled"), tmp_path / "shuffled")
    encoder = trained.model.split(":", 2)[2]
    image_only = recall(f"image-only:{encoder}", matched, tmp_path / "cache")
    assert trained.best_value > image_only + 30 and trained.best_value > 55
    # What does not depend on the condition picks one of five targets of a reference.
    assert shuffled.best_value < trained.best_value - 30


def test_another_run_in_the_same_folder_is_refused(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path
) -> None:
    data = f"{made_triplets.root}:triplets"
    train(settings(data, frozen="both"), tmp_path / "run")
    with pytest.raises(WrongUse, match=r"temperature is 0.01 there and 0.1 here"):
        train(settings(data, frozen="both", temperature=0.1), tmp_path / "run")


@pytest.mark.parametrize(("frozen", "held"), [("both", False), ("none", False), ("none", True)])
def test_an_image_that_cannot_be_read_ends_a_run_and_is_named(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, frozen: str, held: bool
) -> None:
    chosen = settings(f"{made_triplets.root}:triplets", frozen=frozen, held_out=0.1)
    data = open_data(chosen)
    assert isinstance(data.validation, HeldOut)
    example = (data.validation.triplets if held else data.training)[0]
    damage(made_triplets, example, "target")
    said = "^validation: " if held else "cannot be read.*"
    with pytest.raises(BuildFailed, match=f"{said}{re.escape(example.where)}.*then resume"):
        train(chosen, tmp_path / "run")
    assert not held or not (tmp_path / "run/history.jsonl").read_bytes()  # before the first step


def test_a_frozen_run_whose_tar_was_repaired_meanwhile_is_not_resumed_to_other_bytes(
    made_triplets: MadeDataset, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_train, "FeatureBatches", functools.partial(FeatureBatches, max_broken=0.5))
    chosen = settings(f"{made_triplets.root}:triplets", frozen="both", checkpoint_every=1)
    example = open_data(chosen).training[0]
    tar = made_triplets.root / example.images["target"].tar
    whole = tar.read_bytes()
    damage(made_triplets, example, "target")
    with pytest.raises(Stop):
        train(chosen, tmp_path / "run", on_progress=stopping(2))
    broken = tar.read_bytes()
    tar.write_bytes(whole)
    with pytest.raises(BuildFailed, match=f"^{re.escape(example.where)}: can be read now, and could not when this run"):
        train(chosen, tmp_path / "run")
    tar.write_bytes(broken)
    assert train(chosen, tmp_path / "run").resumed_at == 1
