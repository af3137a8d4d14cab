"""A Combiner's data: CIRR's training split where it lies, and triplets that become queries of one gallery.

Its loss is equation 1, its rate falls by epochs as in the released code, and the clipped norm is the true one. It
learns conditions, resumes to the same bytes, and is opened by evaluation as it was validated.
"""

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from torch.nn.functional import cross_entropy, normalize

from tests.evaluation.benchmarks.made_layouts import cirr
from tests.made_datasets import MadeDataset
from tests.made_samples import MINED_SUBSET, Planned
from tests.tiny_encoders import TEXT, open_clip_config
from tests.training.runs.contract import resumes_exactly, rows_of, trains_alike_in_two_processes
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Frame, MediaFile
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.features.store import default_cache
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.generators.triplets.source import Triplet
from twinset.models.encoders.contract import Running
from twinset.training.combiner.data import RankedTriplets, open_data
from twinset.training.combiner.network import contrast
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.train import CombinerTask, planned_steps
from twinset.training.losses.features import Features
from twinset.training.runs.processes import Process
from twinset.training.runs.trainer import train

RESNET = {"vision_cfg": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None}, "text_cfg": TEXT}
COLOURS = ("red", "green", "blue", "yellow", "white", "black")
GROUNDS = ("gray", "brown", "navy", "teal")
Settings = Callable[..., CombinerSettings]


def frame(ground: str, colour: str) -> Frame:
    square, name = Image.new("RGB", (32, 32), ground), f"{ground}-{colour}"
    ImageDraw.Draw(square).rectangle((8, 8, 24, 24), fill=colour)
    return Frame(name, np.asarray(square, np.uint8), -1.0, MediaFile(f"{name}.jpg", 1000, "0" * 64))


def recoloured() -> list[Planned]:
    """The ground of the reference stays, and the condition names the colour of the target: 4 x 6 x 5 triplets."""
    planned = []
    for ground, (before, after) in itertools.product(GROUNDS, itertools.permutations(COLOURS, 2)):
        key = sample_key("recoloured", ground, before, after)
        images = {"reference": f"{ground}-{before}", "target": f"{ground}-{after}", "distractor": ""}
        captions = {role: name.replace("-", " ") for role, name in images.items()}
        made = Triplet(
            key=key, group=key, split="train", condition=f"{after} square", reference=frame(ground, before),
            target=frame(ground, after), distractor=None, captions=captions, image_ids=images,
            provenance={"target": {"subject": "square"}}, scores={"concreteness": 4.9},
        )  # fmt: skip
        planned.append(Planned(made, identity_of(ground, before, after), key))
    return planned


def fill(made: MadeDataset) -> None:
    planned = recoloured()
    random.Random(0).shuffle(planned)
    made.add("recoloured", MINED_SUBSET, [planned[24:]])
    made.add("others", MINED_SUBSET, [planned[:24]])


@pytest.fixture
def made_recoloured(made: MadeDataset, built: Callable[..., MadeDataset]) -> MadeDataset:
    """120 triplets of 24 images in two subsets, ``recoloured`` of 96 and ``others`` of 24."""
    return made.take(built(fill))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TWINSET_CACHE", str(tmp_path / "cache"))
    config = str(open_clip_config(tmp_path / "model", embed_dim=32))

    def make(place: str, **changes: Any) -> CombinerSettings:
        given: dict[str, Any] = {
            "model": config, "weights": None, "data": (place,), "batch": 2, "epochs": 2, "projection": 12, "hidden": 20,
            "lr": 1e-3, "threads": 1,
        }  # fmt: skip
        return CombinerSettings.model_validate(given | changes)

    return make


def opened(settings: CombinerSettings) -> CombinerTask:
    return CombinerTask(settings, Path("run"), Process(0, 1, "cpu", ""))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """CIRR's training split, of three triplets."""
    cirr(tmp_path / "cirr", split="train", images="train")
    return tmp_path / "cirr"


