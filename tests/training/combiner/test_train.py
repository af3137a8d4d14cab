"""The loss is equation 1, the rate falls by epochs as in the released code, and the clipped norm is the true one.

A Combiner learns conditions, resumes to the same bytes, and is opened by evaluation as it was validated.
"""

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.nn.functional import normalize

from tests.evaluation.scorers.tiny_models import TEXT, open_clip_config
from tests.made_datasets import MadeDataset
from tests.training.combiner.conftest import Settings
from tests.training.runs.contract import resumes_exactly, rows_of
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.features.score_table import ranks
from twinset.evaluation.features.store import default_cache
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Running
from twinset.training.combiner.network import contrast
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.train import CombinerTask, planned_steps, train_combiner
from twinset.training.examples.ordering import order
from twinset.training.losses.features import Features
from twinset.training.runs.processes import Process

ALONE = Process(0, 1, "cpu", "")
CHECKOUT = Path(__file__).parents[3]
RESNET = {"vision_cfg": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None}, "text_cfg": TEXT}


@pytest.fixture
def data(made_recoloured: MadeDataset) -> dict[str, Any]:
    """What is trained on, and what is validated with."""
    subsets = (f"{made_recoloured.root}:{subset}" for subset in ("recoloured", "others"))
    return dict(zip(("place", "validation"), ((next(subsets)), (next(subsets),)), strict=True))


@given(n=st.integers(2, 6), seed=st.integers(0, 99), temperature=st.sampled_from([0.01, 0.1, 1.0]))
def test_the_loss_is_equation_1_term_by_term(n: int, seed: int, temperature: float) -> None:
    images, queries = normalize(torch.randn(2, n, 5, generator=torch.Generator().manual_seed(seed)), dim=-1)
    loss, logged = contrast(Features(images, queries), torch.tensor(1 / temperature))
    total, right = 0.0, 0
    for i in range(n):
        scores = [float(queries[i].double() @ images[j].double()) / temperature for j in range(n)]
        total -= scores[i] - max(scores) - math.log(sum(math.exp(score - max(scores)) for score in scores))
        right += scores[i] == max(scores)
    assert float(loss) == pytest.approx(total / n, rel=1e-4, abs=1e-5)
    assert logged["accuracy"] == pytest.approx(right / n)


def test_a_run_has_the_papers_steps_and_its_rate_falls_by_epochs_as_torch_has_it() -> None:
    settings = CombinerSettings(data=("x",))
    cc3m = 1_600_000 // settings.batch
    assert planned_steps(settings, cc3m) == 28_000 and planned_steps(settings, 10) == 60
    assert planned_steps(CombinerSettings(data=("x",), steps=7, epochs=9), 10) == 7
    task: Any = SimpleNamespace(settings=settings, steps=3000, batches=SimpleNamespace(steps_per_epoch=500))
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=6, eta_min=1e-3 * settings.lr)
    for step in range(0, 3000, 500):
        assert CombinerTask.rate(task, step) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)
        assert CombinerTask.rate(task, step) == CombinerTask.rate(task, step + 499)
        optimiser.step()
        schedule.step()


def test_the_encoder_moves_by_the_clipped_norm_and_the_combiner_freely(
    data: dict[str, Any], settings: Settings
) -> None:
    task = CombinerTask(settings(**data), ALONE)
    task.backward(task.batches.at(0))
    for value in task.network.parameters():
        value.grad = torch.ones_like(value)
    task.update()
    norms = [torch.nn.utils.get_total_norm([v.grad for v in part.parameters() if v.grad is not None])
             for part in (task.network.clip, task.network.combiner)]  # fmt: skip
    size = sum(value.numel() for value in task.network.combiner.parameters())
    assert float(norms[0]) == pytest.approx(1, rel=1e-3) and float(norms[1]) == pytest.approx(math.sqrt(size))


