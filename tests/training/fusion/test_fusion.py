"""Neighbours and negatives of a mixture: none of them matches too. A run resumes exactly, and evaluation opens it."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.made_datasets import MadeDataset
from tests.made_samples import VIDEO_SUBSET, Planned
from tests.tiny_encoders import save_transformers
from tests.training.runs.contract import Killed, killed_after, resumes_exactly
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile
from twinset.training.clip.data import open_data
from twinset.training.fusion.data import FILE, MinedBatches, open_start
from twinset.training.fusion.settings import FusionSettings
from twinset.training.fusion.train import FusionTask, twin_scores
from twinset.training.losses.names import ABSENT
from twinset.training.runs.processes import Process
from twinset.training.runs.trainer import train

Settings = Callable[..., FusionSettings]
TINTS = {"red": (220, 40, 30), "blue": (30, 60, 220)}


def frame(words: tuple[str, str], name: str, shade: int) -> Frame:
    """A dog is a bar at the top, a cat one on the left; the shade tells pictures of one caption apart."""
    picture = Image.new("RGB", (32, 32), (shade, shade, shade))
    box = (0, 0, 31, 15) if words[1] == "dog" else (0, 0, 15, 31)
    ImageDraw.Draw(picture).rectangle(box, fill=TINTS[words[0]])
    return Frame(name, np.asarray(picture, np.uint8), -1.0, MediaFile(f"{name}.png", 1000, "0" * 64))


def animals(subset: str, shade: int) -> Iterator[Planned]:
    words, group = [*itertools.product(TINTS, ("cat", "dog"))], f"{subset}-{shade}"
    for first, second in itertools.combinations(words, 2):
        if sum(map(str.__ne__, first, second)) == 1:
            key = sample_key(subset, str(shade), *first, *second)
            made = Pair(
                key=key, group=group, split="train", change="word",
                captions0=(f"a {' '.join(first)}",), captions1=(f"a {' '.join(second)}",),
                image0=frame(first, f"{key}-0", shade), image1=frame(second, f"{key}-1", shade),
                provenance={"object": "animal", "frame0": 0},
            )  # fmt: skip
            yield Planned(made, identity_of(subset, shade, *first, *second), group)


def fill(made: MadeDataset) -> None:
    steps = {"arms": range(60, 180, 20), "more": range(65, 105, 20), "validation": range(70, 130, 20)}
    for subset, shades in steps.items():
        made.add(subset, VIDEO_SUBSET, [[pair for shade in shades for pair in animals(subset, shade)]])


@pytest.fixture
def made_animals(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """Subsets ``arms`` and ``more`` of 24 and 8 pairs to train on, and ``validation`` of 12."""
    return made.take(built(fill))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("fusion-models")
    return lambda kind: folder / kind if (folder / kind).exists() else save_transformers(folder / kind, kind)


@pytest.fixture
def settings(made_animals: MadeDataset, tiny: Callable[[str], Path]) -> Settings:
    """Settings of a run of 6 steps of 8 examples, one epoch, validated at its end."""

    def make(kind: str = "blip-itm", **changes: Any) -> FusionSettings:
        given: dict[str, Any] = {
            "model": f"{kind}:{tiny(kind.removesuffix('-itm'))}", "data": (f"{made_animals.root}:arms",),
            "validation": (f"{made_animals.root}:validation",), "batch": 8, "accumulate": 2, "epochs": 1,
            "nearest": 6, "negatives": 4, "hard": 2, "threads": 1, "checkpoint_every": 2, "lr": 1e-3,
        }  # fmt: skip
        return FusionSettings.model_validate(given | changes)

    return make


def test_negatives_match_no_image_or_text(settings: Settings, made_animals: MadeDataset, tmp_path: Path) -> None:
    mixture = (f"{made_animals.root}:arms", f"{made_animals.root}:more")
    chosen = settings(data=mixture, validation=())
    examples = open_data(chosen, "both", tmp_path / "out").training
    batches = MinedBatches(chosen, open_start(chosen), examples)
    labels, mined = batches.labels, batches.mine(tmp_path)
    # 24 and 8 pairs, whose pictures share four captions, and of one shade each picture with two pairs.
    assert len(examples) == 48 + 16 and labels[0].max() == 31 and labels[1].max() == 3
    rows = np.arange(64)[:, None]
    places = mined[labels[0]]  # of each example
    for kind in labels:
        assert (kind[places] != kind[rows])[places != ABSENT].all()
    keys = {examples[number].key: examples[number].texts["text"] for number in range(64)}
    for batch in batches.stream(0, 3):
        parts = [*batch.parts]
        texts = [part.texts[row] for part in parts for row in part.rows]
        assert texts == [keys[key] for key in batch.keys] and len(parts) == 2
        for part in parts:
            own, words = np.array(part.texts)[part.rows][:, None], np.array(part.texts)
            assert (words[part.negatives] != own).all() and part.close.sum() == 2 * len(part.rows)
            assert part.pixels["pixel_values"].shape == (len(words), 3, 32, 32)
    place = examples[5].images["image"]
    with (made_animals.root / place.tar).open("r+b") as stream:
        stream.seek(place.offset)
        stream.write(bytes(place.size))
    with pytest.raises(BuildFailed, match=r"other bytes than its dataset was built with\. Fetch this tar again"):
        [[*batch.parts] for batch in batches.stream(0, 10)]


def test_neighbours_are_scored_without_dropout(settings: Settings, tmp_path: Path) -> None:
    task, modes = FusionTask(settings(), tmp_path, Process(0, 1, "cpu", "")), list[bool]()
    task.network.vision_model.register_forward_hook(lambda module, *_: modes.append(module.training))
    task.prepare(tmp_path)
    assert modes and not any(modes) and task.network.training


RELEASED = {"v1": "none", "v2": "all", "form": "released"}


def group_score(model: str, settings: FusionSettings, out: Path) -> float:
    """Of a model as evaluation opens it, on the validation data of a run."""
    validation = open_data(settings, "both", out).validation
    assert validation is not None
    return twin_scores(validation, open_start(settings.model_copy(update={"model": model})))["group"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("blip-itm", {"regulariser": "eqsim", "margin": 0, "image_size": 48}),
        ("vilt", {"objective": "rank", "workers": 1, "image_size": 48}),
        ("flava", RELEASED | {"regulariser": "eqsim", "precision": "bfloat16", "transform": "evaluation"}),
    ],
)
def test_a_stopped_run_resumes_exactly(settings: Settings, tmp_path: Path, kind: str, changes: dict[str, Any]) -> None:
    chosen, out = settings(kind, **changes), tmp_path / "killed"
    with pytest.raises(Killed):
        train(FusionTask, chosen, out, killed_after(1))
    scored = (out / FILE).stat().st_mtime_ns
    rows = resumes_exactly(FusionTask, chosen, tmp_path, (1, 3))
    assert (out / FILE).stat().st_mtime_ns == scored, "neighbours were scored a second time"
    assert group_score(f"{kind}:{out}", chosen, out) == rows[-1]["validation"]["group"]
    # Of 6 steps floor(0.6) = 0 warm up, and the rate falls by a sixth with each.
    assert [row["lr"] for row in rows] == pytest.approx([1e-3 * left / 6 for left in range(6, 0, -1)])
    if "regulariser" in changes:
        assert rows[-1]["loss"] == pytest.approx(rows[-1]["objective"] + 0.5 * rows[-1]["regulariser"])
    if kind == "blip-itm":
        held = json.loads((out / "config.json").read_bytes())["vision_config"]["image_size"]
        size = json.loads((out / "preprocessor_config.json").read_bytes())["size"]
        assert held == 48 and size == {"height": 48, "width": 48}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("flava", {"image_size": 48}, "reads images of one size; name blip-itm: or vilt:, or leave image_size out"),
        ("blip-itm", {"image_size": 50}, "image_size: 50 pixels are no multiple of the patches' 16"),
        # 48 examples with 12 of each caption: 36 of another one.
        ("blip-itm", {"negatives": 37}, r"48 examples, of which 3[0-6] or more differ.*smaller --batch"),
    ],
)
def test_what_is_refused(settings: Settings, tmp_path: Path, kind: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        train(FusionTask, settings(kind, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
