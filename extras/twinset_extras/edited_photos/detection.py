"""Open-vocabulary detectors of transformers: where in a picture a noun is (OWLv2; Grounding DINO), in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from twinset.contracts.kinds.samples import Pixels
from twinset.models.engines import LocalEngine, LocalSettings
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, ModelMissing, find_model, read_json
from twinset.models.loading import load_beside, load_network

WORDS = ("tokenizer.json", "vocab.txt", "vocab.json")
LAYOUT = Layout(
    "A model is an OWLv2 or Grounding DINO folder of transformers with config.json, model.safetensors, "
    "preprocessor_config.json or processor_config.json, and its tokenizer",
    (("config.json",), WEIGHTS, ("preprocessor_config.json", "processor_config.json"), WORDS),
    ("config.json", WEIGHTS, "preprocessor_config.json", "processor_config.json", "vocab.txt", *TOKENIZERS),
)
#: Classes of a model and of its processor, and how it is asked, by its ``model_type``.
MODELS = {
    "owlv2": ("Owlv2ForObjectDetection", "Owlv2Processor", "a photo of a {}"),
    "grounding-dino": ("GroundingDinoForObjectDetection", "GroundingDinoProcessor", "a {}."),
}
OVERLAP = 0.5  # intersection over union, from which two boxes are of one object
#: Left, top, width and height in pixels.
Box = tuple[float, float, float, float]


class Detector(LocalSettings):
    """An open-vocabulary detector in this process, by Hugging Face's transformers.

    model: a folder, or an id of the hub whose files are in the local cache, such as ``google/owlv2-base-patch16`` or
    ``IDEA-Research/grounding-dino-base``. threshold: least score of a box (0-1). device, threads: as `OnDevice`.
    """

    kind: Literal["detector"] = "detector"
    threshold: float = Field(default=0.3, gt=0, lt=1)
    micro_batch: Literal[1] = 1

    worker = f"{__name__}:LocalDetector"

    def files(self) -> ModelFiles:
        found = find_model(self.model, LAYOUT)
        if (kind := read_json(found.folder / "config.json").get("model_type")) not in MODELS:
            raise ModelMissing(f"{found.folder}: is a model of type {kind!r}. {LAYOUT.words}")
        return found


class LocalDetector(LocalEngine[Detector]):
    """Looks for one noun in one picture at a time, so that what is found depends on nothing else."""

    name = "detector"

    def boxes(self, pixels: Pixels, noun: str) -> list[Box]:
        """Where the noun is, the best first, one box an object. Raises `OutOfMemory`, or as `load_network`."""
        from twinset.models.device import inference, within_memory

        loaded = self.loaded
        with inference(self.threads):
            corners, scores = within_memory(partial(self._asked, loaded, pixels, noun))
        kept: list[Sequence[float]] = []
        for at in sorted(range(len(scores)), key=lambda one: (-scores[one], one)):
            if scores[at] < self.settings.threshold or not all(map(math.isfinite, (scores[at], *corners[at]))):
                continue
            left, top, right, lower = corners[at]
            if min(right - left, lower - top) >= 1 and all(_overlap(corners[at], other) < OVERLAP for other in kept):
                kept.append(corners[at])
        return [(left, top, round(right - left, 2), round(lower - top, 2)) for left, top, right, lower in kept]

    def _asked(
        self, loaded: tuple[str, Any, Any, str], pixels: Pixels, noun: str
    ) -> tuple[list[list[float]], list[float]]:
        from PIL import Image

        kind, processor, model, device = loaded
        height, width = pixels.shape[:2]
        text = MODELS[kind][2].format(noun)
        given = processor(text=[text], images=Image.fromarray(pixels), return_tensors="pt").to(device)
        out = model(**given)
        scores = out.logits[0].sigmoid().amax(dim=1).double().cpu().numpy()
        middle, size = np.split(out.pred_boxes[0].double().cpu().numpy(), 2, axis=1)  # as shares of the picture
        # OWLv2 pads a picture to a square, to the right and below.
        sides = np.array([max(height, width)] * 2 if kind == "owlv2" else [width, height])
        corners = np.concatenate([(middle - size / 2) * sides, (middle + size / 2) * sides], axis=1)
        corners = np.round(np.clip(corners, 0, [width, height] * 2), 2)
        return corners.tolist(), np.round(scores, 4).tolist()

    def load(self) -> tuple[str, Any, Any, str]:
        import transformers

        from twinset.models.device import GPU

        files = self.settings.files()
        kind = read_json(files.folder / "config.json")["model_type"]
        network, processor, _ = MODELS[kind]
        device = "cpu" if self.settings.device == "cpu" else GPU
        loaded = load_network(getattr(transformers, network), files.folder, "float32")
        return kind, load_beside(getattr(transformers, processor), files.folder), loaded.to(device), device


def _overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union of two boxes of corners."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)
