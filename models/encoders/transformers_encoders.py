"""CLIP, SigLIP and fusion models of transformers, from a folder in its layout or from the Hugging Face cache."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import DualEncoder, Floats, Matcher, ModelKind, Running, maybe_longer
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, ModelFiles, find_model, read_json
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


LENGTHS = (32, 64, 128, 256, 512)  # tokens that texts are filled up to


class FusionScorer(TransformersModel, Matcher):
    """Networks with a head that says whether an image and a text match; pairs in passes of one shape, by texts' length.

    A score is the head's log-odds of a match, not its probability: the order of pairs is the same, and float32
    probabilities of 1 would tie.
    """

    threshold: float | None = 0.0  # log-odds of a match at probability 1/2

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        import torch

        scores = np.empty(len(texts), np.float32)
        lengths = self.lengths(texts)
        for length in sorted(set(lengths)):
            places = [place for place, one in enumerate(lengths) if one == length]
            # Filled up to the whole batch, so that a pair's bits do not depend on the other pairs.
            filled = places + [places[-1]] * (len(texts) - len(places))
            with torch.inference_mode():
                seen = self.see(self.pixels([images[place] for place in filled]))
                odds = self.match(seen, self.tokens([texts[p] for p in filled], length))
            scores[places] = odds.float().cpu().numpy()[: len(places)]
        return scores

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Of `LENGTHS`, the one that each text is filled up to."""
        most = self.most()
        buckets = [length for length in LENGTHS if length < most] + [most]
        counted = self.tokenizer(list(texts), truncation=True, max_length=most, padding=False)["input_ids"]
        return [next(length for length in buckets if len(ids) <= length) for ids in counted]

    def see(self, pixels: Tensors) -> Tensors:
        """What `match` reads of images, a row an image: what does not depend on a text, where a model has such."""
        return pixels

    @abstractmethod
    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        """Log-odds of a match of image i and text i, shape (n,), with gradients where these are on.

        Args:
            seen: as `see` gives it. tokens: as `TransformersModel.tokens` gives them.
        """

    @abstractmethod
    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """Features of images alone, by which similar ones are found, shape (n, d); not normalised."""

    def contrasted(self, seen: Tensors, tokens: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """Features with norm 1 of images and of texts, each read alone, that its contrastive head compares, (n, d)
        each; optional. Raises `WrongUse`: the model has no such head.
        """
        raise WrongUse(f"{self.name}: has no contrastive head; name blip-itm:")

    def resize(self, size: int) -> None:
        """Read images of another size from now on, in pixels; optional. Raises `WrongUse`: the model cannot."""
        raise WrongUse(f"{self.name}: reads images of one size; name blip-itm: or vilt:, or leave image_size out")


class Blip(FusionScorer):
    """BLIP fine-tuned for retrieval, with its ITM head: class 1 is a match."""

    types = ("blip",)
    network = "BlipForImageTextRetrieval"

    def see(self, pixels: Tensors) -> Tensors:
        """As `FusionScorer.see`: the patches that the image tower gives."""
        return {"patches": self.model.vision_model(pixel_values=pixels["pixel_values"]).last_hidden_state}

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        import torch

        patches = seen["patches"]
        read = self.model.text_encoder(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            encoder_hidden_states=patches,
            # BlipForImageTextRetrieval.forward makes it on the CPU, wherever the model is.
            encoder_attention_mask=torch.ones(patches.shape[:2], dtype=torch.long, device=patches.device),
        )
        return _match(self.model.itm_head(read.last_hidden_state[:, 0]))

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: the class token of the image tower."""
        return self.see(pixels)["patches"][:, 0]

    def contrasted(self, seen: Tensors, tokens: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """As `FusionScorer.contrasted`: what the two projections give of the class tokens."""
        from torch.nn.functional import normalize

        read = self.model.text_encoder(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
        images = self.model.vision_proj(seen["patches"][:, 0])
        return normalize(images, dim=-1), normalize(self.model.text_proj(read.last_hidden_state[:, 0]), dim=-1)

    def resize(self, size: int) -> None:
        """As `FusionScorer.resize`: positions of patches are interpolated once, as the library does in each pass."""
        import torch

        embeddings = self.model.vision_model.embeddings
        if size % embeddings.patch_size:
            raise WrongUse(f"image_size: {size} pixels are no multiple of the patches' {embeddings.patch_size}")
        number = (size // embeddings.patch_size) ** 2 + 1
        held = embeddings.position_embedding
        with torch.no_grad():
            found = embeddings.interpolate_pos_encoding(held.new_empty(1, number, held.shape[2]), size, size)
        embeddings.position_embedding = torch.nn.Parameter(found.clone())
        embeddings.image_size, embeddings.num_patches, embeddings.num_positions = size, number - 1, number
        self.model.config.vision_config.image_size = size
        self.processor.size = {"height": size, "width": size}


class Flava(FusionScorer):
    """FLAVA as pretrained, with its ITM head on the unmasked image and text: class 1 is a match."""

    types = ("flava",)
    network = "FlavaForPreTraining"

    def see(self, pixels: Tensors) -> Tensors:
        """As `FusionScorer.see`: pixels, without those of the codebook."""
        return {"pixel_values": pixels["pixel_values"]}

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        found = self.model.flava(
            input_ids=tokens["input_ids"],
            attention_mask=tokens["attention_mask"],
            pixel_values=seen["pixel_values"],
        )
        return _match(self.model.itm_head(found.multimodal_embeddings))

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: the class token of the image tower."""
        found: torch.Tensor = self.model.flava.image_model(pixel_values=pixels["pixel_values"]).last_hidden_state
        return found[:, 0]


class Vilt(FusionScorer):
    """ViLT fine-tuned for retrieval: its ranking head gives the log-odds at once.

    Its images keep their shape, and are filled up to the largest of a pass: so a pass has one pair.
    """

    types = ("vilt",)
    network = "ViltForImageAndTextRetrieval"
    threshold = None  # trained to rank: its 0 means nothing

    def most(self) -> int:
        return int(self.model.config.max_position_embeddings)

    def resize(self, size: int) -> None:
        """As `FusionScorer.resize`: of the shorter side; positions are interpolated in each pass."""
        self.processor.size = {"shortest_edge": size}

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        one_by_one = super().score
        return np.concatenate([one_by_one([image], [text]) for image, text in zip(images, texts, strict=True)])

    def match(self, seen: Tensors, tokens: Tensors) -> torch.Tensor:
        odds: torch.Tensor = self.model(**_read(tokens), **seen).logits[:, 0]
        return odds

    def image_features(self, pixels: Tensors) -> torch.Tensor:
        """As `FusionScorer.image_features`: there is no image tower; images are read with an empty text."""
        empty = self.tokens([""] * len(pixels["pixel_values"]), 2)
        found: torch.Tensor = self.model.vilt(**_read(empty), **pixels).last_hidden_state
        return found[:, 0]


def _read(tokens: Tensors) -> Tensors:
    return {key: tokens[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in tokens}


def _match(logits: torch.Tensor) -> torch.Tensor:
    # log p(match) − log p(no match) = logit 1 − logit 0, with the softmax's denominator gone
    odds: torch.Tensor = logits[:, 1] - logits[:, 0]
    return odds


BLIP_ITM = ModelKind(Blip, "FOLDER", check=Blip.find)
VILT = ModelKind(Vilt, "FOLDER", check=Vilt.find)
FLAVA = ModelKind(Flava, "FOLDER", check=Flava.find)