@pytest.mark.parametrize("frozen", ["image", "text"])
def test_a_frozen_tower_stays_as_it_is_and_the_other_trains(
    data: dict[str, Any], settings: Settings, tmp_path: Path, frozen: str
) -> None:
    resnet = str(open_clip_config(tmp_path, "resnet.json", embed_dim=32, **RESNET))
    task = CombinerTask(settings(**data, model=resnet, frozen=frozen), ALONE)
    before = {name: value.clone() for name, value in task.network.state_dict().items()}
    task.backward(task.batches.at(0))
    task.update()
    after = task.network.state_dict()
    moved = {name for name, value in before.items() if not torch.equal(after[name], value)}
    towers = {"image" if name.startswith("clip.visual.") else "text" for name in moved if name.startswith("clip.")}
    assert towers == {"image", "text"} - {frozen} and any(name.startswith("combiner.") for name in moved)
    with pytest.raises(WrongUse, match="normalises over a batch"):
        CombinerTask(settings(**data, model=resnet, accumulate=2), ALONE)


def recall(model: str, settings: CombinerSettings) -> float:
    """recall@1 in percent of a model on the validation of a run, asked as evaluation asks."""
    running = Running(threads=1)
    scorer: Any = open_model(model, running)
    similarities = similarities_of(scorer, default_cache(), running)
    queries: Any = list(CombinerTask(settings, ALONE).data.validation.examples())  # type: ignore[union-attr]
    similarities.prepare(queries)
    rows = [ranks(similarities.gallery(query), query.targets, query.excluded) for query in queries]
    return 100 * float(np.mean([row["higher"] + row["tied"] == 0 for row in rows]))


@pytest.mark.parametrize("frozen", ["none", "image", "both"])
def test_evaluation_opens_what_was_trained_and_finds_the_same_recall(
    data: dict[str, Any], settings: Settings, tmp_path: Path, frozen: str
) -> None:
    chosen = settings(**data, frozen=frozen, steps=4, batch=8, validate_every=2)
    done = train_combiner(chosen, tmp_path / "run")
    figures = {row["step"]: row["validation"]["recall@1"] for row in rows_of(tmp_path / "run") if "validation" in row}
    assert recall(done["model"], chosen) == max(figures.values()) == figures[done["best_step"]]
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert ("best_clip.safetensors" in names) is (frozen != "both") and done["model"].startswith("combiner:")
    assert "recall@1" in (tmp_path / "run/report.html").read_text()


