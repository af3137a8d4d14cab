"""Detectors are trained as BiVLC's code trains them, read by blind probes, and refused for another encoder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.made_datasets import MadeDataset
from tests.tiny_encoders import open_clip_config
from tests.training.runs.contract import resumes_exactly, rows_of
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.detectors import FACTS, WEIGHTS, read_detectors
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.detectors.train import DetectorTask
from twinset.training.runs.processes import Process
from twinset.training.runs.trainer import train

Settings = Callable[..., DetectorSettings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    model = f"random:{open_clip_config(tmp_path)}"

    def make(place: str, **changes: Any) -> DetectorSettings:
        given = {"model": model, "data": [place], "threads": 1, "batch": 4, "epochs": 3, **changes}
        return DetectorSettings.model_validate(given)

    return make


@pytest.fixture
def twins(made_pairs: MadeDataset) -> dict[str, Any]:
    return {"place": f"{made_pairs.root}:eq-ag", "validation": [f"{made_pairs.root}:eq-gebc"]}


def test_steps_are_adams_on_a_layer_of_each_half(twins: dict[str, Any], settings: Settings, tmp_path: Path) -> None:
    released = DetectorSettings(data=("out",))
    assert (released.lr, released.batch, released.epochs, released.image_epochs) == (1e-3, 400, 10, 1)
    chosen = settings(**twins)
    done = train(DetectorTask, chosen, tmp_path / "run")
    task = DetectorTask(chosen, tmp_path / "other", Process(0, 1, "cpu", ""))
    task.prepare(tmp_path / "other")
    each, layers = task.batches.steps_per_epoch, task.network
    optimiser = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for step in range(3 * each):
        batch, loss = task.batches.at(step), torch.zeros(())
        for half, shown in (("text", batch.texts), ("image", batch.images)):
            if half == "text" or step < each:
                features = torch.cat([shown[half], shown[f"negative_{half}"]])
                chances = layers[half](features).squeeze(1).sigmoid()
                labels = torch.tensor([0.0] * 4 + [1.0] * 4)
                loss = loss + torch.nn.functional.binary_cross_entropy(chances, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    weights = load_file(done["last"])
    assert weights.keys() == {f"{half}.{name}" for half in ("text", "image") for name in ("weight", "bias")}
    for name, value in layers.state_dict().items():
        torch.testing.assert_close(weights[name], value)
    rows = rows_of(tmp_path / "run")
    assert ["image_loss" in row for row in rows] == [True] * each + [False] * 2 * each
    figures = [row["validation"] for row in rows if "validation" in row]
    assert len(figures) == 3 and len({figure["image_detection"] for figure in figures}) == 1
    best = max(figures, key=lambda figure: figure["accuracy"])
    assert best["accuracy"] == pytest.approx((best["text_detection"] + best["image_detection"]) / 2)


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bytes(twins: dict[str, Any], settings: Settings, tmp_path: Path) -> None:
    resumes_exactly(DetectorTask, settings(**twins, checkpoint_every=2), tmp_path, (1, 3, 5))


def test_text_pairs_train_one_half_alone(made_text_pairs: MadeDataset, settings: Settings, tmp_path: Path) -> None:
    done = train(DetectorTask, settings(f"{made_text_pairs.root}:text", batch=2, image_epochs=9), tmp_path / "run")
    detectors = read_detectors(tmp_path / "run")
    assert rows_of(tmp_path / "run")[-1]["epoch"] == 3  # the images that there are not have no epochs
    assert detectors.image is None and detectors.facts["data"] == [f"{made_text_pairs.root}:text"]
    assert np.array_equal(detectors.text.weight, load_file(done["best"])["text.weight"].numpy()[0])
    assert "twinset eval blind … --detectors OUT --model random:tiny.json" in (tmp_path / "run/README.md").read_text()


@pytest.mark.slow
def test_blind_probes_use_trained_detectors_of_their_encoder_alone(
    made_pairs: MadeDataset, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = settings("x").model, str(tmp_path / "run")
    data, options = f"--data={made_pairs.root}:eq-ag", ["--model", model, "--batch=4", "--epochs=1", "--threads=1"]
    assert main(["train", "detectors", data, *options, "--out", out]) == 0 and capsys.readouterr().out
    command = ["eval", "blind", f"twinset={made_pairs.root}", "--detectors", out, "--json"]
    assert main([*command, "--model", model]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["all"]["detectors"].keys() >= {"text detector", "image detector", "group"}
    assert f"detectors: trained on {made_pairs.root}:eq-ag" in report["notes"]
    assert main([*command, "--model", f"{model}:7"]) == 2
    assert "the detectors were trained on features of random:" in capsys.readouterr().err


@pytest.mark.parametrize(("data", "width", "named"), [([], 1, FACTS), (["d"], 2, WEIGHTS)])
def test_damaged_detectors_are_refused(tmp_path: Path, data: list[str], width: int, named: str) -> None:
    save_file({"text.weight": torch.zeros(width, 8), "text.bias": torch.zeros(1)}, tmp_path / WEIGHTS)
    (tmp_path / FACTS).write_text(json.dumps({"model": "m", "encoder": "e", "data": data}))
    with pytest.raises(WrongUse, match=named):
        read_detectors(tmp_path)
