"""Trains a fusion encoder on mined negatives (EqBen C). Neighbours are scored once, before the first step, by the
weights that the run begins with, and kept in its folder.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.training.clip.data import open_data
from twinset.training.clip.validation import FIGURES, TWINS, twin_figures
from twinset.training.examples.example_set import ExampleSet
from twinset.training.fusion.data import CROSS_MODAL, PASS, FusionBatch, MinedBatches, Part, Start, open_start, opened
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.fusion import CHANGES, FusionLoss, match_hard_negatives, rank_texts, score_pairs
from twinset.training.losses.names import fusion_form
from twinset.training.runs.processes import Process
from twinset.training.runs.steps import autocast, learning_rate, new_optimiser, stream_seed
from twinset.training.runs.trainer import Task

#: The loss of an objective, and the changes of pairs that it reads.
OBJECTIVES = {"match": (match_hard_negatives, CHANGES[:2]), "rank": (rank_texts, CHANGES[:1])}


class FusionTask(Task[FusionBatch]):
    """The task of a fusion encoder. Raises `WrongUse`: settings, model and data do not fit each other."""

    settings: FusionSettings
    best_by = "group"
    best_file = "model.safetensors"  # transformers and `evaluation` look for it
    figures = f"Percent. {FIGURES}"
    recipe = "FIBER's released recipe"

    def __init__(self, settings: FusionSettings, out: Path, process: Process) -> None:
        if process.world > 1:
            raise WrongUse("a fusion encoder trains in one process; start it without torchrun")
        self.settings, self.start = settings, open_start(settings)
        self.data = open_data(settings, "both", out)
        if self.data.validation is not None:
            self.data.validation.require(TWINS)
        self.batches: MinedBatches = MinedBatches(settings, self.start, self.data.training)
        self.steps = settings.epochs * self.batches.steps_per_epoch
        self.network = self.start.scorer.model
        faster = CROSS_MODAL[self.start.scorer.types[0]]
        self.optimiser = new_optimiser(self.network, settings, faster, settings.lr_times)
        self._objective, self._changes = OBJECTIVES[settings.objective]
        self._regulariser: FusionLoss | None = None
        if settings.regulariser is not None:
            self._regulariser = fusion_form(settings.regulariser).open(**settings.regulariser_options())
            self._changes = CHANGES

    def prepare(self, out: Path) -> None:
        self.batches.mine(out)  # before dropout sets in
        self.network.train()

    def model(self, out: Path) -> str:
        return f"{self.start.kind}:{out}"

    def what(self) -> str:
        settings, name = self.settings, f"{self.start.kind} from {Path(self.settings.model).name}"
        return f"A fusion encoder: {name}, objective {settings.losses}, {settings.negatives} mined negatives an example"

    def rate(self, step: int) -> float:
        return learning_rate(step, self.steps, self.settings.lr, int(self.settings.warmup * self.steps), "linear")

    def backward(self, batch: FusionBatch) -> tuple[Tensor, dict[str, float]]:
        """As `Task.backward`: means over the parts, whose gradients add up."""
        parts, total, logged = self.settings.accumulate, torch.zeros(()), Counter[str]()
        for number, part in enumerate(batch.parts):
            torch.manual_seed(stream_seed(self.settings.seed, "dropout", batch.step, number))
            loss, terms = self._loss(part)
            (loss / parts).backward()  # type: ignore[no-untyped-call]
            total += loss.detach().cpu() / parts
            logged.update({name: value / parts for name, value in terms.items()})
        return total, dict(logged)

    def _loss(self, part: Part) -> tuple[Tensor, dict[str, float]]:
        device, settings = self.start.scorer.device, self.settings
        pixels = {name: torch.from_numpy(value).to(device) for name, value in part.pixels.items()}
        rows, negatives = torch.from_numpy(part.rows), torch.from_numpy(part.negatives)
        with autocast(settings.precision, device):
            scores = score_pairs(self.start.read(pixels, part.texts), rows, negatives, self._changes)
        objective, logged = self._objective(scores)
        if self._regulariser is None:
            return objective, logged
        added, active = self._regulariser(scores, torch.from_numpy(part.close).to(device))
        terms = {"objective": float(objective.detach()), "regulariser": float(added.detach())}
        return objective + settings.regulariser_weight * added, {**terms, **logged, **active}

    def measure(self) -> dict[str, float] | None:
        """EqBen's text, image and group score, as means of groups: twins scored as `twinset eval run` does."""
        return None if self.data.validation is None else twin_scores(self.data.validation, self.start)


def twin_scores(examples: ExampleSet, start: Start) -> dict[str, float]:
    """Text, image and group score of a model on twins, in percent. Raises `BuildFailed`: an image cannot be read."""
    torch.manual_seed(0)  # ViLT reads patches in a random order
    scores, twins = list[Any](), [examples[number] for number in range(len(examples))]
    for first in range(0, len(twins), PASS):
        numbers = range(first, min(first + PASS, len(twins)))
        images = [[opened(examples, number, role) for number in numbers] for role in TWINS[::2]]
        texts = [[twins[number].texts[role] for number in numbers] for role in TWINS[1::2]]
        scores.append([[start.scorer.score(shown, read) for read in texts] for shown in images])
    return twin_figures(np.concatenate(scores, axis=2), [twin.group for twin in twins])
