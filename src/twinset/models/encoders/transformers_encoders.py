"""CLIP and SigLIP of transformers, from a folder in its layout or from the Hugging Face cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.contracts.canonical import digest
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, maybe_longer
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, check_type, find_model, read_json
from twinset.models.loading import load_beside, load_with_tokenizer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    Tensors = dict[str, torch.Tensor]


IMAGES = ("preprocessor_config.json", "processor_config.json")
LAYOUT = Layout(
    "Such a model is a folder with config.json, its weights, preprocessor_config.json and its tokenizer",
    (("config.json",), WEIGHTS, IMAGES, ("tokenizer.json", "spiece.model", "vocab.json", "vocab.txt")),
    ("config.json", *IMAGES, "spiece.model", "vocab.txt", *TOKENIZERS, WEIGHTS),
)
LENGTHS = (32, 64, 128, 256, 512)  # tokens that `TransformersModel.by_length` fills texts up to
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "pillow", "numpy")


class TransformersModel:
    """What CLIP, SigLIP and the fusion models share: a network with its image processor and its tokenizer.

    Images go through the model's own processor, in Pillow's variant, which the papers' scores were made with.
    """

    types: tuple[str, ...]  # ``model_type`` of config.json
    network: str  # class of transformers
    precision = "float32"  # with what else decides the last bits
    images: str | None = "pil"  # variant of the image processor; None: the library's choice
    cleaning = ""  # of texts before the tokenizer, as the release does it, by open_clip's name

    def __init__(self, name: str, parts: Sequence[str], running: Running) -> None:
        files = self.find(name, parts)
        import transformers

        self.name = name
        libraries = {one: version(one) for one in LIBRARIES}
        self._digest = digest([type(self).__name__, files.digest(), libraries, self.precision + self.cleaning])
        self.device = running.start()
        self.tokenizer, network = load_with_tokenizer(self.network, files, "float32")
        self.model = network.to(self.device)
        variant = {"backend": self.images} if self.images else {}
        self.processor = load_beside(transformers.AutoImageProcessor, files.folder, **variant)

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

    def most(self) -> int:
        """Tokens of a text that the model reads."""
        return int(self.model.config.text_config.max_position_embeddings)

    def too_long(self, texts: Sequence[str]) -> list[str]:
        most = self.most()
        some = maybe_longer(texts, most)
        if not some:
            return []
        read = self.tokenizer(self.clean(some), truncation=True, max_length=most + 1, padding=False)["input_ids"]
        return [text for text, ids in zip(some, read, strict=True) if len(ids) > most]

    def clean(self, texts: Sequence[str]) -> list[str]:
        """Texts as the model was trained on them: transformers' tokenizers lack a part of that, or all of it."""
        if not self.cleaning:
            return list(texts)
        from open_clip.tokenizer import get_clean_fn  # type: ignore[import-untyped]

        return list(map(get_clean_fn(self.cleaning), texts))

    def tokens(self, texts: Sequence[str], length: int) -> dict[str, Any]:
        """Texts as tokens, cut or filled up to a length."""
        read = self.tokenizer(
            self.clean(texts), padding="max_length", truncation=True, max_length=length, return_tensors="pt"
        )
        return {key: value.to(self.device) for key, value in read.items()}

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Of `LENGTHS`, the one that each text is filled up to."""
        most = self.most()
        buckets = [length for length in LENGTHS if length < most] + [most]
        counted = self.tokenizer(self.clean(texts), truncation=True, max_length=most, padding=False)["input_ids"]
        return [next(length for length in buckets if len(ids) <= length) for ids in counted]

    def by_length(self, texts: Sequence[str], give: Callable[[list[int], Tensors], torch.Tensor]) -> Floats:
        """What a network gives of texts, float32, a row a text, in passes over texts of one length.

        Args:
            give: from the places of the texts of a pass and their tokens; with a masked filling.
        """
        import torch

        lengths, rows = self.lengths(texts), dict[int, Floats]()
        for length in sorted(set(lengths)):
            places = [place for place, one in enumerate(lengths) if one == length]
            # Filled up to the whole batch, so that a text's bits do not depend on the others.
            filled = places + [places[-1]] * (len(texts) - len(places))
            with torch.inference_mode():
                found = give(filled, self.tokens([texts[place] for place in filled], length)).float().cpu().numpy()
            rows |= dict(zip(places, found, strict=False))
        return np.stack([rows[place] for place in range(len(texts))])


class ClipEncoder(TransformersModel, DualEncoder):
    """CLIP: the features that its two projections give."""

    types = ("clip",)
    network = "CLIPModel"
    cleaning = "lower"
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
    cleaning = "canonicalize"
    reads = ("input_ids",)


class NaflexEncoder(SiglipEncoder):
    """SigLIP 2 of native size (NaFlex): an image keeps its shape, with as many patches as its processor says at most.

    `prepare` gives its patches, shape (rows, columns, values of a patch).
    """

    types = ("siglip2",)
    network = "Siglip2Model"

    def prepare(self, image: Image) -> Floats:
        read = self.processor([image], return_tensors="np")
        rows, columns = read["spatial_shapes"][0]
        patches = np.asarray(read["pixel_values"][0], np.float32)
        return patches[: rows * columns].reshape(rows, columns, -1)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        shapes = [one.shape[:2] for one in prepared]
        most, values = self.processor.max_num_patches, prepared[0].shape[2]
        pixels, mask = np.zeros((len(prepared), most, values), np.float32), np.zeros((len(prepared), most), np.int64)
        for row, one in enumerate(prepared):
            count = one.shape[0] * one.shape[1]
            pixels[row, :count], mask[row, :count] = one.reshape(count, values), 1
        asked = {"pixel_values": pixels, "pixel_attention_mask": mask, "spatial_shapes": np.array(shapes, np.int64)}
        with torch.inference_mode():
            read = {key: torch.from_numpy(value).to(self.device) for key, value in asked.items()}
            return _rows(self.model.get_image_features(**read))


def find_siglip(name: str, parts: Sequence[str]) -> type[SiglipEncoder]:
    """The class for SigLIP's files, of fixed or native size; raises as `TransformersModel.find`."""
    files = find_model(parts[0], LAYOUT)
    native = read_json(files.folder / "config.json").get("model_type") in NaflexEncoder.types
    kind = NaflexEncoder if native else SiglipEncoder
    kind.find(name, parts)
    return kind


def open_siglip(name: str, parts: Sequence[str], running: Running) -> SiglipEncoder:
    """SigLIP or SigLIP 2, of fixed or native size."""
    return find_siglip(name, parts)(name, parts, running)


def _rows(found: Any) -> Floats:
    # transformers 5 wraps features, 4 gives them.
    features: Floats = getattr(found, "pooler_output", found).float().cpu().numpy()
    return features


CLIP = ModelKind(ClipEncoder, "FOLDER", check=ClipEncoder.find)
SIGLIP = ModelKind(open_siglip, "FOLDER", check=find_siglip)
