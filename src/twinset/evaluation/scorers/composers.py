"""What GeneCIS (6.1, appendix B) searches a gallery with for an image and a text: baselines, the Combiner, and its
specific solutions for attributes, where what CLIP takes the reference for is the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import check_model, open_model
from twinset.generators.annotation_files import read_json
from twinset.generators.galleries.annotations import Word, read_taxonomy
from twinset.generators.record_fields import problems_of
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, ModelKind, NotApplicable, Running, unit
from twinset.models.files import sha256_once

if TYPE_CHECKING:
    from twinset.models.encoders.combiner import CombinerNetwork


class Averaged(Composer):
    """A weighted mean of the features of image and text, neither normalised before, as GeneCIS's code has it.

    image_share: 1 is Image-only, 0 Text-only, 0.5 Image+Text.
    """

    def __init__(self, name: str, encoder: DualEncoder, image_share: float) -> None:
        self.name, self.encoder, self.image_share = name, encoder, image_share

    def digest(self) -> str:
        return digest(["averaged", self.image_share, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats, words: Sequence[str]) -> Floats:
        share = np.float32(self.image_share)
        # q = (λ f(I) + (1 − λ) g(T)) / ‖…‖
        return unit((share * images + (1 - share) * texts).astype(np.float32))


class Combiner(Composer):
    """The network of Baldrati et al. (2022), in inference mode; GeneCIS trains it on mined triplets.

    weights: digest of the network's.
    """

    def __init__(self, name: str, encoder: DualEncoder, weights: str, network: CombinerNetwork) -> None:
        self.name, self.encoder, self._weights, self._network = name, encoder, weights, network

    def digest(self) -> str:
        return digest(["combiner", self._weights, self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats, words: Sequence[str]) -> Floats:
        import torch

        last = self._network.output_layer
        if images.shape[1] != last.out_features:
            what = f"reads features of {last.out_features} numbers, and {self.encoder.name} gives {images.shape[1]}"
            raise WrongUse(f"{self.name}: {what}; name the CLIP that it was trained with")
        with torch.inference_mode():
            read = (torch.from_numpy(features.copy()).to(last.weight.device) for features in (images, texts))
            return unit(self._network(*read).float().cpu().numpy())


class _Predicting(Composer):
    """A composer whose query is the feature of a text that it writes. path: of what the reference may be."""

    def __init__(self, name: str, encoder: DualEncoder, path: Path) -> None:
        self.name, self.encoder, self.path = name, encoder, path

    def digest(self) -> str:
        return digest([type(self).__name__, sha256_once(self.path), self.encoder.digest()])


class FocusAttribute(_Predicting):
    """The attribute of the asked type that fits the reference best, by its feature alone, is the query."""

    def compose(self, images: Floats, texts: Floats, words: Sequence[str]) -> Floats:
        queries = []
        for image, condition in zip(unit(images), words, strict=True):
            features = self._types.get(condition.strip().lower())
            if features is None:
                what = f"{condition!r} is no type of attributes in {self.path}; ask it with --only focus-attribute"
                raise NotApplicable(f"{self.name}: {what}")
            queries.append(features[int((features @ image).argmax())])
        return np.stack(queries)

    @cached_property
    def _types(self) -> dict[str, Floats]:
        types = read_taxonomy(self.path).items()
        return {name.lower(): self.encoder.encode_texts(words) for name, words in types if words}


class _Instance(BaseModel):
    object_name: Word


_INSTANCES = TypeAdapter(Annotated[list[_Instance], Field(min_length=1)])


class ChangeAttribute(_Predicting):
    """The category that fits the reference best, with the condition before it, is the query: ``olive green train``.

    Names are said in OpenAI's 80 templates, whose features are averaged; the paper does not say whether that holds for
    the query too. path: VAW's annotations.
    """

    def compose(self, images: Floats, texts: Floats, words: Sequence[str]) -> Floats:
        names, features = self._categories
        best = (unit(images) @ features.T).argmax(1)
        return np.stack([self._in_templates(f"{text} {names[at]}") for text, at in zip(words, best, strict=True)])

    @cached_property
    def _categories(self) -> tuple[list[str], Floats]:
        try:
            instances = _INSTANCES.validate_python(read_json(self.path))
        except ValidationError as error:
            raise WrongUse(f"{self.path}: {problems_of(error)}; name VAW's annotations, such as test.json") from error
        names = sorted({instance.object_name for instance in instances})
        return names, np.stack([self._in_templates(name) for name in names])

    def _in_templates(self, name: str) -> Floats:
        import open_clip  # type: ignore[import-untyped]  # and torch, so not above

        texts = [template(name) for template in open_clip.OPENAI_IMAGENET_TEMPLATES]
        return unit(self.encoder.encode_texts(texts).mean(0))


def _combiner(name: str, encoder: DualEncoder, path: Path) -> Combiner:
    """The network of Baldrati et al. (2022), which GeneCIS trains on mined triplets."""
    from twinset.models.encoders.combiner import read_combiner

    return Combiner(name, encoder, sha256_once(path), read_combiner(path))


def _check(form: str, name: str, parts: Sequence[str]) -> None:
    if ":" in form and (len(parts) < 2 or not Path(parts[0]).expanduser().is_file()):
        raise WrongUse(f"--model {name}: there is no file {parts[0]}; write {name.partition(':')[0]}:{form}")
    check_model(parts[-1])


def _open(make: Callable[..., Composer], form: str, name: str, parts: Sequence[str], running: Running) -> Composer:
    _check(form, name, parts)
    encoder = open_model(parts[-1], running)
    if not isinstance(encoder, DualEncoder) or encoder.several:
        what = f"{parts[-1]} is not a dual encoder with one feature an image"
        raise WrongUse(f"--model {name}: {what}; name one, such as open_clip:RN50x4:openai")
    return make(name, encoder, *(Path(part).expanduser() for part in parts[:-1]))


def _kind(make: Callable[..., Composer], form: str) -> ModelKind:
    about = getattr(make, "func", make).__doc__
    return ModelKind(partial(_open, make, form), form, form.count(":") + 1, partial(_check, form), about=about)


IMAGE_ONLY, TEXT_ONLY, IMAGE_TEXT = (_kind(partial(Averaged, image_share=part), "ENCODER") for part in (1.0, 0.0, 0.5))
COMBINER = _kind(_combiner, "FILE:ENCODER")
FOCUS_ATTRIBUTE = _kind(FocusAttribute, "ATTRIBUTE_TYPES.json:ENCODER")
CHANGE_ATTRIBUTE = _kind(ChangeAttribute, "NAMES.json:ENCODER")