def test_triplets_are_the_records_and_their_images(root: Path, settings: Settings) -> None:
    data = open_data(settings(f"cirr={root}"))
    records = json.loads((root / "captions/cap.rc2.train.json").read_text())
    for number, record in enumerate(records):
        example = data.training[number]
        assert (example.key, example.group) == (f"cirr-{record['pairid']}", f"cirr-set-{record['img_set']['id']}")
        assert example.texts == {"condition": record["caption"]}
        for role, name in (("reference", record["reference"]), ("target", record["target_hard"])):
            held = next((root / "img_raw").rglob(f"{name}.png")).read_bytes()
            assert data.training.read_image(example, role) == held
    assert len(data.training) == len(records) == 3
    (fact,) = data.facts()["data"]
    assert (fact["split"], fact["images"], fact["examples"], fact["left_out"]) == ("train", 4, 3, 0)


def test_missing_images_are_counted(root: Path, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (root / "img_raw/train/train-0-0-img0.png").unlink()
    data = open_data(settings(f"cirr={root}"))
    assert len(data.training) == 2 and data.facts()["data"][0]["left_out"] == 1
    assert "cap.rc2.train.json record 0: train-0-0-img0" in caplog.text


def test_queries_rank_all_images_but_their_reference(made_recoloured: MadeDataset, settings: Settings) -> None:
    data = open_data(settings(f"{made_recoloured.root}:others", validation=(f"{made_recoloured.root}:recoloured",)))
    assert isinstance(data.validation, RankedTriplets)
    queries = list(data.validation.examples())
    gallery = queries[0].gallery
    assert all(query.gallery is gallery for query in queries)
    assert len(queries) == 96 and len(gallery) == len(GROUNDS) * len(COLOURS)
    for query in queries:
        (target,), (reference,) = query.targets, query.excluded
        target_image, own_image = (gallery[place].read() for place in (target, reference))  # type: ignore[union-attr]
        assert query.image is not None and own_image == query.image.read() != target_image


@pytest.fixture
def data(made_recoloured: MadeDataset) -> dict[str, Any]:
    return {"place": f"{made_recoloured.root}:recoloured", "validation": (f"{made_recoloured.root}:others",)}


@pytest.mark.parametrize(("n", "temperature"), [(2, 0.01), (5, 0.1), (6, 1.0)])
def test_the_loss_is_equation_1_term_by_term(n: int, temperature: float) -> None:
    images, queries = normalize(torch.randn(2, n, 5, generator=torch.Generator().manual_seed(n)), dim=-1)
    loss, logged = contrast(Features(images, queries), torch.tensor(1 / temperature))
    logits, own = queries.double() @ images.double().T / temperature, torch.arange(n)
    assert float(loss) == pytest.approx(float(cross_entropy(logits, own)), rel=1e-4, abs=1e-5)
    assert logged["accuracy"] == pytest.approx(float((logits.argmax(1) == own).double().mean()))


def test_a_run_has_the_papers_steps_and_its_rate_falls_by_epochs_as_torch_has_it() -> None:
    settings = CombinerSettings(data=("x",))
    assert planned_steps(settings, 1_600_000 // settings.batch) == 28_000 and planned_steps(settings, 10) == 60
    task: Any = SimpleNamespace(settings=settings, steps=3000, batches=SimpleNamespace(steps_per_epoch=500))
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=6, eta_min=1e-3 * settings.lr)
    for step in range(0, 3000, 500):
        assert CombinerTask.rate(task, step) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)
        assert CombinerTask.rate(task, step) == CombinerTask.rate(task, step + 499)
        optimiser.step()
        schedule.step()


@pytest.mark.parametrize("frozen", ["image", "text"])
def test_a_frozen_tower_stays_as_it_is(data: dict[str, Any], settings: Settings, tmp_path: Path, frozen: str) -> None:
    resnet = str(open_clip_config(tmp_path, "resnet.json", embed_dim=32, **RESNET))
    task = opened(settings(**data, model=resnet, frozen=frozen))
    before = {name: value.clone() for name, value in task.network.state_dict().items()}
    task.backward(task.batches.at(0))
    weights = {name: value for name, value in task.network.named_parameters() if value.grad is not None}
    for value in weights.values():
        value.grad.mul_(1e6)
    task.update()
    after = task.network.state_dict()
    moved = {name for name, value in before.items() if not torch.equal(after[name], value)}
    towers = {"image" if name.startswith("clip.visual.") else "text" for name in moved if name.startswith("clip.")}
    assert towers == {"image", "text"} - {frozen} and any(name.startswith("combiner.") for name in moved)
    norm = torch.nn.utils.get_total_norm([value.grad for name, value in weights.items() if name.startswith("clip.")])
    assert float(norm) == pytest.approx(1, rel=1e-3)


