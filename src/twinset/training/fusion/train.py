"""Trains a fusion encoder on mined negatives, and resumes a run that was stopped, as `training.clip.train` does.

Neighbours are scored once, before the first step, by the weights that the run begins with, and kept in its folder.
"""

import contextlib
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.clip.data import RunData, open_data
from twinset.training.clip.steps import autocast, listed, new_optimiser, stream_seed
from twinset.training.clip.validation import TWINS, evaluating, mean_of_groups, twin_outcomes
from twinset.training.examples.example_set import TAR_INDEX, ExampleSet
from twinset.training.fusion.models import PASS, PUBLISHED, Start, open_start
from twinset.training.fusion.neighbours import FusionBatch, FusionBatches, Mined, Part, labels_of, open_neighbours
from twinset.training.fusion.settings import JOINT, FusionSettings
from twinset.training.losses.fusion import (
    CHANGES,
    FusionLoss,
    contrast_negatives,
    match_hard_negatives,
    rank_texts,
    score_pairs,
)
from twinset.training.losses.objectives import open_fusion_loss
from twinset.training.report.write import About
from twinset.training.runs.identity import History, check_folder, claim, run_identity
from twinset.training.runs.loop import Loop, OnProgress, Trained, finished, trained
from twinset.training.runs.processes import Process, joined


def learning_rate(step: int, steps: int, settings: FusionSettings) -> float:
    """The learning rate of step 0, 1, …, steps - 1.

    With a warm-up of W = ⌊warmup · steps⌋ steps it is lr · (step + 1) / W, then lr · (steps - step) / (steps - W).
    """
    warmup = int(settings.warmup * steps)
    if step < warmup:
        return settings.lr * (step + 1) / warmup
    return settings.lr * (steps - step) / (steps - warmup)


class Stepper:
    """Takes the steps of a run. All that is random in one is a function of the seed and the step."""

    def __init__(self, start: Start, optimiser: torch.optim.Optimizer, settings: FusionSettings) -> None:
        self.start, self.optimiser, self.settings = start, optimiser, settings
        self._objective, self._changes = {
            "match": (match_hard_negatives, CHANGES[:2]),
            "rank": (rank_texts, CHANGES[:1]),
            JOINT: (match_hard_negatives, CHANGES[:2]),
        }[settings.objective]
        self._regulariser: FusionLoss | None = None
        if settings.regulariser is not None:
            self._regulariser = open_fusion_loss(settings.regulariser, **settings.regulariser_options())
            self._changes = CHANGES

    def take(self, batch: FusionBatch, steps: int) -> dict[str, float]:
        """Train on a batch; returns what is logged: means over its parts.

        Args:
            steps: of the whole run.

        Raises:
            BuildFailed: loss or gradient is not finite; weights stay as they were.
        """
        settings, keys, logged = self.settings, list[str](), Counter[str]()
        rate = learning_rate(batch.step, steps, settings)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["times"]
        self.optimiser.zero_grad(set_to_none=True)
        for number, part in enumerate(batch.parts):
            torch.manual_seed(stream_seed(settings.seed, "dropout", batch.step, number))
            loss, found = self._loss(part)
            (loss / settings.accumulate).backward()  # type: ignore[no-untyped-call]
            logged.update({name: value / settings.accumulate for name, value in found.items()})
            keys += part.keys
        parameters = self.start.scorer.model.parameters()
        norm = torch.nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None])
        if not np.isfinite([logged["loss"], float(norm)]).all():
            raise BuildFailed(
                f"step {batch.step + 1}: the loss is {logged['loss']} and the norm of its gradient {float(norm)}; the "
                f"examples are {listed(keys)}. Train again into a new --out with a lower --lr"
            )
        self.optimiser.step()
        return {"lr": rate, "gradient_norm": float(norm), **logged}

    def _loss(self, part: Part) -> tuple[Tensor, dict[str, float]]:
        scorer = self.start.scorer
        pixels = {name: torch.from_numpy(value).to(scorer.device) for name, value in part.pixels.items()}
        rows, negatives = torch.from_numpy(part.rows), torch.from_numpy(part.negatives)
        with autocast(self.settings.precision, scorer.device):
            shown = self.start.read(pixels, part.texts)
            scores = score_pairs(shown.score, rows, negatives, self._changes)
            features = shown.features() if self.settings.objective == JOINT else None
        loss, logged = self._objective(scores)
        if features is not None:
            contrast, found = contrast_negatives(*features, rows, negatives)
            loss, logged = loss + contrast, logged | found | {"match": float(loss.detach())}
        if self._regulariser is None:
            return loss, {"loss": float(loss.detach()), **logged}
        added, active = self._regulariser(scores, torch.from_numpy(part.close).to(scorer.device))
        whole = loss + self.settings.regulariser_weight * added
        terms = {"loss": float(whole.detach()), "objective": float(loss.detach()), "regulariser": float(added.detach())}
        return whole, terms | logged | active


