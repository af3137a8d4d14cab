"""GeneCIS's specific solutions for attributes (section 6.1, appendix B): what CLIP takes the reference for is the text
that searches the gallery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import check_model, dual_encoder
from twinset.generators.annotation_files import read_json
from twinset.generators.galleries.annotations import read_taxonomy
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, ModelKind, NotApplicable, Running, unit
from twinset.models.files import sha256_once

BATCH = 256  # texts of a pass


class _Predicting(Composer):
    """A composer whose query is the feature of a text that it writes. path: of what the reference may be."""

    def __init__(self, name: str, encoder: DualEncoder, path: Path) -> None:
        self.name, self.encoder, self.path = name, encoder, path

    def digest(self) -> str:
        return digest([type(self).__name__, sha256_once(self.path), self.encoder.digest()])

    def compose(self, images: Floats, texts: Floats) -> Floats:
        raise NotApplicable(f"{self.name}: reads the words of a query, and not their features")

    def _features(self, texts: Sequence[str]) -> Floats:
        """Of norm 1, shape (texts, d)."""
        lots = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return np.concatenate([self.encoder.encode_texts(lot) for lot in lots])


class FocusAttribute(_Predicting):
    """The attribute of the asked type that fits the reference best, by its feature alone, is the query."""

    def compose_said(self, images: Floats, texts: Floats, said: Sequence[str]) -> Floats:
        return np.stack([self._asked(image, condition) for image, condition in zip(images, said, strict=True)])

    def _asked(self, image: Floats, condition: str) -> Floats:
        features = self._types.get(" ".join(condition.lower().split()))
        if features is None:
            raise NotApplicable(
                f"{self.name}: {condition!r} is no type of attributes in {self.path}; ask it of Focus on an Attribute "
                "alone, with --only focus-attribute"
            )
        return np.asarray(features[int((features @ unit(image)).argmax())])

    @cached_property
    def _types(self) -> Mapping[str, Floats]:
        taxonomy = read_taxonomy(self.path)
        return {" ".join(name.lower().split()): self._features(words) for name, words in taxonomy.items() if words}


class ChangeAttribute(_Predicting):
    """The category that fits the reference best, with the condition before it, is the query: ``olive green train``.

    Names are said in OpenAI's 80 templates, whose features are averaged; the paper does not say whether that holds for
    the query too.
    """

    def compose_said(self, images: Floats, texts: Floats, said: Sequence[str]) -> Floats:
        names, features = self._categories
        best = (unit(images) @ features.T).argmax(1)
        return np.stack([self._in_templates(f"{one} {names[at]}") for one, at in zip(said, best, strict=True)])

    @cached_property
    def _categories(self) -> tuple[Sequence[str], Floats]:
        names = read_categories(self.path)
        return names, np.stack([self._in_templates(name) for name in names])

    def _in_templates(self, name: str) -> Floats:
        import open_clip  # type: ignore[import-untyped]  # and torch, so not above

        said = [template(name) for template in open_clip.OPENAI_IMAGENET_TEMPLATES]
        return unit(self._features(said).mean(0))


def read_categories(path: Path) -> list[str]:
    """Names of objects: a JSON list of them, or VAW's annotations; raises `WrongUse` for another file."""
    whole = read_json(path)
    found = whole if isinstance(whole, list) else []
    names = [one.get("object_name") if isinstance(one, dict) else one for one in found]
    said = {" ".join(one.split()) for one in names if isinstance(one, str)} - {""}
    if not said or not all(isinstance(one, str) for one in names):
        raise WrongUse(f"{path}: not a JSON list of names, or VAW's annotations, such as test.json; name one of these")
    return sorted(said)


def _open(
    kind: type[FocusAttribute] | type[ChangeAttribute], name: str, parts: Sequence[str], running: Running
) -> Composer:
    return kind(name, dual_encoder(name, parts[1], running), Path(parts[0]).expanduser())


def _check(form: str, name: str, parts: Sequence[str]) -> None:
    if len(parts) < 2 or not Path(parts[0]).expanduser().is_file():
        raise WrongUse(f"--model {name}: there is no file {parts[0]}; write {name.partition(':')[0]}:{form}")
    check_model(parts[1])


_FOCUS, _CHANGE = "ATTRIBUTE_TYPES.json:ENCODER", "NAMES.json:ENCODER"
FOCUS_ATTRIBUTE = ModelKind(partial(_open, FocusAttribute), _FOCUS, 2, partial(_check, _FOCUS))
CHANGE_ATTRIBUTE = ModelKind(partial(_open, ChangeAttribute), _CHANGE, 2, partial(_check, _CHANGE))
