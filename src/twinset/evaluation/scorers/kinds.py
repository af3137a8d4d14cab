"""The kinds of models that ``--model KIND:…`` names, opening one, and the baselines of GeneCIS (6.1) for queries of an
image with a text: Image-only, Text-only, Image+Text, Combiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.doors import Registry, UnknownKind
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, ModelKind, Running, Scorer, unit
from twinset.models.files import BROUGHT, brought_model, sha256_once

if TYPE_CHECKING:
    from twinset.models.encoders.combiner import CombinerNetwork

KINDS = {
    "open_clip": "twinset.models.encoders.open_clip_models:OPEN_CLIP",
    "clip": "twinset.models.encoders.transformers_encoders:CLIP",
    "siglip": "twinset.models.encoders.transformers_encoders:SIGLIP",
    "blip-itm": "twinset.models.encoders.blip_models:BLIP_ITM",
    "blip-itc": "twinset.models.encoders.blip_models:BLIP_ITC",
    "blip2-itm": "twinset.models.encoders.blip_models:BLIP2_ITM",
    "blip2-itc": "twinset.models.encoders.blip_models:BLIP2_ITC",
    "vilt": "twinset.models.encoders.fusion_models:VILT",
    "flava": "twinset.models.encoders.fusion_models:FLAVA",
    "openai-chooser": "twinset.evaluation.scorers.openai_server:CHOOSER",
    "openai-yesno": "twinset.evaluation.scorers.openai_server:YES_OR_NO",
    "openai-vqascore": "twinset.evaluation.scorers.openai_server:VQASCORE",
    "vlm": "twinset.evaluation.scorers.vision_language:VLM",
    "image-only": "twinset.evaluation.scorers.kinds:IMAGE_ONLY",
    "text-only": "twinset.evaluation.scorers.kinds:TEXT_ONLY",
    "image+text": "twinset.evaluation.scorers.kinds:IMAGE_TEXT",
    "combiner": "twinset.evaluation.scorers.kinds:COMBINER",
    "focus-attribute": "twinset.evaluation.scorers.specific_solutions:FOCUS_ATTRIBUTE",
    "change-attribute": "twinset.evaluation.scorers.specific_solutions:CHANGE_ATTRIBUTE",
    "detections": "twinset.evaluation.features.detections:DETECTIONS",
    "random": "twinset.models.encoders.open_clip_models:RANDOM",
}
INSTALL = "pip install 'twinset[models]'"
MODELS = Registry[ModelKind]("kind of model", ModelKind, __name__, "twinset.evaluation_models")


def open_model(text: str, running: Running | None = None) -> Scorer:
    """Load the model that ``KIND:NAME[:CHECKPOINT]``, or the name of one that an installed package brings, names.
    Raises `WrongUse`: there is no such kind, name or file, or the file is not of this model.
    """
    found, parts = _read(text)
    try:
        return found.open(text, parts, running or Running())
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; {INSTALL}") from error


def check_model(text: str) -> None:
    """Raise `WrongUse` as `open_model` does, as far as it can be told without torch."""
    found, parts = _read(text)
    try:
        found.check(text, parts)
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; {INSTALL}") from error


def note_on(text: str) -> str:
    """What reports have to say of a model, or of the encoder in it: a sentence, or nothing."""
    if (brought := brought_model(text)) is not None:
        return brought.notes
    found, parts = _read(text)
    return found.note or (note_on(parts[-1]) if "ENCODER" in found.form else "")


def _read(text: str) -> tuple[ModelKind, list[str]]:
    brought = brought_model(text)
    kind, _, rest = (f"{brought.scorer}:{brought.folder}" if brought is not None else text).partition(":")
    kind, asked, prompt = kind.partition("/")
    try:
        found = MODELS.find(kind, BROUGHT.kinds())
    except UnknownKind as error:
        raise WrongUse(f"--model {text}: {error}. Write KIND:…, such as open_clip:ViT-B-32:openai") from error
    if asked and not (prompt and found.prompts):
        raise WrongUse(f"--model {text}: {kind} is not asked by a prompt; write {kind}:{found.form}")
    parts = rest.split(":", found.parts - 1)
    if not all(parts):
        raise WrongUse(f"--model {text}: names no model; write {kind}:{found.form}")
    return found, parts


def with_prompts(models: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Models as ``--model`` names them, those that a prompt asks once for each prompt: ``KIND/PROMPT:…``. Raises
    `WrongUse` where none of them takes one.
    """
    found = [
        [text.replace(":", f"/{prompt}:", 1) for prompt in prompts]
        if "/" not in kind and _read(text)[0].prompts
        else [text]
        for text in models
        for kind in [text.partition(":")[0]]
    ]
    if prompts and all(len(some) == 1 and "/" not in some[0].partition(":")[0] for some in found):
        raise WrongUse(f"--prompt {prompts[0]}: none of the models is asked by a prompt; name a vlm: or openai- model")
    return [text for some in found for text in some] if prompts else list(models)


