"""Trains a Combiner on triplets, and resumes a run that was stopped, as `training.clip.train` does (GeneCIS, 5.1).

One bug of the released code is not copied: it clips gradients of float16 before it divides them by their scale
(`training.combiner.steps`). As in that code: features are not normalised before they are combined; the
distractor of a triplet is not compared; batch normalisation of a ResNet is trained, by each process over its own part
of a batch.
"""

import contextlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from twinset.contracts.canonical import digest
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore, default_cache
from twinset.evaluation.scorers.composers import Combiner
from twinset.models.encoders.contract import DualEncoder, Running
from twinset.models.encoders.open_clip_models import OpenClip
from twinset.shards.storage.spool import temporary_folder
from twinset.training.clip.data import Start, open_start, write_config
from twinset.training.clip.validation import evaluating
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET, CombinerData, HeldOut, open_data
from twinset.training.combiner.features import FeatureBatches
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.steps import Stepper, Trainee, new_optimiser, new_trainee, planned_steps
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.contracts import Broken
from twinset.training.examples.transforms import Transforms
from twinset.training.report.write import About
from twinset.training.runs.checkpoints import Files
from twinset.training.runs.identity import SETTINGS, History, check_folder, claim, run_identity
from twinset.training.runs.loop import BEST, Loop, OnProgress, Trained, finished, trained
from twinset.training.runs.processes import Process, joined

AT = (1, 5, 10)
BEST_BY = "recall@1"


class Validation:
    """Queries of a benchmark.

    Args:
        encoder: of images and conditions; its weights may be those that are trained.
        store: of its features, where they stay the same; else None, and they are computed every time.
        size: images or texts of a pass.

    Raises:
        BuildFailed: an image of held-out triplets cannot be read.
    """

    def __init__(self, benchmark: Benchmark, encoder: DualEncoder, store: FeatureStore | None, size: int) -> None:
        self._benchmark, self._encoder, self._store, self._size = benchmark, encoder, store, size
        self._level = logging.WARNING
        self._check()  # before the first step, not after an epoch

    def measure(self, trainee: Trainee) -> dict[str, float]:
        """Recall at 1, 5 and 10 of the weights as they are now, in percent; a tie with the target counts as a miss."""
        self._check()
        composer = Combiner("the Combiner in training", self._encoder, "in training", trainee.combiner)
        with temporary_folder() as folder, evaluating(trainee):
            store = self._store or FeatureStore(folder, "features")
            queries = ByFeatures(self._encoder, store, self._size, composer)
            write_scores(self._benchmark, queries, folder / "scores.parquet", {}, level=self._level)
            self._level = logging.DEBUG  # the same in each epoch
            ranks = pq.read_table(folder / "scores.parquet", columns=["higher", "tied"])
        place = ranks["higher"].to_numpy() + ranks["tied"].to_numpy()
        return {f"recall@{k}": 100 * float(np.mean(place < k)) for k in AT}

    def _check(self) -> None:
        if isinstance(self._benchmark, HeldOut):
            self._benchmark.check_readable()


PASS = 32  # images or texts of a pass without gradients, as `twinset eval run` has it by default


def train_combiner(
    settings: CombinerSettings,
    out: Path,
    on_progress: OnProgress | None = None,
    report: bool = True,
    cache: Path | None = None,
) -> Trained:
    """Train a Combiner, or resume a run that was stopped: as `training.clip.train.train_clip`.

    Args:
        cache: folder of the features of an encoder that is frozen; the user's own by default.

    Returns:
        The run; its figures are recall@1 in percent.
    """
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        if process.is_first:
            check_folder(out)
        start, data = open_start(settings), open_data(settings)
        identity = run_identity(settings, start.identity(), data.digests())
        history = stack.enter_context(History(out, process.is_first))
        if process.is_first and (out / SETTINGS).exists():  # another run is refused before anything is encoded
            claim(out, settings, identity, process.runtime)
        if (done := finished(out, digest(identity), history)) is not None:
            return trained(_model(settings, out), out, done, history, done["steps"], "_combiner")
        run = Run(settings, out, start, data, process, digest(identity), cache or default_cache())
        if process.is_first:
            claim(out, settings, identity, process.runtime)
        process.wait()
        result, resumed_at = run.run(history, data.facts, _about(settings, data), on_progress, report)
        return trained(_model(settings, out), out, result, history, resumed_at, "_combiner")


