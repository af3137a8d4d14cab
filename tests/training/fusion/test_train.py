"""Neighbours and negatives of a mixture: none of them matches too, what cannot be read is left out, steps are pure.

FIBER's RandAugment: a function of its numbers, of which each operation is reached.

A run of a fusion encoder: it resumes exactly, evaluation opens it, it learns.
"""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from safetensors import safe_open
from torch.nn import functional

from tests.evaluation.scorers.tiny_models import open_clip_config
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import damage
from tests.training.fusion.conftest import Settings
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.generators.neighbours.source import nearest
from twinset.training.clip.data import open_data
from twinset.training.examples.neighbours import ImageNeighbours, image_numbers
from twinset.training.examples.transforms import NUMBERS
from twinset.training.fusion import neighbours, randaugment
from twinset.training.fusion.models import open_start
from twinset.training.fusion.neighbours import FusionBatches, Part, labels_of, open_neighbours
from twinset.training.fusion.randaugment import CHANGES, RANDAUGMENT, randaugmented
from twinset.training.fusion.settings import FusionSettings
from twinset.training.fusion.train import Validation, train_fusion
from twinset.training.losses.mining import load_neighbours
from twinset.training.losses.names import ABSENT
from twinset.training.runs.loop import OnProgress


def test_negatives_of_a_mixture_match_neither_image_nor_text(
    settings: Settings, made_animals: MadeDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = (f"{made_animals.root}:arms", f"{made_animals.root}:more*2")
    chosen = settings(data=mixture, validation=())
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    labels = labels_of(examples, chosen)
    # 24 pairs of pictures of four captions; of `more` every image is there twice.
    assert len(examples) == 48 + 2 * 16 and labels[1].max() == 3
    broken = examples[5]
    damage(made_animals, broken, "image")
    with pytest.raises(BuildFailed, match=r"1 of 80 examples cannot be read.*Fetch these tars again"):
        open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    monkeypatch.setattr(neighbours, "MAX_BROKEN", 0.1)
    found = open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    again = open_neighbours(chosen, tmp_path / "out", start, examples, labels)
    assert (
        again.neighbours.left_out == found.neighbours.left_out == ((5, broken.where, found.neighbours.left_out[0][2]),)
    )
    assert 5 not in found.numbers and len(found.numbers) == 79 and np.array_equal(again.numbers, found.numbers)
    rows = np.arange(79)[:, None]
    places = found.neighbours.places[found.labels[0, rows[:, 0]]]  # of each example
    for kind in found.labels:
        assert (kind[places] != kind[rows])[places != ABSENT].all()
    batches = FusionBatches(chosen, examples, found, start.scorer.processor)
    parts = [part for batch in batches.stream(0, 3) for part in batch.parts]
    assert len(parts) == 6 and [batch.left_out for batch in batches.stream(0, 2)] == [
        ((broken.where, "image: other bytes than its dataset was built with"),),
        (),
    ]
    for part in parts:
        texts, images = np.array(part.texts), part.pixels["pixel_values"]
        assert (texts[part.negatives] != texts[part.rows][:, None]).all() and part.close.sum() == 2 * len(part.rows)
        assert all(
            part.texts[row] == examples_by_key(examples)[key] for row, key in zip(part.rows, part.keys, strict=True)
        )
        assert images.shape == (len(texts), 3, 32, 32)


def test_a_table_of_similar_images_gives_the_same_hard_negatives(settings: Settings, tmp_path: Path) -> None:
    chosen = settings(validation=())
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    labels = labels_of(examples, chosen)
    images, _ = image_numbers(examples)
    features = torch.cat([
        start.scorer.image_features(start.scorer.pixels([examples.open_image(examples[int(number)], "image")]))
        for number in np.unique(labels[0], return_index=True)[1]
    ])  # fmt: skip
    near = nearest(functional.normalize(features.detach(), dim=-1), chosen.nearest)[0].numpy().astype(np.int32)
    table = ImageNeighbours(labels[0], near, "digest", chosen.nearest)
    found = open_neighbours(chosen, tmp_path / "found", start, examples, labels)
    given = open_neighbours(chosen, tmp_path / "given", start, examples, labels, table)
    assert len(images) == len(near) and np.array_equal(given.neighbours.places, found.neighbours.places)
    assert given.neighbours.examples != found.neighbours.examples
    with pytest.raises(WrongUse, match="made of other examples"):
        open_neighbours(chosen, tmp_path / "found", start, examples, labels, table)


def examples_by_key(examples: Any) -> dict[str, str]:
    return {one.key: one.texts["text"] for one in (examples[number] for number in range(len(examples)))}


def same(one: Part, other: Part) -> bool:
    arrays = [(part.rows, part.negatives, part.close, *part.pixels.values()) for part in (one, other)]
    return (one.keys, one.texts) == (other.keys, other.texts) and all(map(np.array_equal, *arrays))


@pytest.mark.slow
def test_a_step_depends_on_seed_and_step_alone(settings: Settings, tmp_path: Path) -> None:
    def parts(chosen: FusionSettings, first: int) -> list[Part]:
        batches = FusionBatches(chosen, examples, found, start.scorer.processor)
        return [part for batch in batches.stream(first, 8) for part in batch.parts]

    chosen = settings("vilt", epochs=2)
    examples, start = open_data(chosen, "both").training, open_start(chosen)
    found = open_neighbours(chosen, tmp_path / "out", start, examples, labels_of(examples, chosen))
    straight = parts(chosen, 0)
    assert all(map(same, straight[10:], parts(chosen, 5)))
    assert all(map(same, straight, parts(chosen.model_copy(update={"workers": 2}), 0)))
    assert not same(straight[0], parts(chosen.model_copy(update={"seed": 1}), 0)[0])
    assert not same(straight[0], straight[12])  # another epoch: other order, crops and negatives


def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(40, 200, (60, 80, 3), np.uint8))


