"""Detectors are trained on whole groups, written so that blind probes read them, and refused for another encoder."""

import json
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from twinset.cli.main import main
from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.blind_probes.detectors import FACTS, Detector, Detectors, read_detectors, write_detectors
from twinset.training.detectors import train as of_train
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.detectors.train import TrainedDetectors, train_detectors

Trains = Callable[..., TrainedDetectors]


@pytest.fixture
def trains(tmp_path: Path) -> Trains:
    """Trains with a tiny encoder and a cache of its own."""
    model = f"random:{open_clip_config(tmp_path)}"

    def train(data: str, out: str = "trained", report: bool = True, **settings: object) -> TrainedDetectors:
        given = DetectorSettings.model_validate({"model": model, "data": [data], "threads": 1, **settings})
        return train_detectors(given, tmp_path / out, tmp_path / "cache", report)

    return train


@pytest.mark.slow
def test_what_is_written_is_what_was_trained_and_again_the_same(
    made_pairs: MadeDataset, trains: Trains, tmp_path: Path
) -> None:
    trained = trains(str(made_pairs.root), image_epochs=3)
    read = read_detectors(tmp_path / "trained")
    assert trained.detectors.image is not None and read.image is not None
    for ours, its in ((trained.detectors.text, read.text), (trained.detectors.image, read.image)):
        assert np.array_equal(ours.weight, its.weight) and ours.bias == its.bias and ours.weight.shape == (8,)
    halves = json.loads((tmp_path / "trained" / FACTS).read_text())["halves"]
    kept = sum(map(len, made_pairs.kept.values()))
    for half in ("text", "image"):
        assert sum(halves[half][f"{part}_pairs"] for part in ("train", "validation", "test")) == kept
        assert trained.accuracy[half] == halves[half]["test_accuracy"]
    trains(str(made_pairs.root), "again", image_epochs=3)
    names = [FACTS, "data.json", "image_detector.safetensors", "settings.json", "text_detector.safetensors"]
    assert {path.name for path in (tmp_path / "trained").iterdir()} == {*names, "README.md", "report.html"}
    assert all((tmp_path / "trained" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)
    # Card and page lead back to every shard; the same command again changes nothing, and others are refused.
    data = json.loads((tmp_path / "trained" / "data.json").read_text())
    assert sum(len(one["shards"]) for one in data["data"]) == len([*made_pairs.root.glob("*/*/*.tar")]) > 0
    card, page = ((tmp_path / "trained" / name).read_text() for name in ("README.md", "report.html"))
    for one in data["data"]:
        assert f"| {one['digest']} |" in card and f"{one['digest'][:16]}…" in page
    shown = f"{100 * halves['text']['test_accuracy']:.2f}"
    assert f"| {shown} | {halves['text']['test_pairs']} |" in card and f">{shown}<" in page and "data:image" in page
    weights = tmp_path / "trained" / "text_detector.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(b"cut")
    with pytest.raises(WrongUse, match=r"text_detector.safetensors: absent, or not what .* names; write it again"):
        read_detectors(tmp_path / "trained")
    trains(str(made_pairs.root), image_epochs=3)
    assert weights.read_bytes() == before
    with pytest.raises(WrongUse, match="other settings or data: image_epochs is 3 there and 2 here"):
        trains(str(made_pairs.root), image_epochs=2)


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # Python ignores its signal
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            write_detectors(Detectors(Detector(np.zeros(512, np.float32), 0.0), None, {}), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "text_detector.safetensors: free some room" in raised.value.__notes__[0] and not [*tmp_path.iterdir()]


def test_images_that_cannot_be_read_are_named_and_too_many_refused(
    made_pairs: MadeDataset, trains: Trains, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tar = min(made_pairs.root.glob("eq-ag/*/*.tar"))
    tar.write_bytes(tar.read_bytes().replace(b"\xff\xd8\xff", bytes(3), 1))
    with pytest.raises(
        BuildFailed, match=rf"1 of \d+ pairs have .* the first is .*{tar.name}.*\. At most 1.0% may be: fetch"
    ):
        trains(f"{made_pairs.root}:eq-ag")
    monkeypatch.setattr(of_train, "MAX_BROKEN", 0.5)
    pairs = len(made_pairs.kept["eq-ag"])
    halves = trains(f"{made_pairs.root}:eq-ag", report=False).detectors.facts["halves"]
    assert f"left out of training: {made_pairs.root}:eq-ag: 1 of {pairs} pairs" in caplog.text
    counts = {
        half: sum(facts[f"{part}_pairs"] for part in ("train", "validation", "test")) for half, facts in halves.items()
    }
    assert counts == {"text": pairs, "image": pairs - 1}


def test_a_folder_of_something_else_is_refused(made_pairs: MadeDataset, trains: Trains, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    for out, message in (("other", "holds other files"), ("file", "not a folder"), ("file/below", "not a folder")):
        with pytest.raises(WrongUse, match=message):
            trains(str(made_pairs.root), out)


def test_text_pairs_train_a_detector_of_captions_alone(
    made_text_pairs: MadeDataset, trains: Trains, tmp_path: Path
) -> None:
    assert trains(f"{made_text_pairs.root}:text").accuracy.keys() == {"text"}
    assert read_detectors(tmp_path / "trained").image is None


@pytest.mark.slow
def test_blind_probes_use_trained_detectors_of_their_encoder_alone(
    made_pairs: MadeDataset, trains: Trains, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trains(f"{made_pairs.root}:eq-ag", seed=3)
    said = ["eval", "blind", f"twinset={made_pairs.root}", "--detectors", str(tmp_path / "trained"), "--json"]
    more = ["--cache", str(tmp_path / "cache"), "--model"]
    assert main([*said, *more, f"random:{tmp_path / 'tiny.json'}"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["all"]["detectors"].keys() >= {"text detector", "image detector", "group"}
    assert f"detectors: trained on {made_pairs.root}:eq-ag" in found["notes"]
    assert main([*said, *more, f"random:{tmp_path / 'tiny.json'}:7"]) == 2
    assert "the detectors were trained on features of random:" in capsys.readouterr().err
    assert main(said) == 2 and "name it with --model" in capsys.readouterr().err


def test_the_command_says_how_often_held_out_halves_are_told_right(
    made_pairs: MadeDataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = ["--data", f"{made_pairs.root}:eq-ag"], f"random:{open_clip_config(tmp_path)}"
    said = ["train", "detectors", *data, "--model", model, "--cache", str(tmp_path / "cache"), "--out"]
    assert main([*said, str(tmp_path / "trained"), "--held-out", "0.3", "--threads", "1"]) == 0
    told = capsys.readouterr().out
    assert "halves text test_accuracy: " in told and "halves image test_accuracy: " in told
    assert read_detectors(tmp_path / "trained").facts["held_out"] == 0.3
    assert main([*said, str(tmp_path / "trained"), "--held-out", "0.7"]) == 2
    assert "held_out: Input should be less than 0.5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("DIR:eq-ag*2", "repeats a dataset"),
        ("DIR:elsewhere", "no subset 'elsewhere'"),
        ("DIR:triplets", "no pairs"),
    ],
)
def test_data_that_cannot_train_detectors_is_refused(
    made_pairs: MadeDataset, made_triplets: MadeDataset, trains: Trains, data: str, error: str
) -> None:
    with pytest.raises(WrongUse, match=error):
        trains(data.replace("DIR", str(made_pairs.root)))


@pytest.mark.parametrize("damage", ["absent", "facts", "weights", "layer"])
def test_damaged_detectors_are_refused(
    made_text_pairs: MadeDataset, trains: Trains, tmp_path: Path, damage: str
) -> None:
    from safetensors.numpy import save_file

    trains(f"{made_text_pairs.root}:text")
    facts, weights = tmp_path / "trained" / FACTS, tmp_path / "trained" / "text_detector.safetensors"
    if damage == "absent":
        facts.unlink()
    elif damage == "facts":
        facts.write_text("{}")
    elif damage == "weights":
        weights.write_bytes(weights.read_bytes()[:-5])
    else:
        save_file({"weight": np.zeros((2, 8), np.float32), "bias": np.zeros(2, np.float32)}, weights)
        said = json.loads(facts.read_text())
        said["sha256"][weights.name] = sha256_of_file(weights)[0]
        facts.write_text(json.dumps(said))
    with pytest.raises(WrongUse, match=FACTS if damage in ("absent", "facts") else weights.name):
        read_detectors(tmp_path / "trained")


def test_a_detector_of_the_released_rate_learns_more_than_one_of_the_papers() -> None:
    from twinset.evaluation.blind_probes.detectors import detection_accuracy, train_detector

    drawn = np.random.default_rng(0).normal(0, 1, (900, 2, 8)).astype(np.float32)
    drawn[:, 1, 0] += 4
    rates = [train_detector(drawn[:800], drawn[800:], 10, 0, rate) for rate in (1e-2, 1e-6)]
    assert all(isinstance(one, Detector) for one in rates)
    assert detection_accuracy(rates[0](drawn)) > detection_accuracy(rates[1](drawn)) + 0.1
