"""Networks that encode images in builds: where their files lie, and the encoder of one, whatever its library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Resampling

from twinset.models.device import GPU
from twinset.models.encoders.contract import DualEncoder, Floats, Running, unit
from twinset.models.encoders.open_clip_files import CONFIG, OPEN_CLIP
from twinset.models.encoders.open_clip_models import open_open_clip
from twinset.models.encoders.transformers_encoders import LAYOUT, ClipEncoder, SiglipEncoder
from twinset.models.files import ModelFiles, check_type, find_model, local_folder

TYPES = ("clip", "siglip")  # of models of transformers
#: The name of a tower without a network: `thumbnail_features`.
THUMBNAIL = "thumbnail"
SIDE = 16  # pixels


class InBuild(Running):
    """Sets nothing in the process, where other networks run too: `inference` is entered around each pass."""

    def start(self) -> str:
        """The device, as torch names it."""
        return GPU if self.device == "gpu" else "cpu"


def is_open_clip(folder: Path) -> bool:
    """Whether a model is to be opened by open_clip: its files lie there, and those of transformers do not."""
    return (folder / CONFIG).is_file() and not (folder / "config.json").is_file()


def clip_files(name: str) -> ModelFiles:
    """The files of a CLIP model by its name; `ModelMissing` where it, or a file of it, is absent, `WrongUse` where it
    is of another type.
    """
    if is_open_clip(local_folder(name, LAYOUT.words)):
        return find_model(name, OPEN_CLIP)
    files = find_model(name, LAYOUT)
    check_type(files.folder / "config.json", TYPES)
    return files


def tower_files(name: str) -> ModelFiles:
    """As `clip_files`, of a model with an image tower. `THUMBNAIL` has none."""
    return ModelFiles(Path(), ()) if name == THUMBNAIL else clip_files(name)


def open_tower(name: str, running: Running) -> Callable[[Sequence[Any]], Floats]:
    """From pictures to features with norm 1, float32, (n, d), in one pass."""
    return thumbnail_features if name == THUMBNAIL else open_clip_encoder(name, running).encode_images


def open_clip_encoder(name: str, running: Running) -> DualEncoder:
    """CLIP or SigLIP with both towers, of transformers or open_clip, as its files are."""
    folder = clip_files(name).folder
    if is_open_clip(folder):
        return open_open_clip(name, [str(folder)], running)
    kind = {"clip": ClipEncoder, "siglip": SiglipEncoder}[check_type(folder / "config.json", TYPES)]
    return kind(name, [str(folder)], running)


def thumbnail_features(pictures: Sequence[Any]) -> Floats:
    """The pixels of a picture at 16 × 16, less their mean: cosines say how alike the layouts of colours are."""
    small = [picture.convert("RGB").resize((SIDE, SIDE), Resampling.BOX) for picture in pictures]
    pixels = np.stack([np.asarray(picture, np.float32) for picture in small]).reshape(len(small), -1)
    centred = pixels - pixels.mean(axis=1, keepdims=True)
    return unit(np.pad(centred, ((0, 0), (0, 1)), constant_values=1))  # one more, so that no picture has only zeros
