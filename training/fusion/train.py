"""Trains a fusion encoder on mined negatives, and resumes a run that was stopped, as `training.clip.train` does.

Neighbours are scored once, before the first step, by the weights that the run begins with, and kept in its folder.
"""

import contextlib
from collections.abc import Generator
from pathlib import Path

from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.training.clip.data import RunData, open_data
from twinset.training.clip.optimiser import new_optimiser
from twinset.training.clip.whole_network import Trained, WholeNetwork, trained
from twinset.training.fusion.batches import FusionBatch, FusionBatches
from twinset.training.fusion.models import PUBLISHED, Start, open_start
from twinset.training.fusion.neighbours import Mined, labels_of, open_neighbours
from twinset.training.fusion.settings import FusionSettings
from twinset.training.fusion.steps import Stepper, Validation
from twinset.training.report.curves import Curves
from twinset.training.report.write import About
from twinset.training.runs.history import History
from twinset.training.runs.identity import check_folder, claim, run_identity
from twinset.training.runs.loop import OnProgress, finished
from twinset.training.runs.processes import Process, joined


def train_fusion(
    settings: FusionSettings, out: Path, on_progress: OnProgress | None = None, report: bool = True
) -> Trained:
    """Train a fusion encoder, or resume a run that was stopped; a finished one is left as it is.

    Args:
        out: folder of the run; `docs/training.md` lists its files.
        report: whether TensorBoard's files and ``report.html`` are written.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, too many examples are broken, or the data changed. Weights up to the last
            checkpoint are intact, and the same call resumes from it.
    """
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        if process.world > 1:
            raise WrongUse("a fusion encoder trains in one process; start it without torchrun")
        check_folder(out)
        start, data = open_start(settings), open_data(settings, "both")
        validation = None if data.validation is None else Validation(data.validation, start)
        labels = labels_of(data.training, settings)
        identity = run_identity(settings, start.identity(), data.digests())
        history = stack.enter_context(History(out))
        claim(out, settings, identity, process.runtime)
        if (done := finished(out, digest(identity), history)) is not None:
            return trained(out, done, history, done["steps"])
        mined = open_neighbours(settings, out, start, data.training, labels)
        run = Run(settings, out, start, data, mined, validation, process, digest(identity))
        resumed_at = run.restore(history)
        start.write_files(out)
        curves = Curves(out, resumed_at) if report else None
        with curves or contextlib.nullcontext():
            run.steps_from(resumed_at, history, curves, on_progress)
        result = run.finish(history, PUBLISHED, data.facts(), _about(settings), report)
        return trained(out, result, history, resumed_at)


class Run(WholeNetwork[FusionBatch]):
    """The run of a fusion encoder; arguments as those of `Loop`, and the neighbours of its examples."""

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
        self.settings, self._validation = settings, validation
        self._batches = FusionBatches(settings, data.training, mined, start.scorer.processor)
        network, each = start.scorer.model.train(), self._batches.steps_per_epoch
        optimiser = new_optimiser(network, settings, start.faster(), settings.lr_times)
        super().__init__(settings, out, process, identity, network, optimiser, settings.epochs * each, each, "group")
        self._stepper = Stepper(start, optimiser, settings)

    def stream(self, first: int) -> Generator[FusionBatch, None, None]:
        return self._batches.stream(first, self.steps)

    def take(self, batch: FusionBatch) -> dict[str, float]:
        return self._stepper.take(batch, self.steps)

    def measure(self) -> dict[str, float] | None:
        return None if self._validation is None else self._validation.measure()


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
        published=FusionSettings(model=settings.model, data=settings.data).model_dump(mode="json"),
    )
