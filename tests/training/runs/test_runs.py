"""The trainer, on a task of one layer: checkpoints, history, folder, and what ends a run.

What a run says of itself: panels of its curves, card and page.
"""

import json
import math
import re
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.runs.contract import Killed, killed_after, resumes_exactly, rows_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.training.clip.settings import ClipSettings
from twinset.training.examples.contracts import Read
from twinset.training.report.write import MOST_POINTS, panels, write_report
from twinset.training.runs.checkpoint import FILE
from twinset.training.runs.folder import claimed
from twinset.training.runs.settings import RunSettings
from twinset.training.runs.steps import learning_rate, new_optimiser
from twinset.training.runs.trainer import Task, train

STEPS = 10


class Data:
    """Nothing is read and written: what a task has of models and data."""

    def digests(self) -> dict[str, Any]:
        return {"data": "digest"}

    def facts(self) -> dict[str, Any]:
        return {"data": [], "validation": []}

    def write_config(self, out: Path) -> None: ...


class Toy(Task[Read]):
    """Learns a sum of two numbers, through dropout; validated by figures that a test chooses."""

    best_by, batches = "accuracy", property(lambda self: self)
    start = data = Data()
    steps_per_epoch, steps = 2, STEPS
    figures_of_epochs: tuple[float, ...] = (10, 30, 20, 30, 5)
    worst = -1  # the step whose loss is not finite

    def __init__(self, settings: RunSettings, *_: Any, **changes: Any) -> None:
        torch.manual_seed(0)
        self.__dict__ |= changes
        self.settings, self.broken = settings, dict[int, tuple[str, str]]()
        self.network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
        self.optimiser = new_optimiser(self.network, settings, ("2.",), 2.0)

    def stream(self, first: int, last: int) -> Generator[Read, None, None]:
        for step in range(first, last):
            if step == 1:
                self.broken[7] = ("here", "broken")
            yield Read(step, step // 2, (f"key-{step}",), left_out=(("here", "broken"),) if step == 1 else ())

    def model(self, out: Path) -> str:
        return f"toy:{out}"

    def rate(self, step: int) -> float:
        return learning_rate(step, self.steps, self.settings.lr, 2, "linear")

    def backward(self, batch: Read) -> tuple[Tensor, dict[str, float]]:
        inputs = torch.randn(4, 2, generator=torch.Generator().manual_seed(batch.step))
        loss = (self.network(inputs)[:, 0] - inputs.sum(1)).square().mean()
        loss = loss * math.nan if batch.step == self.worst else loss
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), {"text_accuracy": 0.25, "active_v2": 0.5}

    def measure(self) -> dict[str, float]:
        return {"accuracy": self.figures_of_epochs[int(self.optimiser.state_dict()["state"][0]["step"]) // 2 - 1]}


class ToySettings(RunSettings):
    def defaults(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def settings(**changes: Any) -> RunSettings:
    given: dict[str, Any] = {
        "model": "toy", "data": ("d",), "batch": 2, "epochs": 5, "lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8,
        "weight_decay": 0.1, "seed": 3, "threads": 1, "checkpoint_every": 3,
    }  # fmt: skip
    return ToySettings.model_validate(given | changes)


def run(chosen: RunSettings, out: Path, on_progress: Any = None, **changes: Any) -> dict[str, Any]:
    return train(partial(Toy, **changes), chosen, out, on_progress)


def test_a_run_that_is_killed_at_each_step_ends_with_the_same_bytes(tmp_path: Path) -> None:
    rows = resumes_exactly(Toy, settings(), tmp_path, range(1, STEPS + 1))
    assert [row["step"] for row in rows] == [*range(1, STEPS + 1)] and rows[1]["left_out"] == [["here", "broken"]]
    # Accuracies and active fractions are in percent, as validations are.
    assert {(row["text_accuracy"], row["active_v2"]) for row in rows} == {(25, 50)}
    result = json.loads((tmp_path / "killed/result.json").read_bytes())
    assert result["best"] == {"step": 4, "value": 30}  # the first of equal ones
    assert result["sha256"]["best.safetensors"] != result["sha256"]["last.safetensors"]


def test_best_weights_and_broken_examples_survive_on_a_machine_that_rounds_differently(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(settings(), tmp_path, killed_after(5), figures_of_epochs=(50, 60))
    with pytest.raises(WrongUse, match="former --threads, or accept it with --allow-mixed-runtimes"):
        run(settings(threads=2), tmp_path)
    toys: list[Toy] = []
    mixed = settings(threads=2, allow_mixed_runtimes=True)
    done = train(lambda *given: toys.append(Toy(*given)) or toys[0], mixed, tmp_path)
    assert (done["resumed_at"], done["best_step"]) == (3, 2) and toys[0].batches.broken == {7: ("here", "broken")}


def test_a_loss_that_is_not_finite_ends_the_run_before_it_changes_weights(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"step 5: the loss is nan .*first examples are key-4\."):
        run(settings(), tmp_path, worst=4)
    assert len(rows_of(tmp_path)) == 4
    assert run(settings(), tmp_path)["resumed_at"] == 3


def test_what_decides_the_weights_may_not_change_and_how_it_is_executed_may(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(settings(), tmp_path, killed_after(4))
    with pytest.raises(WrongUse, match=r"lr is 0\.1 there and 0\.2 here.*former ones.*another --out"):
        run(settings(lr=0.2), tmp_path)
    with pytest.raises(WrongUse, match='data is "digest" there and "changed" here'):
        run(settings(), tmp_path, digests=lambda: {"data": "changed"})
    assert run(settings(checkpoint_every=0, workers=1), tmp_path)["resumed_at"] == 3


def test_a_checkpoint_that_is_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(settings(), tmp_path, killed_after(4))
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-4])
    with pytest.raises(WrongUse, match=rf"{FILE}: not a checkpoint of this run .*remove it, and the run begins again"):
        run(settings(), tmp_path)


def test_processes_that_do_not_share_a_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.training.runs.trainer.gathered", lambda first: [first, 3])
    with pytest.raises(WrongUse, match="name an --out that all machines share"):
        run(settings(), tmp_path)


def test_a_folder_of_something_else_or_of_a_running_training_is_left_alone(tmp_path: Path) -> None:
    with (
        claimed(tmp_path / "run", settings(), {}, ""),  # a lock is a process's own
        ProcessPoolExecutor(1, get_context("fork")) as pool,
        pytest.raises(WrongUse, match="another process trains into it"),
    ):
        pool.submit(run, settings(), tmp_path / "run").result()
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(WrongUse, match="holds other files"):
        run(settings(), tmp_path)
    with pytest.raises(WrongUse, match="not a folder"):
        run(settings(), tmp_path / "thesis.tex")


def test_matrices_decay_and_norms_biases_and_the_scale_do_not() -> None:
    network = torch.nn.Module()
    network.layer, network.norm_of_rows = torch.nn.Linear(2, 2), torch.nn.LayerNorm((2, 2))
    network.logit_scale = torch.nn.Parameter(torch.ones(()))
    groups = new_optimiser(network, settings(), ("logit",), 5.0).param_groups
    names = {id(value): name for name, value in network.named_parameters()}
    held = {names[id(value)]: (group["weight_decay"], group["times"]) for group in groups for value in group["params"]}
    assert held == {
        "layer.weight": (0.1, 1), "layer.bias": (0, 1), "logit_scale": (0, 5),
        "norm_of_rows.weight": (0, 1), "norm_of_rows.bias": (0, 1),
    }  # fmt: skip


def test_the_rate_rises_linearly_and_falls_to_nothing() -> None:
    cosine = [learning_rate(step, 150, 1e-3, 50) for step in range(150)]
    assert cosine[0] == pytest.approx(1e-3 / 50) and cosine[49] == cosine[50] == pytest.approx(1e-3)
    assert cosine[100] == pytest.approx(5e-4) and cosine[149] < 1e-6
    assert learning_rate(9, 10, 1e-3, 50) == pytest.approx(1e-3 / 5)  # shorter than its warm-up


PLACES = ("out/<b>twins:arms", "s3://bucket/made*2", "/data")  # a dataset's own place is absolute
CHOSEN = ClipSettings(data=PLACES, model="/home/ann lee/models/tiny.json", weights=None, lr=0.5)
ABOUT = {
    "what": f"A dual encoder: {CHOSEN.model}", "model": "open_clip:OUT", "best_by": "accuracy", "figures": "Percent.",
    "recipe": "BiVLC's", "published": CHOSEN.defaults(), "command": "run",
}  # fmt: skip
DATA = {
    "data": [
        {"dataset": "/home/ann lee/out/<b>twins", "subset": "arms", "split": None, "digest": "d" * 64,
         "examples": 1200, "shards": [{"tar": "arms/test/00000.tar", "samples": 600, "sha256": "a" * 64}]}
    ],
    "validation": [],
}  # fmt: skip
RESULT = {"identity": "i", "runtime": "r", "steps": 3, "sha256": {"last.safetensors": "e" * 64}}


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"step": n + 1, "epoch": 1, "loss": 2.0 - n / count, "lr": 1e-3, **more} for n in range(count)]


def test_panels_hold_the_curves_that_were_logged_with_chance_and_no_more() -> None:
    history = rows(4, active_v2=0.5, chance=1.5, image_accuracy=2.5)
    history[3]["validation"] = {"accuracy": 50.0, "chance": 1.5}
    drawn = {panel.title: panel for panel in panels(history)}
    validated = "validation: accuracy (percent)"
    assert [*drawn] == ["loss", "accuracy (percent)", "hinges above the margin (percent)", "learning rate", validated]
    assert drawn["loss"].x.tolist() == [1, 2, 3, 4] and [*drawn["accuracy (percent)"].y] == ["image_accuracy", "chance"]
    assert drawn[validated].x.tolist() == [4] and [*drawn[validated].y] == ["accuracy", "chance"]
    assert MOST_POINTS / 2 < len(panels(rows(28_000))[0].x) <= MOST_POINTS


def test_card_and_page_lead_back_to_the_shards_and_name_no_folder_of_a_machine(tmp_path: Path) -> None:
    history = rows(3, left_out=[[f"{DATA['data'][0]['dataset']}/arms/00000.tar: key|1", "its tar is <i>cut</i> short"]])
    best = {"step": 2, "value": 61.803, "sha256": "b" * 64}
    write_report(tmp_path, CHOSEN, DATA, {**RESULT, "best": best}, history, ABOUT)
    card, page, data = ((tmp_path / name).read_text() for name in ("README.md", "report.html", "data.json"))
    assert "| best | step 2, validation accuracy 61.80 % |" in card and "1 examples could not be read" in card
    assert "| 1,200 | 1 | " + "d" * 64 in card and "A dual encoder: tiny.json." in card and "s3://bucket/made" in card
    assert json.loads(data)["data"] == [{**DATA["data"][0], "dataset": "<b>twins"}]
    for text in (card, page, data):
        assert "ann lee" not in text and "home/" not in text and not re.search(r"(?<![\w<])/data", text)
    assert "<b>twins" not in page and "&lt;b&gt;twins" in page and "<i>cut" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page), "the page needs no other file"
    changed = re.findall(r'<td class="changed">(\w+)</td>', page)
    assert "lr" in changed and "data" not in changed and "batch" not in changed