class Validation:
    """Twins, scored as `twinset eval run` scores them. Raises `WrongUse`: some of the examples are no twins."""

    def __init__(self, examples: ExampleSet, start: Start) -> None:
        examples.require(TWINS)
        self._examples, self._scorer = examples, start.scorer

    def measure(self) -> dict[str, float]:
        """EqBen's text, image and group score of the weights as they are now, in percent, as means of groups. Raises
        `BuildFailed`: an image cannot be read.
        """
        torch.manual_seed(0)  # ViLT reads patches in a random order
        scores, groups = list[list[list[np.ndarray[tuple[int], np.dtype[np.float32]]]]](), list[str]()
        with evaluating(self._scorer.model):
            for first in range(0, len(self._examples), PASS):
                read = [self._examples[at] for at in range(first, min(first + PASS, len(self._examples)))]
                try:
                    pictures = [[self._examples.open_image(one, role) for one in read] for role in TWINS[::2]]
                except BrokenTar as error:
                    raise BuildFailed(f"validation: {error}; put it back, then resume") from error
                texts = [[one.texts[role] for one in read] for role in TWINS[1::2]]
                scores.append([[self._scorer.score(shown, said) for said in texts] for shown in pictures])
                groups += [one.group for one in read]
        whole = [[np.concatenate([one[i][j] for one in scores]) for j in (0, 1)] for i in (0, 1)]
        return {name: mean_of_groups(flags, groups) for name, flags in twin_outcomes(whole).items()}


def train_fusion(
    settings: FusionSettings, out: Path, on_progress: OnProgress | None = None, report: bool = True
) -> Trained:
    """Train a fusion encoder, or resume a run that was stopped: as `training.clip.train.train_clip`, in one process."""
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        if process.world > 1:
            raise WrongUse("a fusion encoder trains in one process; start it without torchrun")
        check_folder(out)
        start, index = open_start(settings), out.absolute().parent / TAR_INDEX
        data = open_data(settings, "both", index, settings.neighbours, settings.nearest)
        validation = None if data.validation is None else Validation(data.validation, start)
        labels = labels_of(data.training, settings)
        identity = run_identity(settings, start.identity(), data.digests())
        history = stack.enter_context(History(out))
        claim(out, settings, identity, process.runtime)
        if (done := finished(out, digest(identity), history)) is not None:
            return trained(f"{start.kind}:{out}", out, done, history, done["steps"])
        mined = open_neighbours(settings, out, start, data.training, labels, data.neighbours)
        run = Run(settings, out, start, data, mined, validation, process, digest(identity))
        result, resumed_at = run.run(history, data.facts(), _about(settings), on_progress, report)
        return trained(f"{start.kind}:{out}", out, result, history, resumed_at)


class Run(Loop[FusionBatch]):
    """The run of a fusion encoder; arguments as those of `Loop`, and the neighbours of its examples."""

    published = PUBLISHED

    def __init__(
        self,
        settings: FusionSettings,
        out: Path,
        start: Start,
        data: RunData,
        mined: Mined,
        validation: Validation | None,
        process: Process,
        identity: str,
    ) -> None:
        self.settings, self._start, self._validation = settings, start, validation
        self.batches = FusionBatches(settings, data.training, mined, start.scorer.processor)
        network, each = start.scorer.model.train(), self.batches.steps_per_epoch
        optimiser = new_optimiser(network, settings, start.faster(), settings.lr_times)
        super().__init__(settings, out, process, identity, network, optimiser, settings.epochs * each, each, "group")
        self._stepper = Stepper(start, optimiser, settings)

    def take(self, batch: FusionBatch) -> dict[str, float]:
        return self._stepper.take(batch, self.steps)

    def measure(self) -> dict[str, float] | None:
        return None if self._validation is None else self._validation.measure()

    def write_config(self) -> None:
        self._start.write_files(self.out)


def _about(settings: FusionSettings) -> About:
    objective: str = settings.objective
    if settings.regulariser:
        objective += f" + {settings.regulariser_weight} · {settings.regulariser}"
    kind, _, folder = settings.model.partition(":")
    return About(
        what=f"A fusion encoder: {kind} from {Path(folder).name}, objective {objective}, {settings.negatives} mined "
        f"negatives an example",
        model=f"{kind}:OUT",
        best_by="group",
        figures="Percent. text, image, group: EqBen's scores on twins, as means of groups of examples.",
        recipe="FIBER's released recipe",
        published=settings.defaults(),
    )
