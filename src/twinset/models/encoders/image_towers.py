"""Networks that encode images in builds: where their files lie, and the tower of one, whatever its library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Resampling

from twinset.models.device import GPU
from twinset.models.encoders.contract import DualEncoder, Floats, Running, unit
from twinset.models.encoders.open_clip_files import CONFIG, FILES
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, check_type, find_model, local_folder

OPEN_CLIP = Layout(
    f"For open_clip, a CLIP model is a folder with {CONFIG} and {FILES[0]}",
    ((CONFIG,), FILES),
    (CONFIG, FILES, *TOKENIZERS),
)
LAYOUT = Layout(
    "A CLIP model is a folder with config.json, model.safetensors, preprocessor_config.json and tokenizer.json, or "
    f"vocab.json and merges.txt; or, for open_clip, with {CONFIG} and {FILES[0]}",
    (
        *(("config.json",), WEIGHTS, ("preprocessor_config.json",)),
        *(("tokenizer.json", "vocab.json"), ("tokenizer.json", "merges.txt")),
    ),
    ("config.json", WEIGHTS, "preprocessor_config.json", *TOKENIZERS),
)
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
    """The files of a CLIP model by its name; `ModelMissing` where it, or a file of it, is absent."""
    return find_model(name, OPEN_CLIP if is_open_clip(local_folder(name, LAYOUT.words)) else LAYOUT)


def tower_files(name: str) -> ModelFiles:
    """The files of a model with an image tower; `ModelMissing` where it, or a file of it, is absent, `WrongUse` where
    it is of another type. `THUMBNAIL` has none.
    """
    if name == THUMBNAIL:
        return ModelFiles(Path(), ())
    folder = local_folder(name, LAYOUT.words)
    if is_open_clip(folder) or not (folder / "config.json").is_file():
        return clip_files(name)
    found: ModelFiles = _encoder(name, folder).find(name, [name])
    return found


def open_tower(name: str, running: Running) -> Callable[[Sequence[Any]], Floats]:
    """From pictures to features with norm 1, float32, (n, d), in one pass."""
    from twinset.models.encoders.open_clip_models import open_open_clip

    if name == THUMBNAIL:
        return thumbnail_features
    folder = tower_files(name).folder
    if is_open_clip(folder):
        return open_open_clip(name, [str(folder)], running).encode_images
    model = _encoder(name, folder)(name, [str(folder)], running)
    if isinstance(model, DualEncoder):
        return model.encode_images
    return lambda pictures: unit(model.image_features(model.pixels(pictures)).float().cpu().numpy())


def open_clip_encoder(name: str, running: Running) -> DualEncoder:
    """CLIP with both towers, of transformers or open_clip, as its files are."""
    from twinset.models.encoders.open_clip_models import open_open_clip
    from twinset.models.encoders.transformers_encoders import ClipEncoder

    folder = clip_files(name).folder
    return (open_open_clip if is_open_clip(folder) else ClipEncoder)(name, [str(folder)], running)


def thumbnail_features(pictures: Sequence[Any]) -> Floats:
    """The pixels of a picture at 16 × 16, less their mean: cosines say how alike the layouts of colours are."""
    small = [np.asarray(one.convert("RGB").resize((SIDE, SIDE), Resampling.BOX), np.float32) for one in pictures]
    pixels = np.stack(small).reshape(len(small), -1)
    centred = pixels - pixels.mean(axis=1, keepdims=True)
    return unit(np.pad(centred, ((0, 0), (0, 1)), constant_values=1))  # one more, so that no picture has only zeros


def _encoder(name: str, folder: Path) -> Any:
    from twinset.models.encoders.blip_models import Blip
    from twinset.models.encoders.fusion_models import Flava, Vilt
    from twinset.models.encoders.transformers_encoders import ClipEncoder, NaflexEncoder, SiglipEncoder

    known = {one.types[0]: one for one in (ClipEncoder, SiglipEncoder, NaflexEncoder, Blip, Vilt, Flava)}
    return known[check_type(folder / "config.json", known)]
