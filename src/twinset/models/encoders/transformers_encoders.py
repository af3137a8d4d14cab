"""CLIP and SigLIP of transformers, from a folder in its layout or from the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.contracts.canonical import digest
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, as_floats
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, check_type, find_model
from twinset.models.loading import load_beside, load_with_tokenizer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    Tensors = dict[str, torch.Tensor]


IMAGES = ("preprocessor_config.json", "processor_config.json")
LAYOUT = Layout(
    "Such a model is a folder with config.json, its weights, preprocessor_config.json and its tokenizer",
    (("config.json",), WEIGHTS, IMAGES, ("tokenizer.json", "spiece.model", "vocab.json", "vocab.txt")),
    ("config.json", WEIGHTS, "preprocessor_config.json", *TOKENIZERS, *IMAGES[1:], "spiece.model", "vocab.txt"),
)
LENGTHS = (32, 64, 128, 256, 512)  # tokens that `TransformersModel.by_length` fills texts up to
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")


class TransformersModel:
    """What CLIP, SigLIP and the fusion models share: a network with its tokenizer and its image processor, in Pillow's
    variant, which the papers' scores were made with.
    """

    types: tuple[str, ...]  # ``model_type`` of config.json
    network: str  # class of transformers
    precision = "float32"  # with what else decides the last bits
    cleaning = ""  # of texts before the tokenizer, as the release does it, by open_clip's name

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        files = self.find(name, parts)
        import transformers

        self.name = name
        libraries = {library: version(library) for library in LIBRARIES}
        self._digest = digest([type(self).__name__, files.digest(), libraries, self.precision + self.cleaning])
        self.device = running.start()
        self.tokenizer, network = load_with_tokenizer(self.network, files, "float32")
        self.model = network.to(self.device)
        self.processor = load_beside(transformers.AutoImageProcessor, files.folder, backend="pil")

    @classmethod
    def find(cls, name: str, parts: Sequence[str]) -> ModelFiles:
        """The model's files; raises `WrongUse` where some are absent, or of another type of model."""
        files = find_model(parts[0], LAYOUT)
        check_type(files.folder / "config.json", cls.types)
        return files

    def digest(self) -> str:
        return self._digest

    def pixels(self, images: Sequence[Image]) -> dict[str, Any]:
        """What the processor makes of images, as tensors on the model's device."""
        return {key: value.to(self.device) for key, value in self.processor(list(images), return_tensors="pt").items()}

    def prepare(self, image: Image) -> Floats:
        """As `DualEncoder.prepare`."""
        return np.asarray(self.processor([image], return_tensors="np")["pixel_values"][0], np.float32)

    def stacked(self, prepared: Sequence[Floats]) -> torch.Tensor:
        """Images that `prepare` gave, as a tensor on the model's device."""
        import torch

        return torch.from_numpy(np.stack(prepared)).to(self.device)

    def most(self) -> int:
        """Tokens of a text that the model reads."""
        return int(self.model.config.text_config.max_position_embeddings)

    def too_long(self, texts: Sequence[str]) -> list[str]:
        """As `Scorer.too_long`."""
        ids = self._tokenized(texts, self.most() + 1)["input_ids"] if texts else []
        return [text for text, own in zip(texts, ids, strict=True) if len(own) > self.most()]

    def _tokenized(self, texts: Sequence[str], length: int, **options: Any) -> Any:
        """What the tokenizer makes of texts, cut to a length."""
        if self.cleaning:  # as the model was trained: transformers' tokenizers lack a part of that, or all of it
            from open_clip.tokenizer import get_clean_fn  # type: ignore[import-untyped]

            texts = list(map(get_clean_fn(self.cleaning), texts))
        return self.tokenizer(list(texts), truncation=True, max_length=length, **options)

    def tokens(self, texts: Sequence[str], length: int) -> dict[str, Any]:
        """Texts as tokens, cut or filled up to a length."""
        read = self._tokenized(texts, length, padding="max_length", return_tensors="pt")
        return {key: value.to(self.device) for key, value in read.items()}

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Of `LENGTHS`, the one that each text is filled up to."""
        buckets = [length for length in LENGTHS if length < self.most()] + [self.most()]
        ids = self._tokenized(texts, self.most())["input_ids"]
        return [next(length for length in buckets if len(own) <= length) for own in ids]

    def by_length(self, texts: Sequence[str], give: Callable[[list[int], Tensors], torch.Tensor]) -> Floats:
        """What a network gives of texts, float32, a row a text, in passes over texts of one length. give: from the
        places of the texts of a pass and their tokens, with a masked filling.
        """
        import torch

        lengths, rows = self.lengths(texts), dict[int, Floats]()
        for length in sorted(set(lengths)):
            places = [place for place, own in enumerate(lengths) if own == length]
            # Filled up to the whole batch, so that a text's bits do not depend on the others.
            filled = places + [places[-1]] * (len(texts) - len(places))
            with torch.inference_mode():
                given = as_floats(give(filled, self.tokens([texts[place] for place in filled], length)))
            rows |= dict(zip(places, given, strict=False))
        return np.stack([rows[place] for place in range(len(texts))])


class ClipEncoder(TransformersModel, DualEncoder):
    """CLIP: the features that its two projections give."""

    types = ("clip",)
    network = "CLIPModel"
    cleaning = "lower"
    reads: tuple[str, ...] = ("input_ids", "attention_mask")

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            return as_floats(self.model.get_image_features(pixel_values=self.stacked(prepared)))

    def text_features(self, texts: Sequence[str]) -> Floats:
        import torch

        read = self.tokens(texts, self.most())
        with torch.inference_mode():
            return as_floats(self.model.get_text_features(**{key: read[key] for key in self.reads}))


class SiglipEncoder(ClipEncoder):
    """SigLIP and SigLIP 2 of fixed size. They were trained on texts filled up without a mask, and read them so."""

    types = ("siglip",)
    network = "SiglipModel"
    cleaning = "canonicalize"
    reads = ("input_ids",)


CLIP = ModelKind(ClipEncoder, "FOLDER", check=ClipEncoder.find)
SIGLIP = ModelKind(SiglipEncoder, "FOLDER", check=SiglipEncoder.find)
