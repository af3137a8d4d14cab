"""CLIP and SigLIP of transformers, from a folder in its layout or from the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, maybe_longer
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, find_model, read_json
from twinset.models.loading import load_beside, load_with_tokenizer

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGES = ("preprocessor_config.json", "processor_config.json")
LAYOUT = Layout(
    "Such a model is a folder with config.json, its weights, preprocessor_config.json and its tokenizer",
    (("config.json",), WEIGHTS, IMAGES, ("tokenizer.json", "spiece.model", "vocab.json", "vocab.txt")),
    ("config.json", *IMAGES, "spiece.model", "vocab.txt", *TOKENIZERS, WEIGHTS),
)
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")


class TransformersModel:
    """What CLIP, SigLIP and the fusion models share: a network with its image processor and its tokenizer.

    Images go through the model's own processor, in Pillow's variant, which the papers' scores were made with.
    """

    types: tuple[str, ...]  # ``model_type`` of config.json
    network: str  # class of transformers
    images: str | None = "pil"  # variant of the image processor; None: the library's choice

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        files = self.find(name, parts)
        import transformers

        self.name = name
        libraries = {one: version(one) for one in LIBRARIES}
        self._digest = digest([type(self).__name__, files.digest(), libraries, "float32"])
        self.device = running.start()
        self.tokenizer, network = load_with_tokenizer(self.network, files, "float32")
        self.model = network.to(self.device)
        variant = {"backend": self.images} if self.images else {}
        self.processor = load_beside(transformers.AutoImageProcessor, files.folder, **variant)

    @classmethod
    def find(cls, name: str, parts: Sequence[str]) -> ModelFiles:
        """The model's files; raises `WrongUse` where some are absent, or of another type of model."""
        files = find_model(parts[0], LAYOUT)
        found = read_json(files.folder / "config.json").get("model_type")
        if found not in cls.types:
            raise WrongUse(
                f"--model {name}: {files.folder}/config.json says model_type {found!r}, not {' or '.join(cls.types)}"
            )
        return files

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
        return np.asarray(self.processor([image], return_tensors="np")["pixel_values"][0], np.float32)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            found = self.model.get_image_features(pixel_values=torch.from_numpy(np.stack(prepared)).to(self.device))
            return _rows(found)

    def text_features(self, texts: Sequence[str]) -> Floats:
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


CLIP = ModelKind(ClipEncoder, "FOLDER", check=ClipEncoder.find)
SIGLIP = ModelKind(SiglipEncoder, "FOLDER", check=SiglipEncoder.find)
