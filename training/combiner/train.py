"""Trains a Combiner on triplets, and resumes a run that was stopped, as `training.clip.train` does (GeneCIS, 5.1).

One bug of the released code is not copied: it clips gradients of float16 before it divides them by their scale
(`training.combiner.steps`). As in that code: features are not normalised before they are combined; the
distractor of a triplet is not compared; batch normalisation of a ResNet is trained.
"""

import contextlib
import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from twinset.evaluation.features.store import FeatureStore, default_cache
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import Running
from twinset.models.encoders.open_clip_models import OpenClip
from twinset.shards.storage.whole_file import write_text
from twinset.training.clip.models import Start, open_start, write_config
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET, CombinerData, open_data
from twinset.training.combiner.features import FeatureBatches
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.combiner.steps import Stepper, new_optimiser, new_trainee
from twinset.training.combiner.validation import BEST_BY, Validation
from twinset.training.examples.batches import Batches
from twinset.training.examples.contracts import Batch, Broken
from twinset.training.examples.transforms import Transforms
from twinset.training.report.curves import Curves
from twinset.training.report.write import About, write_report
from twinset.training.runs.checkpoints import Files, write_tensors
from twinset.training.runs.history import History, Row
from twinset.training.runs.identity import SETTINGS, check_folder, claim, run_identity
from twinset.training.runs.loop import RESULT, Loop, OnProgress, finished
from twinset.training.runs.processes import Process, joined

PASS = 32  # images or texts of a pass without gradients, as `twinset eval run` has it by default
BEST, LAST = "best", "last"


@dataclass(frozen=True, slots=True)
class TrainedCombiner:
    """A finished run.

    model: names the best Combiner with its encoder for ``twinset eval run --model``.
    best, last: files of the Combiner, of the best validation and of the last step. history: a row a step.
    digest: sha256 of ``last``. best_step: steps after which the best was written; best_value: its recall@1 in percent.
    resumed_at: steps that earlier calls took; all of them where nothing was left to do.
    """

    model: str
    best: Path
    last: Path
    history: list[Row]
    digest: str
    best_step: int
    best_value: float
    resumed_at: int


def train_combiner(
    settings: CombinerSettings,
    out: Path,
    on_progress: OnProgress | None = None,
    report: bool = True,
    cache: Path | None = None,
) -> TrainedCombiner:
    """Train a Combiner, or resume a run that was stopped; a finished one is left as it is.

    Args:
        out: folder of the run; `docs/training.md` lists its files.
        report: whether TensorBoard's files and ``report.html`` are written.
        cache: folder of the features of a frozen encoder; the user's own by default.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, too many triplets are broken, or the data changed. Weights up to the last
            checkpoint are intact, and the same call resumes from it.
    """
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(joined(settings))
        if process.world > 1:
            raise WrongUse("a Combiner trains in one process; start it without torchrun")
        check_folder(out)
        start, data = open_start(settings), open_data(settings)
        identity = run_identity(settings, start.identity(), data.digests())
        history = stack.enter_context(History(out))
        if (out / SETTINGS).exists():  # another run is refused before anything is encoded
            claim(out, settings, identity, process.runtime)
        if (done := finished(out, digest(identity), history)) is not None:
            return _trained(settings, out, done, history, done["steps"])
        run = Run(settings, out, start, data, process, digest(identity), cache or default_cache())
        stack.callback(run.close)
        claim(out, settings, identity, process.runtime)
        resumed_at = run.restore(history)
        if not settings.frozen:
            write_config(start, out)
        curves = Curves(out, resumed_at) if report else None
        with curves or contextlib.nullcontext():
            run.steps_from(resumed_at, history, curves, on_progress)
        return _trained(settings, out, run.finish(history, report), history, resumed_at)


