"""The neighbours of a run's examples: found and scored once before its first step, and kept in its folder (EqBen C)."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor
from torch.nn import functional

from twinset.manifests.canonical import digest
from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.clip.steps import stream_seed
from twinset.training.examples.batches import MAX_BROKEN
from twinset.training.examples.example_set import ExampleSet
from twinset.training.fusion.models import PASS, Start
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.mining import (
    Labels,
    Neighbours,
    load_neighbours,
    nearest,
    negatives_of_all,
    score_neighbours,
)

FILE = "neighbours.safetensors"
PAIRS = 256  # scored at a time, or those of one image
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Mined:
    """Neighbours of the examples that can be read. numbers: of these in the data, (n,). labels: of these, (2, n)."""

    neighbours: Neighbours
    numbers: NDArray[np.int64]
    labels: Labels


def labels_of(examples: ExampleSet, settings: FusionSettings) -> Labels:
    """Which image and which text each example has, (2, n): those that share either match each other too. Raises
    `WrongUse`: some example has too few others that differ in both.
    """
    examples.require(("image", "text"))
    read = [examples[number] for number in range(len(examples))]
    columns = ([one.images["image"].sha256 for one in read], [one.texts["text"] for one in read])
    labels = np.stack([np.unique(np.array(one), return_inverse=True)[1] for one in columns]).astype(np.int64)
    if len(examples) < settings.batch or negatives_of_all(labels) < settings.negatives:
        raise WrongUse(
            f"{len(examples):,} examples, of which {max(negatives_of_all(labels), 0):,} or more differ from any one in "
            f"image and text: too few for a batch of {settings.batch:,} or {settings.negatives} negatives; choose a "
            "smaller --batch, --negatives and --hard, or name more data"
        )
    return labels


def open_neighbours(settings: FusionSettings, out: Path, start: Start, examples: ExampleSet, labels: Labels) -> Mined:
    """The neighbours that ``out`` has of these examples by these models; where there are none, find them.

    Raises:
        WrongUse: those that are there are of others.
        BuildFailed: too many examples cannot be read.
    """
    bound_to, path = digest([examples.digest(), start.identity(), settings.neighbours]), out / FILE
    if path.exists():
        found = load_neighbours(path, bound_to)
    else:
        torch.manual_seed(stream_seed(settings.seed, "neighbours"))  # ViLT reads patches in a random order
        with torch.inference_mode():
            found = _mined(settings, start, examples, labels, bound_to)
        found.save(path)
    numbers = np.delete(np.arange(len(examples)), [number for number, _, _ in found.left_out])
    return Mined(found, numbers, labels[:, numbers])


def _mined(settings: FusionSettings, start: Start, examples: ExampleSet, labels: Labels, bound_to: str) -> Neighbours:
    numbers, features, left_out = list[int](), list[Tensor](), list[tuple[int, str, str]]()
    for first in range(0, len(examples), PASS):
        pictures: list[Image] = []
        for number in range(first, min(first + PASS, len(examples))):
            example = examples[number]
            try:
                pictures.append(examples.open_image(example, "image"))
                numbers.append(number)
            except BrokenTar as error:
                _LOG.warning("left out of training: %s", error)
                left_out.append((number, example.where, str(error).removeprefix(f"{example.where}.")))
        if len(left_out) > MAX_BROKEN * len(examples):
            raise BuildFailed(
                f"{len(left_out)} of {len(examples)} examples cannot be read, more than {MAX_BROKEN:.1%} of them; the "
                f"first is {left_out[0][1]}: {left_out[0][2]}. Fetch these tars again or run their build again"
            )
        if pictures and start.encoder is not None:
            features.append(torch.from_numpy(start.encoder.encode_images(pictures)))
        elif pictures:
            found = start.scorer.image_features(start.scorer.pixels(pictures))
            features.append(functional.normalize(found.float(), dim=-1))
    coarse = nearest(torch.cat(features), settings.neighbours, labels=labels[:, numbers]).cpu()
    if coarse.shape[1] < settings.hard:
        raise WrongUse(f"hard: {settings.hard} of {coarse.shape[1]} neighbours; choose a smaller --hard")
    _LOG.info("neighbours: scoring %d pairs, once", coarse.numel())

    def score(images: Tensor, texts: Tensor) -> Tensor:
        (shown, which), (said, what) = (torch.unique(one, return_inverse=True) for one in (images, texts))
        pictures = [examples.open_image(examples[numbers[place]], "image") for place in shown.tolist()]
        words = [examples[numbers[place]].texts["text"] for place in said.tolist()]
        return start.scores(start.scorer.pixels(pictures), words)(which, what)

    k = coarse.shape[1]
    scored = score_neighbours(score, coarse, bound_to, max(1, PAIRS // k) * k)
    return Neighbours(scored.places, scored.scores, bound_to, tuple(left_out))