class Run(Loop[Batch]):
    """The run of a Combiner; arguments as those of `Loop`, and the folder of features."""

    settings: CombinerSettings

    def __init__(
        self,
        settings: CombinerSettings,
        out: Path,
        start: Start,
        data: CombinerData,
        process: Process,
        identity: str,
        cache: Path,
    ) -> None:
        self.settings, self._start = settings, start
        network = start.network.to(process.device).eval()
        encoder = OpenClip(_encoder_name(settings, out), start.architecture, start.weights, network, start.tokenize)
        running = Running(settings.device, PASS, settings.threads)
        # The store of `evaluation.run`: what one encodes, the other finds.
        self._store = (
            FeatureStore(cache, digest([encoder.digest(), running.runtime()])) if settings.frozen == "both" else None
        )
        self.batches: Batches | FeatureBatches
        if self._store is not None:
            self.batches = FeatureBatches(
                data.training, encoder, self._store, PASS, settings.batch, settings.seed, process
            )
        else:
            self.batches = Batches(
                data.training, Transforms(network.visual.preprocess_cfg, settings.transform), start.tokenize,
                settings.batch, settings.seed, (REFERENCE, TARGET, CONDITION), settings.workers,
                process.rank, process.world,
            )  # fmt: skip
        self._validation = Validation(data.validation, encoder, self._store, PASS)
        self.trainee = new_trainee(settings, network, _width(network)).to(process.device).train()
        optimiser = new_optimiser(self.trainee, settings)
        self.stepper = Stepper(self.trainee, optimiser, settings, process)
        each = self.batches.steps_per_epoch
        steps = planned_steps(settings, each)
        super().__init__(settings, out, process, identity, self.trainee, optimiser, steps, each, BEST_BY)

    def restore(self, history: History) -> int:
        """As `Loop.restore`; raises `BuildFailed` where a frozen encoder finds other triplets readable than before."""
        step = super().restore(history)
        if not isinstance(self.batches, Batches) and history.rows:
            self.batches.check_resumed(history.rows[0].get("left_out", ()))
        return step

    def take(self, batch: Batch) -> dict[str, float]:
        return self.stepper.take(batch, self.steps / self.batches.steps_per_epoch)

    def measure(self) -> dict[str, float]:
        return self._validation.measure(self.trainee)

    def weights(self, which: str) -> Files:
        """The Combiner's by their published names, and the encoder's beside it."""
        parts = {_file(which, "combiner"): self.trainee.combiner}
        if self.trainee.clip is not None:
            parts[_file(which, "clip")] = self.trainee.clip
        return {name: part.state_dict() for name, part in parts.items()}

    def write_config(self) -> None:
        if self.settings.frozen != "both":
            write_config(self._start, self.out)

    def broken(self) -> Broken:
        """As `Loop.broken`; with a frozen encoder all are read before the first step."""
        return self.batches.broken if isinstance(self.batches, Batches) else {}


def _file(which: str, part: str) -> str:
    return f"{which}_{part}.safetensors"


def _encoder_name(settings: CombinerSettings, out: Path) -> str:
    """The encoder of the best Combiner as ``--model`` names it."""
    if settings.frozen != "both":
        return f"open_clip:{out / 'open_clip_config.json'}:{out / _file(BEST, 'clip')}"
    if settings.weights is None:
        return f"random:{settings.model}:{settings.seed}"
    return f"open_clip:{settings.model}:{settings.weights}"


def _model(settings: CombinerSettings, out: Path) -> str:
    return f"combiner:{out / _file(BEST, 'combiner')}:{_encoder_name(settings, out)}"


def _about(settings: CombinerSettings, data: CombinerData) -> About:
    frozen = {"none": "trained with it", "both": "frozen"}.get(
        settings.frozen, f"trained with it, but for its {settings.frozen} tower"
    )
    conditions = "; conditions shuffled, a control" if settings.conditions == "shuffled" else ""
    start = settings.weights or "random weights"
    held_out = f"; {data.held_out:,} triplets of its data are held out to validate on" if data.held_out else ""
    return About(
        what=f"A Combiner of images and conditions; its encoder, {settings.model} from {start}, "
        f"is {frozen}{conditions}{held_out}",
        model=_model(settings, Path("OUT")),
        best_by=BEST_BY,
        figures="Percent: how often the target is among the first 1, 5 and 10 images.",
        recipe="that of GeneCIS's released code",
        published=settings.defaults(),
    )


def _width(network: Any) -> int:
    """Numbers of a feature."""
    size = network.visual.preprocess_cfg["size"]
    height, width = (size, size) if isinstance(size, int) else size[-2:]
    device = next(network.parameters()).device
    with torch.no_grad():
        return int(network.encode_image(torch.zeros(1, 3, height, width, device=device)).shape[-1])
