"""The Combiner as a task (GeneCIS, 5.1).

As in the released code, but for how it clips gradients (docs/training.md): features are not normalised before they are
combined; the distractor of a triplet is not compared; batch normalisation is trained, by each process over its part.
"""

import logging
import math
from pathlib import Path

import polars as pl
import torch
from torch import Tensor, nn

from twinset.contracts.canonical import digest
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.features.store import FeatureStore, default_cache
from twinset.evaluation.scorers.composers import Combiner
from twinset.models.encoders.combiner import CombinerNetwork
from twinset.models.encoders.contract import Running
from twinset.models.encoders.open_clip_files import CONFIG
from twinset.models.encoders.open_clip_models import OpenClip
from twinset.shards.storage.spool import temporary_folder
from twinset.training.clip.data import open_start
from twinset.training.combiner.data import CONDITION, REFERENCE, TARGET, open_data
from twinset.training.combiner.features import PASS, FeatureBatches
from twinset.training.combiner.network import CombinerModel, contrast
from twinset.training.combiner.settings import CombinerSettings
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.features import Features
from twinset.training.losses.gradient_cache import Inputs, cached_backward
from twinset.training.runs.checkpoint import Tensors
from twinset.training.runs.processes import Process
from twinset.training.runs.steps import autocast, new_optimiser, refuse_batch_norm
from twinset.training.runs.trainer import BEST, Task

STEPS, EPOCHS = 28_000, 6  # of the paper, and of its released code
LOWEST = 1e-3  # of the learning rate, as a share of the first one
CLIP_NORM = 1.0  # largest norm of the encoder's gradient
AT = (1, 5, 10)
ROLES = (REFERENCE, TARGET, CONDITION)


def planned_steps(settings: CombinerSettings, steps_per_epoch: int) -> int:
    """Optimiser steps of a run: those that settings say, or else the fewer of what paper and released code take."""
    return settings.steps or settings.epochs * steps_per_epoch or min(STEPS, EPOCHS * steps_per_epoch)


class CombinerTask(Task[Batch]):
    """The task of a Combiner, and of its encoder where that is not frozen."""

    settings: CombinerSettings
    network: CombinerModel
    best_by = "recall@1"
    figures = "Percent: how often the target is among the first 1, 5 and 10 images."
    recipe = "that of GeneCIS's released code"

    def __init__(self, settings: CombinerSettings, _out: Path, process: Process) -> None:
        self.settings, self._process = settings, process
        self.start = start = open_start(settings)
        self.data = open_data(settings)
        clip, frozen = start.network.to(process.device).eval(), settings.frozen
        self._encoder = OpenClip(settings.model, start.architecture, start.weights, clip, start.tokenize)
        torch.manual_seed(settings.seed)
        width = start.architecture.model["embed_dim"]
        combiner = CombinerNetwork(width, settings.projection, settings.hidden, settings.dropout)
        self.network = CombinerModel(combiner, None if frozen == "both" else clip, frozen)
        self.network.to(process.device).train()
        refuse_batch_norm(settings.model, self.network, settings.accumulate)
        self.optimiser = new_optimiser(self.network, settings)
        self._features: ByFeatures | None = None
        self.batches: Batches
        if frozen == "both":
            running = Running(settings.device, PASS, settings.threads)
            # The store of `evaluation.run`: what one encodes, the other finds.
            store = FeatureStore(default_cache(), digest([self._encoder.digest(), running.runtime()]))
            self._features = ByFeatures(self._encoder, store, PASS)
            self.batches = FeatureBatches(
                self.data.training, self._features, settings.batch, settings.seed, ROLES, process
            )
        else:
            crops = Transforms(clip.visual.preprocess_cfg, settings.transform)
            self.batches = Batches(
                self.data.training, crops, start.tokenize, settings.batch, settings.seed, ROLES, settings.workers,
                process.rank, process.world,
            )  # fmt: skip
        self.steps = planned_steps(settings, self.batches.steps_per_epoch)
        self._level = logging.WARNING  # of what each validation says of its benchmark

    def what(self) -> str:
        start = f"{self.settings.model}, {self.settings.weights or 'random weights'}"
        return f"A Combiner of images and conditions on {start}, frozen towers: {self.settings.frozen}"

    def model(self, out: Path) -> str:
        settings, encoder = self.settings, f"open_clip:{out / CONFIG}:{out / _file(BEST, 'clip')}"
        if settings.frozen == "both":
            encoder = f"open_clip:{settings.model}:{settings.weights}"
            if settings.weights is None:
                encoder = f"random:{settings.model}:{settings.seed}"
        return f"combiner:{out / _file(BEST, 'combiner')}:{encoder}"

    def rate(self, step: int) -> float:
        """Of epoch e = 0, 1, … of E, which need not be whole: lr · (0.001 + 0.999 · (1 + cos(π · e / E)) / 2)."""
        epoch, epochs = step // self.batches.steps_per_epoch, self.steps / self.batches.steps_per_epoch
        fallen = (1 + math.cos(math.pi * epoch / epochs)) / 2
        return self.settings.lr * (LOWEST + (1 - LOWEST) * fallen)

    def backward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        inputs = {role: value.to(self._process.device) for role, value in {**batch.images, **batch.texts}.items()}
        return cached_backward(self._encode, inputs, contrast, len(batch.keys) // self.settings.accumulate)

    def _encode(self, inputs: Inputs) -> tuple[Features, Tensor]:
        with autocast(self.settings.precision, self._process.device):
            return self.network(inputs), torch.tensor(1 / self.settings.temperature, device=self._process.device)

    def update(self) -> dict[str, float]:
        if self.network.clip is not None:
            nn.utils.clip_grad_norm_(self.network.clip.parameters(), CLIP_NORM)
        return super().update()

    def measure(self) -> dict[str, float] | None:
        """Recall at 1, 5 and 10 of the weights as they are now, in percent; a tie with the target counts as a miss."""
        if self.data.validation is None:
            return None
        composer = Combiner("the Combiner in training", self._encoder, "in training", self.network.combiner)
        with temporary_folder() as folder:
            store = self._features.store if self._features else FeatureStore(folder, "features")
            path, similarities = folder / "scores.parquet", ByFeatures(self._encoder, store, PASS, composer)
            write_scores(self.data.validation, similarities, path, {}, level=self._level)
            self._level = logging.DEBUG
            above = pl.read_parquet(path, columns=["higher", "tied"]).sum_horizontal().to_numpy()
        return {f"recall@{k}": 100 * float((above < k).mean()) for k in AT}

    def files(self, which: str, weights: Tensors) -> dict[str, Tensors]:
        """The Combiner's by their published names, and the encoder's beside it."""
        return {
            _file(which, part): {
                name.removeprefix(f"{part}."): value for name, value in weights.items() if name.startswith(f"{part}.")
            }
            for part, _ in self.network.named_children()
        }


def _file(which: str, part: str) -> str:
    return f"{which}_{part}.safetensors"