def recall(model: str, settings: CombinerSettings) -> float:
    """recall@1 in percent of a model on the validation of a run, asked as evaluation asks."""
    running = Running(threads=1)
    scorer: Any = open_model(model, running)
    similarities = similarities_of(scorer, default_cache(), running)
    queries: Any = list(opened(settings).data.validation.examples())  # type: ignore[union-attr]
    similarities.prepare(queries)
    rows = [ranks(similarities.gallery(query), query.targets, query.excluded) for query in queries]
    return 100 * float(np.mean([row["higher"] + row["tied"] == 0 for row in rows]))


@pytest.mark.parametrize("frozen", ["none", pytest.param("both", marks=pytest.mark.slow)])
def test_evaluation_finds_the_recall(data: dict[str, Any], settings: Settings, tmp_path: Path, frozen: str) -> None:
    chosen = settings(**data, frozen=frozen, steps=4, batch=8, validate_every=2)
    done = train(CombinerTask, chosen, tmp_path / "run")
    figures = {row["step"]: row["validation"]["recall@1"] for row in rows_of(tmp_path / "run") if "validation" in row}
    assert recall(done["model"], chosen) == max(figures.values()) == figures[done["best_step"]]
    assert (tmp_path / "run/best_clip.safetensors").exists() is (frozen != "both")


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"frozen": "both"}, {"workers": 1}, {"accumulate": 2, "precision": "bfloat16"}])
def test_killed_runs_resume(data: dict[str, Any], settings: Settings, tmp_path: Path, changes: dict[str, Any]) -> None:
    more = {"batch": 8, "steps": 8, "checkpoint_every": 3, "validate_every": 4}
    resumes_exactly(CombinerTask, settings(**data, **more, **changes), tmp_path, (2, 5, 8))


@pytest.mark.slow
def test_a_combiner_learns_conditions(data: dict[str, Any], settings: Settings, tmp_path: Path) -> None:
    learning = {"frozen": "both", "batch": 48, "epochs": 70, "lr": 2e-3, "projection": 64, "hidden": 128}
    chosen = settings(**data, **learning, dropout=0.1, validate_every=1000)
    done = train(CombinerTask, chosen, tmp_path / "run")
    # What does not depend on the condition picks one of five targets of a reference.
    image_only = recall(f"image-only:{done['model'].split(':', 2)[2]}", chosen)
    assert done["validation"]["recall@1"] > max(55, image_only + 30)


@pytest.mark.parametrize(("frozen", "damaged"), [("both", "recoloured"), ("none", "others")])
def test_an_image_that_cannot_be_read_ends_a_run_and_is_named(
    data: dict[str, Any], made_recoloured: MadeDataset, settings: Settings, tmp_path: Path, frozen: str, damaged: str
) -> None:
    for tar in made_recoloured.root.glob(f"{damaged}/*/*.tar"):
        tar.write_bytes(tar.read_bytes().replace(b"\xff\xd8\xff", bytes(3)))
    with pytest.raises(BuildFailed, match=rf"{damaged}/.*\.tar.*other bytes.*then resume"):
        train(CombinerTask, settings(**data, frozen=frozen, steps=1), tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"frozen": "both"}, {"frozen": "image", "accumulate": 2}])
def test_two_processes(data: dict[str, Any], settings: Settings, tmp_path: Path, changes: dict[str, Any]) -> None:
    # Each process drops activations of its own: with dropout they are alike in distribution alone.
    more = {"batch": 24, "dropout": 0, "temperature": 0.1, "steps": 8, "seed": 1, **changes}
    chosen = settings(**data, **more)
    options = ("model", "projection", "hidden", "lr", "threads", *more)
    trains_alike_in_two_processes(CombinerTask, "combiner", chosen, options, tmp_path)