class Averaged(Composer):
    """A weighted mean of the features of image and text, neither normalised before, as GeneCIS's code has it.

    image_share: 1 is Image-only, 0 Text-only, 0.5 Image+Text.
    """

    def __init__(self, name: str, encoder: DualEncoder, image_share: float) -> None:
        self.name, self.encoder, self.image_share = name, encoder, image_share

    def digest(self) -> str:
        return digest(["averaged", self.image_share, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats) -> Floats:
        share = np.float32(self.image_share)
        # q = (λ f(I) + (1 − λ) g(T)) / ‖…‖
        return unit((share * images + (1 - share) * texts).astype(np.float32))


class Combiner(Composer):
    """The network of Baldrati et al. (2022); GeneCIS trains it on mined triplets.

    Args:
        weights: digest of the network's.
        network: in inference mode.
    """

    def __init__(self, name: str, encoder: DualEncoder, weights: str, network: CombinerNetwork) -> None:
        self.name, self.encoder, self._weights, self._network = name, encoder, weights, network

    def digest(self) -> str:
        return digest(["combiner", self._weights, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats) -> Floats:
        import torch

        width = self._network.output_layer.out_features
        if images.shape[1] != width:
            raise WrongUse(
                f"{self.name}: the Combiner reads features of {width} numbers, and {self.encoder.name} gives "
                f"{images.shape[1]}; name the CLIP that it was trained with"
            )
        with torch.inference_mode():
            where = self._network.output_layer.weight.device
            combined = self._network(
                torch.from_numpy(images.copy()).to(where), torch.from_numpy(texts.copy()).to(where)
            )
        return unit(combined.float().cpu().numpy())


def open_averaged(image_share: float, name: str, parts: Sequence[str], running: Running) -> Averaged:
    """A query is the image alone, the text alone, or the mean of both, by the dual encoder that ENCODER names."""
    return Averaged(name, dual_encoder(name, parts[0], running), image_share)


def open_combiner(name: str, parts: Sequence[str], running: Running) -> Combiner:
    """``combiner:FILE:ENCODER``; a file of both is also the checkpoint of the encoder."""
    _check_combiner(name, parts)
    from twinset.models.encoders.combiner import read_combiner

    path, encoder = Path(parts[0]).expanduser(), dual_encoder(name, parts[1], running)
    network = read_combiner(path)
    return Combiner(name, encoder, sha256_once(path), network)


def _check_combiner(name: str, parts: Sequence[str]) -> None:
    if len(parts) < 2:
        raise WrongUse(f"--model {name}: write combiner:FILE:ENCODER, such as combiner:FILE:open_clip:RN50x4:FILE")
    if not Path(parts[0]).expanduser().is_file():
        raise WrongUse(f"--model {name}: there is no file {parts[0]}; name what `twinset train combiner` wrote")
    _check_encoder(name, parts)


def _check_encoder(name: str, parts: Sequence[str]) -> None:
    check_model(parts[-1])


def dual_encoder(name: str, spec: str, running: Running) -> DualEncoder:
    """The encoder in the model ``name``; raises `WrongUse` where it is not one with a feature an image."""
    found = open_model(spec, running)
    if not isinstance(found, DualEncoder) or found.several:
        raise WrongUse(
            f"--model {name}: {spec} is not a dual encoder with one feature an image; name one, such as "
            "open_clip:RN50x4:openai"
        )
    return found


IMAGE_ONLY, TEXT_ONLY, IMAGE_TEXT = (
    ModelKind(partial(open_averaged, share), "ENCODER", check=_check_encoder) for share in (1.0, 0.0, 0.5)
)
COMBINER = ModelKind(open_combiner, "FILE:ENCODER", 2, _check_combiner)