def test_the_command_says_which_model_evaluation_opens(
    data: dict[str, Any], settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings(**data)
    command = ["train", "combiner", f"--data={chosen.data[0]}", "--model", chosen.model, "--weights=random", "--steps=2"]
    command += ["--frozen=both", "--batch=8", "--projection=12", "--hidden=20", "--threads=1", f"--out={tmp_path / 'run'}"]
    assert main([*command, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["best_step"] == done["steps"] == 2 and open_model(done["model"], Running(threads=1))
    assert main([*command, "--dropout", "1"]) == 2 and "dropout: Input should be less than 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"frozen": "both"}, {"workers": 1}, {"accumulate": 2, "precision": "bfloat16"}])
def test_a_killed_run_resumes_to_the_same_bytes(
    data: dict[str, Any], settings: Settings, tmp_path: Path, changes: dict[str, Any]
) -> None:
    more = {"batch": 8, "steps": 8, "checkpoint_every": 3, "validate_every": 4}
    resumes_exactly(train_combiner, settings(**data, **more, **changes), tmp_path, (2, 5, 8))


def test_a_combiner_learns_conditions(data: dict[str, Any], settings: Settings, tmp_path: Path) -> None:
    learning = {"frozen": "both", "batch": 48, "epochs": 35, "lr": 2e-3, "projection": 64, "hidden": 128}
    chosen = settings(**data, **learning, dropout=0.1, validate_every=1000)
    done = train_combiner(chosen, tmp_path / "run", report=False)
    # What does not depend on the condition picks one of five targets of a reference.
    image_only = recall(f"image-only:{done['model'].split(':', 2)[2]}", chosen)
    assert done["validation"]["recall@1"] > max(55, image_only + 30)


def test_features_of_a_frozen_encoder_are_its_own_in_the_order_of_the_epoch(
    data: dict[str, Any], settings: Settings
) -> None:
    chosen = settings(**data, frozen="both", batch=64)
    task, *parts = (CombinerTask(chosen, Process(rank, world, "cpu", "")) for rank, world in ((0, 1), (0, 2), (1, 2)))
    encoder: Any = open_model(f"random:{chosen.model}", Running(threads=1))
    examples = task.data.training
    for step in (0, 4):
        read = [examples[number] for number in order(192, 0, step // 3)[step % 3 * 64 :][:64].tolist()]
        batch = task.batches.at(step)
        assert batch.keys == tuple(example.key for example in read) and batch.epoch == step // 3
        shown = encoder.image_features([encoder.prepare(examples.open_image(one, "target")) for one in read])
        assert np.allclose(batch.images["target"].numpy(), shown, atol=1e-6)
        texts = encoder.text_features([example.texts["condition"] for example in read])
        assert np.allclose(batch.texts["condition"].numpy(), texts, atol=1e-6)
        halves = [part.batches.at(step).images["target"] for part in parts]
        assert torch.equal(torch.cat(halves), batch.images["target"])


@pytest.mark.parametrize(("frozen", "damaged"), [("both", "recoloured"), ("none", "recoloured"), ("none", "others")])
def test_an_image_that_cannot_be_read_ends_a_run_and_is_named(
    data: dict[str, Any], made_recoloured: MadeDataset, settings: Settings, tmp_path: Path, frozen: str, damaged: str
) -> None:
    for tar in made_recoloured.root.glob(f"{damaged}/*/*.tar"):
        tar.write_bytes(tar.read_bytes().replace(b"\xff\xd8\xff", bytes(3)))
    with pytest.raises(BuildFailed, match=rf"{damaged}/.*\.tar.*other bytes.*then resume"):
        train_combiner(settings(**data, frozen=frozen, steps=1), tmp_path / "run", report=False)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"frozen": "both"}, {"frozen": "image", "accumulate": 2}, {"frozen": "none"}])
def test_two_processes_train_as_one_does(
    data: dict[str, Any], settings: Settings, tmp_path: Path, changes: dict[str, Any]
) -> None:
    # Each process drops activations of its own: with dropout they are alike in distribution alone.
    more = {"batch": 40, "dropout": 0, "temperature": 0.1, "steps": 8, "seed": 1, **changes}
    chosen = settings(**data, **more)
    names = ("model", "projection", "hidden", "lr", "threads", *more)
    options = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in names]
    options += ["--weights=random", f"--data={chosen.data[0]}", f"--validation={chosen.validation[0]}"]
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = (*torchrun, "-m", "twinset.cli.main", "train", "combiner", *options, f"--out={tmp_path / 'two'}")
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("\nsteps: 8\n") == 1, done.stderr
    train_combiner(chosen.model_copy(update={"accumulate": 1}), tmp_path / "one", report=False)
    one, two = (rows_of(tmp_path / run) for run in ("one", "two"))
    for name in ("loss", "gradient_norm", "accuracy"):  # sums of other orders
        assert [row[name] for row in two] == pytest.approx([row[name] for row in one], rel=1e-3)
    assert two[-1]["validation"] == pytest.approx(one[-1]["validation"], abs=5)
    for part in ("combiner",) if changes["frozen"] == "both" else ("combiner", "clip"):
        mine, its = (load_file(tmp_path / run / f"last_{part}.safetensors") for run in ("one", "two"))
        for name, value in mine.items():
            # The bias of keys has no gradient but what rounding leaves, which AdamW divides by its own size.
            if not name.endswith("in_proj_bias"):
                torch.testing.assert_close(its[name], value, rtol=1e-3, atol=1e-3, msg=f"{part} {name}")
