"""Scores of pairs by a model that reads an image together with a text; each pair is scored once."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from twinset.evaluation.examples import Picture, Query
from twinset.evaluation.features.passes import lots
from twinset.evaluation.features.similarities import (
    AHEAD,
    TEXT_SHOWN,
    Asked,
    Left,
    Similarities,
    own_pictures,
    own_texts,
)
from twinset.evaluation.features.store import FeatureStore, pair_name, text_name
from twinset.models.encoders.contract import Floats, Matcher, NotApplicable


class ByPairs(Similarities):
    """Scores of a model that reads an image together with a text; each pair is scored once."""

    def __init__(self, scorer: Matcher, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer = scorer
        self._window: dict[bytes, Floats] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        for example in examples:
            if isinstance(example, Query) and (example.image is None) == (example.text is None):
                raise NotApplicable(
                    f"{self.name}: scores an image with a text, and example {example.key} asks with both; name a "
                    "dual encoder and a rule, such as --model image+text:open_clip:ViT-B-32:openai"
                )
        galleries = {id(one.gallery): (one.gallery, one.key) for one in examples if isinstance(one, Query)}
        named = self._named(examples, galleries.values())
        texts: dict[bytes, dict[bytes, str]] = {}  # of each image by name: texts by the name of the pair
        for example in examples:
            for picture, text in pairs_of(example):
                if (name := self._name_or_none(picture)) is not None:
                    texts.setdefault(name, {})[pair_name(name, text_name(text))] = text
        self._count_cut({text for pairs in texts.values() for text in pairs.values()})
        missing = set(self.store.missing(pair for pairs in texts.values() for pair in pairs))
        wanted = [name for name, pairs in texts.items() if not missing.isdisjoint(pairs)]
        decoded = self.pictures.decoded(
            ((name, named[name][0]) for name in wanted), lambda image: image, AHEAD * self.passes.batch
        )
        inputs = (
            (pair, f"{named[name][1]} with {text[:TEXT_SHOWN]!r}", (image, text))
            for name, _, image in decoded
            for pair, text in texts[name].items()
            if pair in missing
        )
        for some in lots(inputs, self.passes.batch):
            self.passes.run(some, lambda pairs: self.scorer.score(*zip(*pairs, strict=True)))
        left_out = self._left_out(examples)
        usable = [one for one in examples if one.key not in left_out]
        self._window = self.store.find(self._pair(*pair) for one in usable for pair in pairs_of(one))
        return left_out

    def _pair(self, picture: Picture, text: str) -> bytes:
        return pair_name(self.pictures.name(picture), text_name(text))

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        found = [self._window[self._pair(*pair)][0] for pair in product(images, texts)]
        return np.array(found, np.float32).reshape(len(images), len(texts))

    def gallery(self, query: Query) -> Floats:
        return np.array([self._window[self._pair(*pair)][0] for pair in pairs_of(query)], np.float32)


def pairs_of(example: Asked) -> Iterator[tuple[Picture, str]]:
    """All pairs that an example asks about; of queries, those with the entries of the gallery, in order."""
    if not isinstance(example, Query):
        yield from product(own_pictures(example), own_texts(example))
        return
    for entry in example.gallery:
        if isinstance(entry, Picture):
            assert example.text is not None
            yield entry, example.text
        else:
            assert example.image is not None
            yield example.image, entry
