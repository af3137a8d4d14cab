"""Trains a dual encoder of open_clip on twins and other examples."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from twinset.training.clip.data import open_data, open_start
from twinset.training.clip.settings import ClipSettings
from twinset.training.clip.validation import FIGURES, TWINS, batch_size, twin_figures
from twinset.training.examples.batches import Batch, Batches
from twinset.training.examples.transforms import Transforms
from twinset.training.losses.features import Features, concatenate, gather
from twinset.training.losses.gradient_cache import Inputs, cached_backward, chunks
from twinset.training.losses.names import OBJECTIVES, packages
from twinset.training.losses.objectives import open_loss
from twinset.training.runs.processes import Process
from twinset.training.runs.steps import autocast, learning_rate, new_optimiser, refuse_batch_norm, stream_seed
from twinset.training.runs.trainer import Task, in_percent

#: CLIP clips the scale of its logits at 100 (Radford et al. 2021, section 2.5).
LARGEST_SCALE = math.log(100)
VALIDATED = ("loss", "accuracy", "chance")
_LOG = logging.getLogger("twinset")


class ClipTask(Task[Batch]):
    """The task of a dual encoder. Raises `WrongUse`: settings, model and data do not fit each other."""

    settings: ClipSettings
    batches: Batches
    best_by = "accuracy"
    best_file = "open_clip_model.safetensors"  # open_clip and `evaluation` look for it
    figures = f"Percent, except for the loss. accuracy: in-batch, mean of both directions. {FIGURES}"
    recipe = "BiVLC's published recipe"

    def __init__(self, settings: ClipSettings, out: Path, process: Process) -> None:
        self.settings, self._process = settings, process
        self.start = open_start(settings)
        self.data = open_data(settings, settings.twins, out)
        image, tokenize = self.start.network.visual.preprocess_cfg, self.start.tokenize
        self.batches = Batches(
            self.data.training, Transforms(image, settings.transform), tokenize, settings.batch, settings.seed,
            OBJECTIVES.find(settings.objective).roles, settings.workers, process.rank, process.world,
        )  # fmt: skip
        self.steps = settings.steps or settings.epochs * self.batches.steps_per_epoch
        if settings.warmup >= self.steps and process.rank == 0:
            message = "warmup: %d steps, and the run has %d: the learning rate never reaches --lr; lower --warmup"
            _LOG.warning(message, settings.warmup, self.steps)
        unused = "negative_text" not in self.batches.text_roles and self.data.training.lacking("negative_text") is None
        if unused and process.rank == 0:
            message = "objective: %s does not read the negative captions of the data; negative-texts does"
            _LOG.warning(message, settings.objective)
        self._chunk = settings.batch // process.world // settings.accumulate  # examples of a pass
        self._validation = None
        if (examples := self.data.validation) is not None:
            are_twins = all(examples.lacking(role) is None for role in TWINS)
            roles = TWINS if are_twins else OBJECTIVES.find(settings.objective).roles
            size, evaluated = batch_size(len(examples), settings.batch), Transforms(image, "evaluation")
            self._validation = Batches(examples, evaluated, tokenize, size, 0, roles, settings.workers)
        self.network: Any = self.start.network.to(process.device).train()
        refuse_batch_norm(settings.model, self.network, settings.accumulate * process.world)
        self.optimiser = new_optimiser(self.network, settings)
        self.loss = open_loss(
            settings.objective, settings.regulariser, settings.regulariser_weight, **settings.regulariser_options()
        )

    def digests(self) -> dict[str, Any]:
        return {**super().digests(), "packages": packages(self.settings.objective, self.settings.regulariser)}

    def model(self, out: Path) -> str:
        return f"open_clip:{out}"

    def what(self) -> str:
        start = f"{self.settings.model} from {self.settings.weights or 'random weights'}"
        return f"A dual encoder: {start}, objective {self.settings.losses}"

    def rate(self, step: int) -> float:
        return learning_rate(step, self.steps, self.settings.lr, self.settings.warmup)

    def backward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        settings = self.settings
        generator = torch.Generator().manual_seed(stream_seed(settings.seed, "sampling", batch.step))
        return cached_backward(
            lambda inputs: (self.features(inputs), self.network.logit_scale.exp()),
            self.inputs(batch),
            lambda features, scale: self.loss(gather(features), scale, generator),
            self._chunk,
        )

    def update(self) -> dict[str, float]:
        self.optimiser.step()
        with torch.no_grad():
            self.network.logit_scale.clamp_(0, LARGEST_SCALE)
        return {"logit_scale": float(self.network.logit_scale.detach().exp())}

    def measure(self) -> dict[str, float] | None:
        """As `Task.measure`. ``accuracy``: in-batch, mean of both directions, over the logits that the objective
        compares, as BiVLC's code chooses by. ``chance``: its value for guesses. Of twins also `twin_figures`.
        """
        if self._validation is None:
            return None
        rows, scores, groups = list[dict[str, float]](), list[Any](), list[str]()
        for batch in self._validation.stream(0, self._validation.steps_per_epoch):
            features = concatenate([self.features(part) for part in chunks(self.inputs(batch), self._chunk)])
            generator = torch.Generator().manual_seed(0)
            loss, logged = self.loss(features, self.network.logit_scale.exp(), generator)
            logged |= {"loss": float(loss), "accuracy": (logged["image_accuracy"] + logged["text_accuracy"]) / 2}
            rows.append(in_percent({name: logged[name] for name in VALIDATED if name in logged}))
            if features.negative_images is not None and features.negative_texts is not None:
                images = torch.stack([features.images, features.negative_images])
                texts = torch.stack([features.texts, features.negative_texts])
                scores.append((images[:, None] * texts).sum(-1).cpu().numpy())
                groups += batch.groups
        figures = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        return figures | (twin_figures(np.concatenate(scores, axis=2), groups) if scores else {})

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Images and tokens of a batch by role, on the device."""
        tensors = {**batch.images, **batch.texts}
        return {role: value.to(self._process.device, non_blocking=True) for role, value in tensors.items()}

    def features(self, inputs: Inputs) -> Features:
        """Features with norm 1 of a batch or a part of it, float32."""
        with autocast(self.settings.precision, self._process.device):
            images = _encoded(inputs, ("image", "negative_image"), self.network.encode_image)
            texts = _encoded(inputs, ("text", "negative_text"), self.network.encode_text)
        return Features(images["image"], texts["text"], images.get("negative_image"), texts.get("negative_text"))


def _encoded(inputs: Inputs, roles: tuple[str, ...], encode: Any) -> dict[str, Tensor]:
    """All of a tower's inputs in one pass."""
    present = [role for role in roles if role in inputs]
    features = functional.normalize(encode(torch.cat([inputs[role] for role in present])).float(), dim=-1)
    return dict(zip(present, features.chunk(len(present)), strict=True))