def numbers(mirror: float, *operations: float) -> Any:
    """The first try of a crop is all of the picture."""
    found = np.full(RANDAUGMENT, 0.5)
    found[:4] = 1.0, np.log(80 / 60 / 0.75) / np.log(16 / 9), 0.0, 0.0
    found[NUMBERS:] = mirror, *operations
    return found


def test_without_operations_it_is_the_crop_mirrored_and_resized() -> None:
    off = (0.0, 0.9, 0.0) * 2
    assert randaugmented(picture(), numbers(0.9, *off), None).tobytes() == picture().tobytes()
    assert randaugmented(picture(), numbers(0.1, *off), None).tobytes() == ImageOps.mirror(picture()).tobytes()
    assert randaugmented(picture(), numbers(0.9, *off), (32, 24)).size == (32, 24)


@pytest.mark.parametrize("name", CHANGES)
def test_each_operation_is_reached_and_keeps_the_size(name: str) -> None:
    which = ([*CHANGES].index(name) + 0.5) / len(CHANGES)
    found = [randaugmented(picture(), numbers(0.9, which, 0.1, sign, 0.0, 0.9, 0.0), None) for sign in (0.1, 0.9)]
    assert all(one.size == (80, 60) and one.mode == "RGB" for one in found)
    assert (found[0].tobytes() != picture().tobytes()) == (name != "Identity")
    signed = name.startswith(("Shear", "Translate", "Rotate"))
    assert (found[0].tobytes() != found[1].tobytes()) == signed
    if signed:
        assert (128, 128, 128) in {colour for _, colour in found[0].getcolors(10_000)}  # type: ignore[misc]


def test_levels_are_those_of_fiber() -> None:
    """Level 7 of 10: enhanced by 1.36, sheared by 0.21, shifted by 7 pixels, rotated by 21 degrees."""
    found = (randaugment.ENHANCED, randaugment.SHEARED, randaugment.SHIFTED, randaugment.ROTATED)
    assert found == pytest.approx((1.36, 0.21, 7, 21))


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
