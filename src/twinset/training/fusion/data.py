"""What a run opens: its fusion encoder, and the neighbours of its examples, scored once, kept in its folder (EqBen C).
And what a step reads: examples with negatives sampled from these, in parts, as a pure function of seed and step.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import Tensor
from torch.nn import functional

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.generators.neighbours.source import nearest
from twinset.models.encoders.contract import Running
from twinset.models.encoders.fusion_models import FusionScorer
from twinset.models.encoders.transformers_encoders import LAYOUT
from twinset.models.files import ModelFiles, find_model
from twinset.shards.storage.whole_file import whole_file
from twinset.training.examples.contracts import Broken, Read
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import augmentation_seed, order
from twinset.training.examples.transforms import random_crop
from twinset.training.examples.workers import made_ahead
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses import mining
from twinset.training.losses.names import ABSENT
from twinset.training.runs.checkpoint import write_tensors
from twinset.training.runs.steps import stream_seed

FILE = "neighbours.safetensors"
PAIRS = 256  # scored at a time, or those of one image
AHEAD = 4  # parts that a worker prepares before they are asked for
PASS = 32  # images or pairs of a pass without gradients, as `twinset eval run` has it by default
#: Parts of the names of the parameters in heads and cross-modal layers. ViLT's layers are all cross-modal: its head.
CROSS_MODAL = {
    "blip": ("crossattention", "itm_head", "vision_proj", "text_proj"),
    "vilt": ("rank_output",),
    "flava": ("flava.multimodal_model", "_to_mm_projection", "itm_head"),
}
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Start:
    """A model before its first step.

    kind: as ``--model`` has it. files: of its folder. resized: whether it reads images of another size than these say.
    """

    kind: str
    scorer: FusionScorer
    files: ModelFiles
    resized: bool

    def digests(self) -> dict[str, str]:
        """What decides the weights at the first step."""
        return {"model": f"{self.kind}:{self.files.digest()}"}

    def read(self, pixels: dict[str, Tensor], texts: Sequence[str]) -> mining.Score:
        """The matching head on these images and texts, by their places; what no text changes is computed once."""
        scorer, device = self.scorer, self.scorer.device
        seen, tokens = scorer.see(pixels), scorer.tokens(texts, max(scorer.lengths(texts)))

        def score(images: Tensor, of_texts: Tensor) -> Tensor:
            shown = {name: value[images.to(device)] for name, value in seen.items()}
            return scorer.match(shown, {name: value[of_texts.to(device)] for name, value in tokens.items()})

        return score

    def write_config(self, out: Path) -> None:
        """Copy tokenizer, configuration and image processor to beside the weights; the last two with the size of
        images, where it was set.
        """
        for path in self.files.paths:
            if path.suffix in (".json", ".txt", ".model") and not path.name.endswith(".index.json"):
                with whole_file(out / path.name) as beside:
                    shutil.copyfile(path, beside)
        if self.resized:
            self.scorer.model.config.save_pretrained(out)
            self.scorer.processor.save_pretrained(out)


def open_start(settings: FusionSettings) -> Start:
    """The model that settings name. Raises `WrongUse`: there is no such model, or it is of another kind."""
    scorer = open_model(settings.model, Running(settings.device, PASS, settings.threads))
    if not isinstance(scorer, FusionScorer) or scorer.types[0] not in CROSS_MODAL:
        raise WrongUse(
            f"model: {settings.model} is not trained by its matching head; name blip-itm:, vilt: or flava: and a folder"
        )
    if settings.image_size is not None:
        scorer.resize(settings.image_size)
    kind, _, folder = settings.model.partition(":")
    return Start(kind, scorer, find_model(folder, LAYOUT), settings.image_size is not None)


def opened(examples: ExampleSet, number: int, role: str = "image") -> Image:
    """An image of an example. Raises `BuildFailed`: it cannot be read."""
    with examples.needed():
        return examples.open_image(examples[number], role)


@dataclass(frozen=True, slots=True)
class Part:
    """Some examples of a step with their negatives. Each image and text is there once, with its place in ``texts``.

    rows: places of the examples, (n,); negatives: places of theirs, (n, m); close: whether they are hard. pixels: as
    the model's processor gives them, by name.
    """

    rows: NDArray[np.int64]
    negatives: NDArray[np.int64]
    close: NDArray[np.bool_]
    pixels: dict[str, NDArray[Any]]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class FusionBatch(Read):
    """A step. parts: made while they are asked for: all of a step would not fit into memory."""

    parts: Iterator[Part]


class MinedBatches:
    """The steps of a run on examples and negatives that are mined from them.

    Attributes:
        labels: which image and which text each example has, (2, n): those that share either match each other too.

    Raises:
        WrongUse: some example has too few others that differ in both.
    """

    def __init__(self, settings: FusionSettings, start: Start, examples: ExampleSet) -> None:
        examples.require(("image", "text"))
        self._settings, self._start, self._examples = settings, start, examples
        self.broken: Broken = {}  # an image that cannot be read ends the run
        self._texts = examples.column("text").to_pylist()
        images, texts = examples.image_numbers(), np.unique(self._texts, return_inverse=True)[1]
        self.labels: mining.Labels = np.stack([images, texts]).astype(np.int64)
        differ = max(mining.negatives_of_all(self.labels), 0)
        if len(examples) < settings.batch or differ < settings.negatives:
            raise WrongUse(
                f"{len(examples):,} examples, of which {differ:,} or more differ from any one in image and text: too "
                f"few for a batch of {settings.batch:,} or {settings.negatives} negatives; choose a smaller --batch, "
                "--negatives and --hard, or name more data"
            )
        self.steps_per_epoch = len(examples) // settings.batch

    def mine(self, out: Path) -> mining.Neighbours:
        """The neighbours that ``out`` has; where there are none, find them by the model's image tower and score all
        their texts by its matching head, once.

        Raises:
            WrongUse: their file is damaged, or there are fewer than are to be hard.
            BuildFailed: an image cannot be read.
        """
        settings, scorer = self._settings, self._start.scorer
        if (out / FILE).exists():  # of this run: the folder is bound to its model and examples
            try:
                self._neighbours = load_file(out / FILE)["places"]
            except (OSError, SafetensorError, KeyError) as error:
                raise WrongUse(
                    f"{out / FILE}: damaged ({error}); remove it, and neighbours are scored again"
                ) from error
            return self._neighbours

        def pixels(numbers: NDArray[np.int64]) -> dict[str, Tensor]:
            return scorer.pixels([opened(self._examples, number) for number in numbers.tolist()])

        def score(images: Tensor, texts: Tensor) -> Tensor:
            (shown, which), (read, what) = (torch.unique(numbers, return_inverse=True) for numbers in (images, texts))
            return self._start.read(pixels(shown.numpy()), [self._texts[text] for text in read.tolist()])(which, what)

        firsts = np.unique(self.labels[0], return_index=True)[1]  # an example of each image
        torch.manual_seed(stream_seed(settings.seed, "neighbours"))  # ViLT reads patches in a random order
        with torch.inference_mode():
            passes = np.split(firsts, range(PASS, len(firsts), PASS))
            features = torch.cat([scorer.image_features(pixels(numbers)).float() for numbers in passes])
            near = nearest(functional.normalize(features, dim=-1), settings.nearest)[0].cpu().numpy().astype(np.int32)
            texts = mining.texts_of_neighbours(near, self.labels)
            if (fewest := int((texts != ABSENT).sum(axis=1).min())) < settings.hard:
                raise WrongUse(f"hard: {settings.hard} of {fewest} texts of similar images; choose a smaller --hard")
            _LOG.info("neighbours: scoring %d pairs, once", (texts != ABSENT).sum())
            self._neighbours = mining.score_neighbours(score, texts, self.labels, PAIRS)
        write_tensors(out / FILE, {"places": torch.from_numpy(self._neighbours)})
        return self._neighbours

    def stream(self, first: int, last: int) -> Generator[FusionBatch, None, None]:
        """The batches of steps [first, last); as `training.examples.Batches.stream` it ends where data were rebuilt."""
        count = self._settings.accumulate
        with contextlib.closing(
            made_ahead(self.part, range(first * count, last * count), self._settings.workers, AHEAD)
        ) as parts:
            for step in range(first, last):
                keys = [self._examples[number].key for number in self._rows(step).tolist()]
                yield FusionBatch(step, step // self.steps_per_epoch, keys, islice(parts, count))
                if (step + 1) % self.steps_per_epoch == 0 or step + 1 == last:
                    self._examples.check_unchanged()

    def part(self, number: int) -> Part:
        """A part by its number, counted over all steps: a pure function of it."""
        settings, (step, place) = self._settings, divmod(number, self._settings.accumulate)
        rows = np.split(self._rows(step), settings.accumulate)[place]
        rng = generator_for(settings.seed, "training", repr(("negatives", number)))
        negatives, close = mining.sample_negatives(
            self._neighbours, rows, rng, settings.negatives, settings.hard, self.labels
        )
        read, places = np.unique(np.append(rows, negatives), return_inverse=True)
        pictures = [self._picture(example, step // self.steps_per_epoch) for example in read.tolist()]
        pixels = self._start.scorer.processor(pictures, return_tensors="pt")
        return Part(
            rows=places[: len(rows)],
            negatives=places[len(rows) :].reshape(negatives.shape),
            close=close.numpy(),
            pixels={name: value.numpy() for name, value in pixels.items()},
            texts=[self._texts[example] for example in read.tolist()],
        )

    def _rows(self, step: int) -> NDArray[np.int64]:
        epoch, place = divmod(step, self.steps_per_epoch)
        first = place * self._settings.batch
        return order(len(self._examples), self._settings.seed, epoch)[first : first + self._settings.batch]

    def _picture(self, number: int, epoch: int) -> Image:
        picture = opened(self._examples, number)
        if self._settings.transform == "evaluation":
            return picture
        example = self._examples[number]
        return random_crop(picture, augmentation_seed(self._settings.seed, epoch, example.key, "image"))
