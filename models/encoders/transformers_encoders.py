"""CLIP and SigLIP of transformers, from a folder in its layout or from the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import DualEncoder, Floats, Running, maybe_longer
from twinset.models.files import TOKENIZERS, ModelMissing, files_digest, local_folder, pieces, read_json
from twinset.models.loading import load_beside, load_network

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGES = ("preprocessor_config.json", "processor_config.json")
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_TOKENS = ("tokenizer.json", "spiece.model", "vocab.json", "vocab.txt")
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")


def model_files(model: str) -> tuple[Path, list[Path]]:
    """Folder of a model in transformers' layout, and the files of it that decide its scores.

    Raises:
        ModelMissing: the folder or one of the files is not there.
    """
    folder = local_folder(
        model, "Such a model is a folder with config.json, its weights, preprocessor_config.json and its tokenizer"
    )
    first = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    missing += [] if first else [" or ".join(WEIGHTS[::2])]
    for some in (IMAGES, _TOKENS):
        missing += [] if any((folder / name).is_file() for name in some) else [" or ".join(some)]
    if missing or first is None:
        raise ModelMissing(f"the model {model} lacks {', '.join(missing)}: put them into {folder}")
    weights = [folder / first, *(pieces(folder / first) if first.endswith(".json") else ())]
    if absent := [path.name for path in weights if not path.is_file()]:
        raise ModelMissing(f"the model {model} lacks {', '.join(absent)}, which {first} lists: put them into {folder}")
    names = ("config.json", *IMAGES, "spiece.model", "vocab.txt", *TOKENIZERS)
    return folder, [*(folder / name for name in names if (folder / name).is_file()), *weights]


class TransformersModel:
    """What CLIP, SigLIP and the fusion models share: a network with its image processor and its tokenizer.

    Images go through the model's own processor, in Pillow's variant, which the papers' scores were made with.
    """

    types: tuple[str, ...]  # ``model_type`` of config.json
    network: str  # class of transformers

    def __init__(self, name: str, model: str, running: Running) -> None:
        import transformers

        folder, files = model_files(model)
        found = read_json(folder / "config.json").get("model_type")
        if found not in self.types:
            raise WrongUse(
                f"--model {name}: {folder}/config.json says model_type {found!r}, not {' or '.join(self.types)}"
            )
        self.name = name
        libraries = {one: version(one) for one in LIBRARIES}
        self._digest = digest([type(self).__name__, files_digest(files), libraries, "float32"])
        self.device = running.start()
        self.model = load_network(getattr(transformers, self.network), folder, "float32").to(self.device)
        self.processor = load_beside(transformers.AutoImageProcessor, folder, backend="pil")
        self.tokenizer = load_beside(transformers.AutoTokenizer, folder)

    def digest(self) -> str:
        """As `Scorer.digest`."""
        return self._digest

    def pixels(self, images: Sequence[Image]) -> dict[str, Any]:
        """What the processor makes of images, as tensors on the model's device."""
        return {key: value.to(self.device) for key, value in self.processor(list(images), return_tensors="pt").items()}

    def most(self) -> int:
        """Tokens of a text that the model reads."""
        return int(self.model.config.text_config.max_position_embeddings)

    def too_long(self, texts: Sequence[str]) -> list[str]:
        """As `Scorer.too_long`."""
        most = self.most()
        some = maybe_longer(texts, most)
        if not some:
            return []
        read = self.tokenizer(some, truncation=True, max_length=most + 1, padding=False)["input_ids"]
        return [text for text, ids in zip(some, read, strict=True) if len(ids) > most]

    def tokens(self, texts: Sequence[str], length: int) -> dict[str, Any]:
        """Texts as tokens, cut or filled up to a length."""
        read = self.tokenizer(
            list(texts), padding="max_length", truncation=True, max_length=length, return_tensors="pt"
        )
        return {key: value.to(self.device) for key, value in read.items()}


class ClipEncoder(TransformersModel, DualEncoder):
    """CLIP: the features that its two projections give."""

    types = ("clip",)
    network = "CLIPModel"
    reads: tuple[str, ...] = ("input_ids", "attention_mask")

    def prepare(self, image: Image) -> Floats:
        """As `DualEncoder.prepare`."""
        return np.asarray(self.processor([image], return_tensors="np")["pixel_values"][0], np.float32)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        """As `DualEncoder.image_features`."""
        import torch

        with torch.inference_mode():
            found = self.model.get_image_features(pixel_values=torch.from_numpy(np.stack(prepared)).to(self.device))
            return _rows(found)

    def text_features(self, texts: Sequence[str]) -> Floats:
        """As `DualEncoder.text_features`."""
        import torch

        read = self.tokens(texts, self.most())
        with torch.inference_mode():
            return _rows(self.model.get_text_features(**{key: read[key] for key in self.reads}))


class SiglipEncoder(ClipEncoder):
    """SigLIP and SigLIP 2 of fixed size. They were trained on texts filled up without a mask, and read them so."""

    types = ("siglip",)
    network = "SiglipModel"
    reads = ("input_ids",)


def _rows(found: Any) -> Floats:
    # transformers 5 wraps features, 4 gives them.
    features: Floats = getattr(found, "pooler_output", found).float().cpu().numpy()
    return features


def open_clip_folder(name: str, parts: Sequence[str], running: Running) -> ClipEncoder:
    """``clip:FOLDER``."""
    return ClipEncoder(name, parts[0], running)


def open_siglip(name: str, parts: Sequence[str], running: Running) -> SiglipEncoder:
    """``siglip:FOLDER``."""
    return SiglipEncoder(name, parts[0], running)
