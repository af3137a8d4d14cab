"""Trains a dual encoder, and resumes a run that was stopped from its last checkpoint.

All state of a run is its checkpoint: weights, buffers, the optimiser's moments and the number of steps. The order of
examples, their augmentation, the learning rate, dropout and sampled negatives are functions of the seed and the step.
So a run that was killed at any step ends with the same bytes of weights as one that was not, on one runtime class.
"""

import contextlib
import logging
from pathlib import Path

from twinset.contracts.canonical import digest
from twinset.training.clip.data import RunData, Start, open_data, open_start, write_config
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.steps import Stepper, new_optimiser
from twinset.training.clip.validation import Validation
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.contracts import Broken
from twinset.training.examples.example_set import TAR_INDEX
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.names import OBJECTIVES, packages
from twinset.training.losses.objectives import open_loss
from twinset.training.report.write import About
from twinset.training.runs.identity import History, check_folder, claim, run_identity
from twinset.training.runs.loop import Loop, OnProgress, Trained, finished, trained
from twinset.training.runs.processes import Process, joined

_LOG = logging.getLogger("twinset")


def train_clip(
    settings: ClipSettings, out: Path, on_progress: OnProgress | None = None, report: bool = True
) -> Trained:
    """Train a model, or resume a run that was stopped; a finished one is left as it is.

    Args:
        out: folder of the run; `docs/training.md` lists its files.
        report: whether TensorBoard's files and ``report.html`` are written, which takes a second or two.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, too many examples are broken, or the data changed. Weights up to the last
            checkpoint are intact, and the same call resumes from it.
        OSError: there is no room for a checkpoint; the one before it is intact.
    """
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        if process.is_first:
            check_folder(out)
        start, index = open_start(settings), out.absolute().parent / TAR_INDEX
        data = open_data(settings, settings.twins, index, settings.neighbours, settings.nearest)
        identity = run_identity(settings, start.identity(), data.digests())
        if brought := packages(settings.objective, settings.regulariser):
            identity["packages"] = brought
        # Before anything is written: it refuses settings, model and data that do not fit each other.
        run = Run(settings, out, start, data, process, digest(identity))
        history = stack.enter_context(History(out, process.is_first))
        if process.is_first:
            claim(out, settings, identity, process.runtime)
        process.wait()
        if (done := finished(out, run.identity, history)) is not None:
            return trained(f"open_clip:{out}", out, done, history, done["steps"])
        result, resumed_at = run.run(history, data.facts(), _about(settings), on_progress, report)
        return trained(f"open_clip:{out}", out, result, history, resumed_at)


class Run(Loop[Batch]):
    """The run of a dual encoder in one process; arguments as those of `Loop`."""

    batches: Batches
    published = "open_clip_model.safetensors"  # open_clip and `evaluation` look for it

    def __init__(
        self, settings: ClipSettings, out: Path, start: Start, data: RunData, process: Process, identity: str
    ) -> None:
        self.settings, self._start = settings, start
        image = start.network.visual.preprocess_cfg
        self.batches = Batches(
            data.training, Transforms(image, settings.transform), start.tokenize, settings.batch, settings.seed,
            OBJECTIVES.find(settings.objective).roles, settings.workers, process.rank, process.world,
            neighbours=data.neighbours,
        )  # fmt: skip
        steps = settings.steps or settings.epochs * self.batches.steps_per_epoch
        if settings.warmup >= steps and process.is_first:
            _LOG.warning(
                "warmup: %s steps, and the run has %s: the learning rate never reaches %s; choose a lower --warmup",
                *(f"{settings.warmup:,}", f"{steps:,}", settings.lr),
            )
        self.validation = None
        if data.validation is not None:
            self.validation = Validation(data.validation, Transforms(image, "evaluation"), start.tokenize, settings)
        network = start.network.to(process.device).train()
        super().__init__(
            settings, out, process, identity, network, new_optimiser(network, settings), steps,
            self.batches.steps_per_epoch, settings.best_by,
        )  # fmt: skip
        loss = open_loss(
            settings.objective, settings.regulariser, settings.regulariser_weight, **settings.regulariser_options()
        )
        self.stepper = Stepper(self.network, self.optimiser, loss, settings, process)

    def take(self, batch: Batch) -> dict[str, float]:
        return self.stepper.take(batch, self.steps)

    def measure(self) -> dict[str, float] | None:
        return None if self.validation is None else self.validation.measure(self.stepper)

    def broken(self) -> Broken:
        return self.batches.broken

    def write_config(self) -> None:
        write_config(self._start, self.out)


def _about(settings: ClipSettings) -> About:
    objective: str = settings.objective
    if settings.regulariser:
        objective += f" + {settings.regulariser_weight} · {settings.regulariser}"
    return About(
        what=f"A dual encoder: {settings.model} from {settings.weights or 'random weights'}, objective {objective}",
        model="open_clip:OUT",
        best_by=settings.best_by,
        figures="Percent, except for the loss. accuracy: in-batch, mean of both directions. text, image, group: "
        "EqBen's scores on twins, as means of groups of examples.",
        recipe="BiVLC's published recipe",
        published=settings.defaults(),
    )
