"""Detectors of natural and synthetic captions and images as a task (BiVLC, section 5 and appendix E).

As in the released code: one linear layer on the projected embeddings of a frozen dual encoder, not normalised, with a
sigmoid; binary cross-entropy; Adam; batches of 400 pairs, both sides of each. Caption and image detector share nothing
but the run: the best weights have the highest mean of both accuracies, the first of equals.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from twinset.evaluation.blind_probes.detectors import FACTS, HALVES, detection_accuracy
from twinset.evaluation.blind_probes.run import features_of
from twinset.models.encoders.contract import Running
from twinset.shards.storage.whole_file import write_text
from twinset.training.clip.data import open_data
from twinset.training.combiner.features import PASS, FeatureBatches
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.examples.batches import Batch
from twinset.training.examples.example_set import ExampleSet
from twinset.training.runs.processes import Process
from twinset.training.runs.steps import new_optimiser
from twinset.training.runs.trainer import Task

#: What each detector reads: the natural one, the synthetic one.
ROLES = {half: (half, f"negative_{half}") for half in HALVES}


class DetectorTask(Task[Batch]):
    """The task of a detector of captions and, where the data have two images a pair, of one of images."""

    settings: DetectorSettings
    network: nn.ModuleDict
    best_by = "accuracy"
    figures = "Percent of single captions or images that are told right; 50 is chance."
    recipe = "that of BiVLC's released code"
    command = "blind … --detectors OUT"

    def __init__(self, settings: DetectorSettings, out: Path, process: Process) -> None:
        self.settings, self._process = settings, process
        self.data = open_data(settings, "first", out)
        self._features = features_of(settings.model, None, Running(settings.device, PASS, settings.threads))
        self._halves = {"text": settings.epochs}
        if "negative_image" in self.data.training.image_roles:
            self._halves["image"] = settings.image_epochs
        self.batches = self._batches(self.data.training, settings.batch)
        self.steps = self.batches.steps_per_epoch * max(self._halves.values())

    def _batches(self, examples: ExampleSet, size: int) -> FeatureBatches:
        roles = [role for half in self._halves for role in ROLES[half]]
        return FeatureBatches(examples, self._features, size, self.settings.seed, roles, self._process)

    def prepare(self, out: Path) -> None:
        self._validation: Batch | None = None
        if (examples := self.data.validation) is not None:
            self._validation = self._batches(examples, self._process.world).of(range(len(examples)))
        width = self.batches.at(0).texts["text"].shape[1]
        torch.manual_seed(self.settings.seed)
        self.network = nn.ModuleDict({half: nn.Linear(width, 1) for half in self._halves})
        self.network.to(self._process.device)
        self.optimiser = new_optimiser(self.network, self.settings)

    def digests(self) -> dict[str, Any]:
        return {"model": self._features.encoder.digest(), **self.data.digests()}

    def what(self) -> str:
        return f"Detectors of the first and the second half of pairs, on features of {self.settings.model}"

    def model(self, out: Path) -> str:
        return self.settings.model

    def rate(self, step: int) -> float:
        return self.settings.lr

    def backward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Binary cross-entropy of both sides of each pair, summed over the detectors that this epoch trains."""
        losses = dict[str, Tensor]()
        for half, epochs in self._halves.items():
            if batch.epoch < epochs:
                logits = self._logits(half, batch)
                labels = torch.tensor([0.0, 1.0], device=logits.device).expand_as(logits)
                losses[f"{half}_loss"] = binary_cross_entropy_with_logits(logits, labels)
        loss = torch.stack([*losses.values()]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        values = [value.detach().clone() for value in losses.values()]
        self._process.average(values)
        return torch.stack(values).sum(), dict(zip(losses, map(float, values), strict=True))

    def measure(self) -> dict[str, float] | None:
        """Accuracy of each detector and their mean, in percent."""
        if self._validation is None:
            return None
        figures = dict[str, float]()
        for half in self._halves:
            chances = self._logits(half, self._validation).sigmoid().cpu().numpy()
            figures[f"{half}_detection"] = 100 * detection_accuracy(chances)
        return {"accuracy": sum(figures.values()) / len(figures), "chance": 50.0, **figures}

    def write_config(self, out: Path) -> None:
        settings = self.settings
        facts = {"model": settings.model, "encoder": self._features.encoder.digest(), "data": settings.data}
        write_text(out / FACTS, json.dumps(facts, indent=1, sort_keys=True) + "\n")

    def _logits(self, half: str, batch: Batch) -> Tensor:
        """Of being synthetic, (n, 2): natural, synthetic."""
        shown = batch.texts if half == "text" else batch.images
        features = torch.stack([shown[role] for role in ROLES[half]], dim=1)
        logits: Tensor = self.network[half](features.to(self._process.device)).squeeze(-1)
        return logits