class Run(Loop[Batch]):
    """The run of a Combiner; arguments as those of `Loop`, and the folder of features."""

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
        self.settings, self.data = settings, data
        network = start.network.to(process.device).eval()
        encoder = OpenClip(_encoder_name(settings, out), start.architecture, start.weights, network, start.tokenize)
        running = Running(settings.device, PASS, settings.threads)
        # The store of `evaluation.run`: what one encodes, the other finds.
        self._store = FeatureStore(cache, digest([encoder.digest(), running.runtime()])) if settings.frozen else None
        self.batches: Batches | FeatureBatches
        if self._store is not None:
            self.batches = FeatureBatches(data.training, encoder, self._store, PASS, settings.batch, settings.seed)
        else:
            self.batches = Batches(
                data.training, Transforms(network.visual.preprocess_cfg, settings.transform), start.tokenize,
                settings.batch, settings.seed, (REFERENCE, TARGET, CONDITION), settings.workers,
            )  # fmt: skip
        self._validation = Validation(data.validation, encoder, self._store, PASS)
        self.trainee = new_trainee(settings, network, _width(network)).to(process.device).train()
        optimiser = new_optimiser(self.trainee, settings)
        self.stepper = Stepper(self.trainee, optimiser, settings, process.device)
        each = self.batches.steps_per_epoch
        super().__init__(
            settings, out, process, identity, self.trainee, optimiser, settings.epochs * each, each, BEST_BY
        )

    def close(self) -> None:
        """Close the store of features."""
        if self._store is not None:
            self._store.close()

    def restore(self, history: History) -> int:
        """As `Loop.restore`; raises `BuildFailed` where a frozen encoder finds other triplets readable than before."""
        step = super().restore(history)
        if not isinstance(self.batches, Batches) and history.rows:
            self.batches.check_resumed(history.rows[0].get("left_out", ()))
        return step

    def stream(self, first: int) -> Generator[Batch, None, None]:
        return self.batches.stream(first, self.steps)

    def take(self, batch: Batch) -> dict[str, float]:
        return self.stepper.take(batch)

    def measure(self) -> dict[str, float]:
        return self._validation.measure(self.trainee)

    def weights(self) -> Files:
        return self._files(BEST)

    def broken(self) -> Broken:
        """As `Loop.broken`; with a frozen encoder all are read before the first step."""
        return self.batches.broken if isinstance(self.batches, Batches) else {}

    def finish(self, history: History, report: bool) -> dict[str, Any]:
        """Write the last weights, the receipt of the run and its reports, and remove the checkpoints."""
        assert self.best is not None  # the last step is always validated
        self.checkpoints.show_best(self.best)
        last = {name: write_tensors(self.out / name, tensors) for name, tensors in self._files(LAST).items()}
        files = {**self.best["sha256"], **last}
        best = {name: self.best[name] for name in ("step", "value")}
        result = {
            "identity": self.identity, "runtime": self.process.runtime, "steps": self.steps, "best": best,
            "sha256": files,
        }  # fmt: skip
        about = _about(self.settings, self.data)
        write_report(self.out, self.settings, self.data.facts, result, history.rows, about, pictures=report)
        write_text(self.out / RESULT, json.dumps(result, indent=1, sort_keys=True) + "\n")
        self.checkpoints.clear()
        return result

    def _files(self, which: str) -> Files:
        """The weights as they are: the Combiner's by their published names, and the encoder's beside it."""
        parts = {_file(which, "combiner"): self.trainee.combiner}
        if self.trainee.clip is not None:
            parts[_file(which, "clip")] = self.trainee.clip
        return {name: part.state_dict() for name, part in parts.items()}


def _file(which: str, part: str) -> str:
    return f"{which}_{part}.safetensors"


def _encoder_name(settings: CombinerSettings, out: Path) -> str:
    """The encoder of the best Combiner as ``--model`` names it."""
    if not settings.frozen:
        return f"open_clip:{out / 'open_clip_config.json'}:{out / _file(BEST, 'clip')}"
    if settings.weights is None:
        return f"random:{settings.model}:{settings.seed}"
    return f"open_clip:{settings.model}:{settings.weights}"


def _model(settings: CombinerSettings, out: Path) -> str:
    return f"combiner:{out / _file(BEST, 'combiner')}:{_encoder_name(settings, out)}"


def _about(settings: CombinerSettings, data: CombinerData) -> About:
    frozen = "frozen" if settings.frozen else "trained with it"
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


def _trained(
    settings: CombinerSettings, out: Path, result: dict[str, Any], history: History, resumed_at: int
) -> TrainedCombiner:
    last = _file(LAST, "combiner")
    return TrainedCombiner(
        model=_model(settings, out),
        best=out / _file(BEST, "combiner"),
        last=out / last,
        history=history.rows,
        digest=result["sha256"][last],
        best_step=result["best"]["step"],
        best_value=result["best"]["value"],
        resumed_at=resumed_at,
    )
